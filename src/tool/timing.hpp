#pragma once
// Times of several things that are measured in turns, so that whatever disturbs the machine disturbs all of them.
#include <functional>
#include <vector>

namespace clebsch::tool {

struct Timing {
    double median = 0, quartile_1 = 0, quartile_3 = 0, least = 0;  ///< seconds
    int runs = 0;
    double spread() const { return (quartile_3 - quartile_1) / median; }
};

/// Runs every task once unmeasured, then in rounds (each task once) until `seconds` have passed, at least `rounds` times and at most 200.
std::vector<Timing> measure_in_turns(const std::vector<std::function<void()>>& tasks, double seconds, int rounds);
double seconds_of(const std::function<void()>& task);

}  // namespace clebsch::tool
