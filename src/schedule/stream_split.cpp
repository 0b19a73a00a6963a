#include "schedule/stream_split.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace clebsch {
namespace {

using Paths = std::vector<int>;  // ascending

/// Sets of paths that share no segment with channels, in the order of their first paths.
std::vector<Paths> components(const Polynomial& polynomial) {
    std::vector<std::size_t> parent(polynomial.paths.size());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t i) {
        while (parent[i] != i) i = parent[i];
        return i;
    };
    std::map<std::pair<int, int>, std::size_t> first;
    for (std::size_t p = 0; p < polynomial.paths.size(); ++p)
        for (const Factor& factor : polynomial.paths[p].factors) {
            if (factor.channels.empty()) continue;
            const std::size_t one = root(first.emplace(std::pair{factor.operand, factor.segment}, p).first->second), other = root(p);
            parent[std::max(one, other)] = std::min(one, other);
        }
    std::map<std::size_t, Paths> sets;
    for (std::size_t p = 0; p < parent.size(); ++p) sets[root(p)].push_back(static_cast<int>(p));
    std::vector<Paths> list;
    list.reserve(sets.size());
    for (auto& [key, paths] : sets) list.push_back(std::move(paths));
    return list;
}

Paths joined(const Paths& one, const Paths& other) {
    Paths all;
    std::ranges::merge(one, other, std::back_inserter(all));
    return all;
}

GpuProblem part_of(const GpuProblem& problem, const Paths& paths) {
    GpuProblem part = problem;
    part.part = true;
    part.polynomial.paths.clear();
    for (const int p : paths) part.polynomial.paths.push_back(problem.polynomial.paths[static_cast<std::size_t>(p)]);
    return part;
}

struct Candidate {
    Paths paths;
    GpuProblem problem;
    std::optional<StreamSchedule> schedule;
    double cycles = std::numeric_limits<double>::infinity();
};

/// Cycles for a row, and what it was measured to cost for each kernel that it passes through, whatever that does with it
/// (docs/reports/gpu-h200.md).
double kernel_cycles(const StreamSchedule& schedule, const GpuProblem& problem) {
    constexpr double row = 150;
    return stream_cycles(schedule, problem) + row;
}

Candidate candidate(const GpuProblem& problem, const Paths& paths) {
    Candidate result{.paths = paths, .problem = part_of(problem, paths), .schedule = {}};
    std::string why_not;
    result.schedule = schedule_stream(result.problem, why_not);
    if (result.schedule) result.cycles = kernel_cycles(*result.schedule, result.problem);
    return result;
}

double sum_of(const std::vector<Candidate>& list) {
    double sum = 0;
    for (const Candidate& one : list) sum += one.cycles;
    return sum;
}

/// Light kernels joined while that makes the sum smaller: every kernel reads what has no channels, and its producers handle every row. Of
/// the pairs that are looked at, the one that saves most comes first; as that may take a kernel from a better pair, so do the next ones in
/// turn.
class Joining {
 public:
    explicit Joining(const GpuProblem& problem) : problem_(problem) {}

    std::vector<Candidate> best_of(const std::vector<Candidate>& list) {
        constexpr std::size_t tried = 3;  // of the first pairs: every one asks for further schedules
        std::vector<Candidate> best = joined_from(list);
        const std::vector<Paths> pairs = worthwhile(list);
        for (std::size_t p = 1; p < std::min(tried, pairs.size()); ++p)
            if (std::vector<Candidate> other = joined_from(with(list, pairs[p])); sum_of(other) < sum_of(best)) best = std::move(other);
        return best;
    }

 private:
    const GpuProblem& problem_;
    std::map<Paths, Candidate> pairs_;

    /// Pairs that save something, the one that saves most first. A saving that is small beside what the pair takes may be none: longer code
    /// is what is predicted worst.
    std::vector<Paths> worthwhile(std::vector<Candidate> list) {
        constexpr std::size_t most_light = 5;  // every pair is scheduled
        constexpr double least_saving = 0.025;
        if (list.size() <= 2) return {};
        std::ranges::stable_sort(list, {}, &Candidate::cycles);
        std::vector<std::pair<double, Paths>> saved;
        for (std::size_t i = 0; i < std::min(most_light, list.size()); ++i)
            for (std::size_t j = i + 1; j < std::min(most_light, list.size()); ++j) {
                const Paths both = joined(list[i].paths, list[j].paths);
                const auto [found, fresh] = pairs_.try_emplace(both);
                if (fresh) found->second = candidate(problem_, both);
                const double apart = list[i].cycles + list[j].cycles, saving = apart - found->second.cycles;
                if (saving > least_saving * apart) saved.emplace_back(saving, both);
            }
        std::ranges::stable_sort(saved, std::greater<>{}, &std::pair<double, Paths>::first);
        std::vector<Paths> result;
        result.reserve(saved.size());
        for (auto& [saving, both] : saved) result.push_back(std::move(both));
        return result;
    }
    /// The list with one kernel instead of two.
    std::vector<Candidate> with(std::vector<Candidate> list, const Paths& pair) const {
        std::erase_if(list, [&](const Candidate& one) { return std::ranges::includes(pair, one.paths); });
        list.push_back(pairs_.at(pair));
        return list;
    }
    std::vector<Candidate> joined_from(std::vector<Candidate> list) {
        for (std::vector<Paths> pairs = worthwhile(list); !pairs.empty(); pairs = worthwhile(list))
            list = with(std::move(list), pairs.front());
        return list;
    }
};

/// Whether kernels that each take some paths leave together what all paths mean: no kernel clears what another one stored, be it because
/// its row is masked for one of them alone or because it holds sums over channels beside numbers with channels.
bool can_be_split(const GpuProblem& problem) {
    const Polynomial& polynomial = problem.polynomial;
    if (!paths_use_the_same_indices(polynomial)) return false;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        bool channels = false, sums = false;
        for (const Path& path : polynomial.paths)
            if (path.output().operand == static_cast<int>(o)) (path.output().channels.empty() ? sums : channels) = true;
        if (channels && sums) return false;
    }
    return true;
}

}  // namespace

std::vector<StreamKernel> stream_kernels(const GpuProblem& problem, std::string& why_not, StreamSplit split) {
    std::vector<StreamKernel> kernels;
    std::optional<StreamSchedule> whole = schedule_stream(problem, why_not);
    double best = whole ? kernel_cycles(*whole, problem) : std::numeric_limits<double>::infinity();
    std::vector<Candidate> list;
    // A kernel takes time to start, and ends when its last team does. Predictions err by a tenth, in float64 by more.
    const double least_gain = problem.compute == GpuNumber::float64 ? 1.2 : 1.14;
    const bool hopeless =
        whole && split == StreamSplit::chosen && stream_cycles(*whole, problem) < least_gain * stream_memory_cycles(*whole, problem);
    const bool may = split != StreamSplit::never && !hopeless && can_be_split(problem);
    const std::vector<Paths> sets = may ? components(problem.polynomial) : std::vector<Paths>{};
    constexpr std::size_t most_sets = 16;  // every one is scheduled
    if (sets.size() > 1 && sets.size() <= most_sets)
        for (const Paths& paths : sets) list.push_back(candidate(problem, paths));
    if (split == StreamSplit::chosen) list = Joining(problem).best_of(list);
    const double sum = sum_of(list);
    if (list.size() > 1 && (sum * least_gain < best || (split == StreamSplit::always && std::isfinite(sum)))) {
        std::ranges::sort(list, {}, &Candidate::paths);
        std::vector<bool> begun(problem.polynomial.operands.size(), false);
        for (Candidate& one : list) {
            one.problem.begun = begun;
            for (std::size_t o = 0; o < begun.size(); ++o)
                if (one.schedule->operands[o].way == StreamWay::reduced) begun[o] = true;
            kernels.push_back({std::move(one.problem), std::move(*one.schedule)});
        }
        why_not.clear();
    } else if (whole) {
        kernels.push_back({problem, std::move(*whole)});
    }
    return kernels;
}

}  // namespace clebsch
