#include "run/peaks.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/memory.hpp"
#include "run/kernels/peaks.hpp"
#include "run/machine.hpp"

namespace clebsch {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
double multiply_adds_per_second(InstructionSet isa, const ParallelFor& parallel_for) {
    using Spin = std::int64_t (*)(std::int64_t, T*);
    const Spin spin = CLEBSCH_SELECT(Spin, isa, spin_multiply_adds);
    const int threads = std::max(1, parallel_for.threads);
    std::int64_t rounds = 1000;
    double best = 0;
    for (int run = 0; run < 12; ++run) {
        std::unique_ptr<std::int64_t[]> counts(new std::int64_t[static_cast<std::size_t>(threads)]());
        const auto start = std::chrono::steady_clock::now();
        for_each_task(parallel_for, threads, [&](std::int64_t task) {
            T numbers[2] = {T(0.5), T(1)};  // sums go to 2 and stay there
            counts[static_cast<std::size_t>(task)] = spin(rounds, numbers);
        });
        const double seconds = seconds_since(start);
        std::int64_t count = 0;
        for (int t = 0; t < threads; ++t) count += counts[static_cast<std::size_t>(t)];
        constexpr double enough = 0.01;
        if (seconds < enough) rounds *= seconds < enough / 10 ? 10 : 2;
        else best = std::max(best, static_cast<double>(count) / seconds);
    }
    return best;
}

double copied_bytes_per_second(std::int64_t bytes, const ParallelFor& parallel_for) {
    const Memory from(static_cast<std::size_t>(bytes)), to(static_cast<std::size_t>(bytes));
    const std::int64_t tasks = std::max(1, parallel_for.threads), share = bytes / tasks;
    const auto each_share = [&](auto&& body) {
        for_each_task(parallel_for, tasks, [&](std::int64_t task) {
            body(from.data() + task * share, to.data() + task * share,
                 static_cast<std::size_t>(task + 1 == tasks ? bytes - task * share : share));
        });
    };
    each_share([](std::byte* a, std::byte* b, std::size_t size) {  // pages come into being near who uses them
        std::memset(a, 1, size);
        std::memset(b, 2, size);
    });
    double best = 0;
    for (int run = 0; run < 4; ++run) {
        const auto start = std::chrono::steady_clock::now();
        each_share([](const std::byte* a, std::byte* b, std::size_t size) { std::memcpy(b, a, size); });
        best = std::max(best, 2.0 * static_cast<double>(bytes) / seconds_since(start));
    }
    return best;
}

}  // namespace

MeasuredPeaks measure_peaks(const PeakOptions& options, const ParallelFor& parallel_for) {
    require_available(options.isa);
    const MachineInfo machine = machine_info();
    MeasuredPeaks measured;
    measured.threads = parallel_for.run == nullptr ? 1 : std::max(1, parallel_for.threads);
    measured.isa = options.isa;
    measured.compute = options.compute;
    measured.last_level_cache_bytes = machine.last_level_cache_bytes;
    std::int64_t size = options.copy_bytes;
    if (size <= 0) {
        size = std::max<std::int64_t>(std::int64_t{128} << 20, machine.last_level_cache_bytes / 4 * 5);
        if (machine.free_memory_bytes > 0) size = std::min(size, machine.free_memory_bytes / 8);
    }
    measured.copy_bytes = std::max<std::int64_t>(1, size / 4096) * 4096;
    measured.peaks.copy_bytes_per_second = copied_bytes_per_second(measured.copy_bytes, parallel_for);
    measured.peaks.multiply_adds_per_second = options.compute == DType::float64
                                                  ? multiply_adds_per_second<double>(options.isa, parallel_for)
                                                  : multiply_adds_per_second<float>(options.isa, parallel_for);
    return measured;
}

}  // namespace clebsch
