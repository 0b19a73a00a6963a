#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <limits>

#include "run/flush_to_zero.hpp"

using namespace clebsch;

namespace {

/// Half of the smallest normal number, and a normal one made of it: zero where both are flushed.
template <class T>
std::array<T, 2> halved_and_back() {
    const volatile T smallest = std::numeric_limits<T>::min();
    const volatile T half = smallest * T(0.5);
    const volatile T denormal = std::numeric_limits<T>::denorm_min();
    const volatile T product = denormal * (T(1) / std::numeric_limits<T>::min());
    return {half, product};
}

template <class T>
bool flushed() {
    return halved_and_back<T>() == std::array<T, 2>{};
}
template <class T>
bool usual() {
    const auto [half, product] = halved_and_back<T>();
    return half > 0 && product > 0;
}

}  // namespace

TEST_CASE("denormal numbers are zero as long as the guard lives, for this thread alone") {
    REQUIRE(usual<float>());
    REQUIRE(usual<double>());
    {
        const FlushToZero flush;
        CHECK(flushed<float>());
        CHECK(flushed<double>());
        {
            const FlushToZero again;
            CHECK(flushed<float>());
        }
        CHECK(flushed<float>());
    }
    CHECK(usual<float>());
    CHECK(usual<double>());
}

TEST_CASE("flushed tasks run once each, on the threads of the pool, and leave these as they were") {
    ThreadPool pool(3);
    const FlushedTasks tasks(pool.parallel_for());
    CHECK(tasks.parallel_for().threads == 3);
    for (const std::int64_t count : {0, 1, 2, 100}) {
        std::atomic<int> done{0}, wrong{0};
        const FlushToZero here;  // a single task runs on this thread
        for_each_task(tasks.parallel_for(), count, [&](std::int64_t) {
            ++done;
            if (!flushed<float>()) ++wrong;
        });
        CHECK(done == count);
        CHECK(wrong == 0);
    }
    std::atomic<int> wrong{0};
    for_each_task(pool.parallel_for(), 100, [&](std::int64_t) { wrong += usual<float>() ? 0 : 1; });
    CHECK(wrong == 0);
    const FlushedTasks alone(ParallelFor{});
    const bool none = alone.parallel_for().run == nullptr;
    CHECK(none);
}
