#pragma once
// Running independent tasks on several threads: a small pool of our own, behind a C-callable type that a caller (a framework with a pool of
// its own) can replace.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace clebsch {

/// How a launch spreads its tasks. `run` calls task(argument, i) once for every 0 <= i < tasks, on any threads, in any order, and returns
/// when all have returned. Tasks do not wait for one another and do not throw; so calling them one after the other is a valid
/// implementation. `run` null: the calling thread does everything. `threads` is the largest number of tasks worth running at once: a launch
/// starts at most that many, each with a workspace of its own; results do not depend on it.
struct ParallelFor {
    using Task = void (*)(void* argument, std::int64_t index);
    void (*run)(void* context, std::int64_t tasks, Task task, void* argument) = nullptr;
    void* context = nullptr;
    int threads = 1;
};

/// Calls body(i) for 0 <= i < tasks through `parallel_for`; body must not throw.
template <class Body>
void for_each_task(const ParallelFor& parallel_for, std::int64_t tasks, const Body& body) {
    if (parallel_for.run == nullptr || tasks <= 1) {
        for (std::int64_t i = 0; i < tasks; ++i) body(i);
        return;
    }
    const auto call = [](void* argument, std::int64_t i) { (*static_cast<const Body*>(argument))(i); };
    parallel_for.run(parallel_for.context, tasks, call, const_cast<Body*>(&body));
}

/// A pool of `threads` - 1 workers; the thread that calls takes tasks itself, so progress never waits for a worker to become free. Calls
/// may come from many threads at once and from inside tasks. Destroying it waits for the workers; no call may be running then.
class ThreadPool {
 public:
    explicit ThreadPool(int threads);  ///< throws Error(invalid_argument) unless 1 <= threads <= 1024
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const;
    ParallelFor parallel_for();  ///< valid as long as the pool

 private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Calls every job once, on up to `threads` threads, the caller's among them; the others exist for this call only. What jobs throw waits
/// for all: then the first one's, in the order of jobs, is thrown.
void run_jobs(std::span<const std::function<void()>> jobs, int threads);

/// CLEBSCH_NUM_THREADS, else one per processor this process may run on. Throws Error naming the variable when it is no number of threads.
int default_threads();

/// The process's pool, made at the first call, of default_threads() threads.
/// Throws Error(invalid_argument) when the variable is not a number from 1 to 1024.
ThreadPool& default_pool();

}  // namespace clebsch
