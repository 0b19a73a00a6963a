#include "tool/timing.hpp"

#include <algorithm>
#include <chrono>

namespace clebsch::tool {
namespace {

double quantile(const std::vector<double>& sorted, double q) {
    const double position = q * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(position);
    const std::size_t high = std::min(low + 1, sorted.size() - 1);
    const double part = position - static_cast<double>(low);
    return sorted[low] * (1 - part) + sorted[high] * part;
}

}  // namespace

double seconds_of(const std::function<void()>& task) {
    const auto start = std::chrono::steady_clock::now();
    task();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Timing> measure_in_turns(const std::vector<std::function<void()>>& tasks, double seconds, int rounds) {
    constexpr int most_rounds = 200;
    std::vector<std::vector<double>> times(tasks.size());
    std::vector<int> repeats;  // so that one measurement takes at least a millisecond
    for (const auto& task : tasks) {
        const double first = seconds_of(task);
        repeats.push_back(std::clamp(static_cast<int>(1e-3 / std::max(first, 1e-7)), 1, 1000));
    }
    double spent = 0;
    for (int round = 0; round < most_rounds && (round < rounds || spent < seconds); ++round)
        for (std::size_t t = 0; t < tasks.size(); ++t) {
            const double time = seconds_of([&] {
                for (int r = 0; r < repeats[t]; ++r) tasks[t]();
            });
            spent += time;
            times[t].push_back(time / repeats[t]);
        }
    std::vector<Timing> result;
    for (std::vector<double>& sorted : times) {
        std::ranges::sort(sorted);
        result.push_back(
            {quantile(sorted, 0.5), quantile(sorted, 0.25), quantile(sorted, 0.75), sorted.front(), static_cast<int>(sorted.size())});
    }
    return result;
}

}  // namespace clebsch::tool
