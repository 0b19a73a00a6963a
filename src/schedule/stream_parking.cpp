#include "schedule/stream_parking.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace clebsch {
namespace {

using Place = std::pair<int, int>;  // operand and segment

std::size_t at(int position) { return static_cast<std::size_t>(position); }

int components(const GpuProblem& problem, Place place) {
    return problem.polynomial.operands[at(place.first)].segments[at(place.second)].components;
}

/// Segments that may be parked, and the pairs of segments on the first two axes that they are needed for.
std::map<Place, std::set<Place>> pairs_of_constants(const GpuProblem& problem, const StreamSchedule& schedule) {
    std::map<Place, std::set<Place>> pairs;
    for (std::size_t p = 0; p < problem.polynomial.paths.size(); ++p) {
        const std::vector<Factor>& factors = problem.polynomial.paths[p].factors;
        const auto segment = [&](int f) { return f < 0 ? -1 : factors[at(f)].segment; };
        const Place pair{segment(schedule.axes[p][0]), segment(schedule.axes[p][1])};
        for (const Factor& factor : factors)
            if (schedule.operands[at(factor.operand)].way == StreamWay::constant) pairs[{factor.operand, factor.segment}].insert(pair);
    }
    return pairs;
}

bool uses(const GpuProblem& problem, const StreamShare& share, Place place) {
    return std::ranges::any_of(share.paths, [&](int p) {
        return std::ranges::any_of(problem.polynomial.paths[at(p)].factors,
                                   [&](const Factor& factor) { return factor.operand == place.first && factor.segment == place.second; });
    });
}

}  // namespace

std::vector<std::pair<int, int>> parking_order(const GpuProblem& problem, const StreamSchedule& schedule) {
    const std::map<Place, std::set<Place>> pairs = pairs_of_constants(problem, schedule);
    std::vector<Place> order;
    order.reserve(pairs.size());
    for (const auto& [place, set] : pairs) order.push_back(place);
    std::ranges::stable_sort(order, {}, [&](const Place& place) { return std::pair(pairs.at(place).size(), -components(problem, place)); });
    return order;
}

void park(const GpuProblem& problem, StreamSchedule& schedule, const std::vector<std::pair<int, int>>& order, int numbers) {
    schedule.parked.clear();
    schedule.parked_numbers = 0;
    std::vector<int> of_warp(schedule.warps.size(), 0);
    for (const Place& place : order) {
        if (schedule.parked_numbers >= numbers) break;
        schedule.parked.push_back(place);
        for (std::size_t w = 0; w < of_warp.size(); ++w)
            for (const StreamShare& share : schedule.warps[w])
                if (uses(problem, share, place)) of_warp[w] += components(problem, place);
        schedule.parked_numbers = std::max(schedule.parked_numbers, std::ranges::max(of_warp));
    }
}

}  // namespace clebsch
