#include "run/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/wait.hpp"

namespace clebsch {
namespace {

constexpr int most_threads = 1024;

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/// How long a thread looks for what it waits for before it sleeps. A processor that has gone to rest takes tens of microseconds to wake, in
/// a virtual machine hundreds, which a launch of a few milliseconds would lose at its start and again at its end.
constexpr std::chrono::microseconds patience{200};

/// Whether `found()` became true while looking.
template <class Found>
bool look_for(Found found) {
    const auto end = std::chrono::steady_clock::now() + patience;
    do {
        for (int i = 0; i < 32; ++i, pause())
            if (found()) return true;
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

/// One call of run(); lives on the caller's stack.
struct Job {
    std::int64_t tasks = 0;
    ParallelFor::Task task = nullptr;
    void* argument = nullptr;
    std::atomic<std::int64_t> next{0};  ///< the first task nobody has taken
    std::atomic<int> helpers{0};        ///< workers inside work(); raised under the pool's mutex, while the job is listed
};

void work(Job& job) {
    for (std::int64_t i = job.next.fetch_add(1, std::memory_order_relaxed); i < job.tasks;
         i = job.next.fetch_add(1, std::memory_order_relaxed))
        job.task(job.argument, i);
}

}  // namespace

void run_jobs(std::span<const std::function<void()>> jobs, int threads) {
    std::vector<std::exception_ptr> errors(jobs.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t job = next.fetch_add(1); job < jobs.size(); job = next.fetch_add(1)) {
            try {
                jobs[job]();
            } catch (...) { errors[job] = std::current_exception(); }
        }
    };
    {
        std::vector<std::jthread> others;
        try {
            for (int t = 1; t < threads && static_cast<std::size_t>(t) < jobs.size(); ++t) others.emplace_back(work);
        } catch (const std::system_error&) {  // a machine that gives no more threads: those there are do it
        }
        work();
    }
    for (const std::exception_ptr& error : errors)
        if (error) std::rethrow_exception(error);
}

int default_threads() {
    if (const char* text = std::getenv("CLEBSCH_NUM_THREADS"); text != nullptr && *text != '\0') {
        char* end = nullptr;
        const long value = std::strtol(text, &end, 10);
        if (*end != '\0' || value < 1 || value > most_threads)
            fail("environment variable CLEBSCH_NUM_THREADS: expected a number from 1 to " + std::to_string(most_threads) + ", got '" +
                 text + "'");
        return static_cast<int>(value);
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    const int processors =
        sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
    return std::clamp(processors, 1, most_threads);
}

struct ThreadPool::State {
    using Task = ParallelFor::Task;

    std::mutex mutex;
    std::condition_variable wake, finished;
    std::vector<Job*> jobs;                 ///< with tasks left, newest last: inner calls first, so that they do not hold up outer ones
    std::atomic<std::int64_t> arrivals{0};  ///< counts listed jobs, so that a worker without one can look without the mutex
    bool stop = false;
    std::vector<std::thread> workers;

    void worker() {
        while (true) {
            Job* job = nullptr;
            {
                std::unique_lock lock(mutex);
                if (jobs.empty() && !stop) {  // a launch is often followed by another one soon
                    const std::int64_t seen = arrivals.load(std::memory_order_relaxed);
                    lock.unlock();
                    look_for([&] { return arrivals.load(std::memory_order_relaxed) != seen; });
                    lock.lock();
                    wait(wake, lock, [&] { return stop || !jobs.empty(); });
                }
                if (stop) return;
                job = jobs.back();
                if (job->next.load(std::memory_order_relaxed) >= job->tasks) {
                    jobs.pop_back();  // its caller has not come to remove it yet
                    continue;
                }
                job->helpers.fetch_add(1, std::memory_order_relaxed);
            }
            work(*job);
            // Last access to the job: its caller may return as soon as it sees zero. The pool outlives it, so the notification goes by the
            // pool.
            if (job->helpers.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                const std::lock_guard lock(mutex);
                finished.notify_all();
            }
        }
    }

    void run(std::int64_t tasks, Task task, void* argument) {
        Job job{.tasks = tasks, .task = task, .argument = argument};
        {
            const std::lock_guard lock(mutex);
            jobs.push_back(&job);
            arrivals.fetch_add(1, std::memory_order_relaxed);
        }
        if (tasks - 1 >= static_cast<std::int64_t>(workers.size())) wake.notify_all();
        else
            for (std::int64_t i = 1; i < tasks; ++i) wake.notify_one();
        work(job);
        {
            const std::lock_guard lock(mutex);
            jobs.erase(std::remove(jobs.begin(), jobs.end(), &job), jobs.end());
        }
        // No worker can join any more; those inside are running a task of ours.
        if (look_for([&] { return job.helpers.load(std::memory_order_acquire) == 0; })) return;
        std::unique_lock lock(mutex);
        wait(finished, lock, [&] { return job.helpers.load(std::memory_order_acquire) == 0; });
    }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
    if (threads < 1 || threads > most_threads)
        fail("a thread pool needs 1 to " + std::to_string(most_threads) + " threads, got " + std::to_string(threads));
    // A system that refuses more threads leaves a smaller pool, which is still right.
    try {
        for (int i = 1; i < threads; ++i) state_->workers.emplace_back([state = state_.get()] { state->worker(); });
    } catch (const std::system_error&) {}
}

ThreadPool::~ThreadPool() {
    {
        const std::lock_guard lock(state_->mutex);
        state_->stop = true;
    }
    state_->wake.notify_all();
    for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

ParallelFor ThreadPool::parallel_for() {
    if (threads() == 1) return {};
    return {.run = [](void* context, std::int64_t tasks, ParallelFor::Task task,
                      void* argument) { static_cast<State*>(context)->run(tasks, task, argument); },
            .context = state_.get(),
            .threads = threads()};
}

ThreadPool& default_pool() {
    // Never destroyed: tasks of other threads may still run while the process exits.
    static ThreadPool* pool = new ThreadPool(default_threads());
    return *pool;
}

}  // namespace clebsch
