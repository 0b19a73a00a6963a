#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "run/threads.hpp"

using namespace clebsch;

TEST_CASE("every task runs exactly once, whatever the number of threads and tasks") {
    for (const int threads : {1, 2, 3, 7}) {
        ThreadPool pool(threads);
        CHECK(pool.threads() == threads);
        for (const std::int64_t tasks : {0, 1, 2, 5, 64, 1000}) {
            std::vector<std::atomic<int>> count(static_cast<std::size_t>(tasks));
            for_each_task(pool.parallel_for(), tasks, [&](std::int64_t i) { count[static_cast<std::size_t>(i)].fetch_add(1); });
            for (const auto& c : count) REQUIRE(c.load() == 1);
        }
    }
}

TEST_CASE("a parallel for without a pool runs on the calling thread, in order") {
    std::vector<std::int64_t> order;
    for_each_task(ParallelFor{}, 4, [&](std::int64_t i) { order.push_back(i); });
    CHECK(order == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("tasks may start parallel loops of their own on the same pool") {
    for (const int threads : {1, 2, 4}) {
        ThreadPool pool(threads);
        std::atomic<int> count{0};
        for_each_task(pool.parallel_for(), 8, [&](std::int64_t) {
            for_each_task(pool.parallel_for(), 8,
                          [&](std::int64_t) { for_each_task(pool.parallel_for(), 4, [&](std::int64_t) { count.fetch_add(1); }); });
        });
        CHECK(count.load() == 8 * 8 * 4);
    }
}

TEST_CASE("a caller finishes while every worker is held up by another caller") {
    ThreadPool pool(3);
    std::atomic<bool> release{false};
    std::atomic<int> held{0};
    std::thread other([&] {
        for_each_task(pool.parallel_for(), 3, [&](std::int64_t) {
            held.fetch_add(1);
            while (!release.load()) std::this_thread::yield();
        });
    });
    while (held.load() < 3) std::this_thread::yield();  // the other caller and both workers wait for us
    std::atomic<int> count{0};
    for_each_task(pool.parallel_for(), 100, [&](std::int64_t) { count.fetch_add(1); });
    CHECK(count.load() == 100);
    release.store(true);
    other.join();
}

TEST_CASE("many threads may call one pool at once") {
    ThreadPool pool(3);
    std::vector<std::thread> callers;
    std::atomic<std::int64_t> sum{0};
    for (int c = 0; c < 6; ++c)
        callers.emplace_back([&] {
            for (int repeat = 0; repeat < 200; ++repeat) for_each_task(pool.parallel_for(), 5, [&](std::int64_t i) { sum.fetch_add(i); });
        });
    for (auto& caller : callers) caller.join();
    CHECK(sum.load() == 6 * 200 * 10);
}

TEST_CASE("jobs run once each, and what the first of them throws comes after all") {
    for (const int threads : {0, 1, 2, 5, 40}) {
        CAPTURE(threads);
        std::vector<std::atomic<int>> runs(20);
        std::vector<std::function<void()>> jobs;
        for (std::size_t j = 0; j < runs.size(); ++j)
            jobs.emplace_back([&, j] {
                ++runs[j];
                if (j == 7 || j == 13) throw Error(ErrorKind::invalid_argument, "job " + std::to_string(j));
            });
        CHECK_THROWS_WITH_AS(run_jobs(jobs, threads), "job 7", Error);
        for (const std::atomic<int>& count : runs) CHECK(count == 1);
        CHECK_NOTHROW(run_jobs({}, threads));
    }
}

TEST_CASE("a pool refuses a number of threads that is none") {
    CHECK_THROWS_AS(ThreadPool(0), Error);
    CHECK_THROWS_AS(ThreadPool(-1), Error);
    CHECK_THROWS_AS(ThreadPool(100000), Error);
}
