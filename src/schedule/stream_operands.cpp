#include "schedule/stream_operands.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace clebsch {

bool has_channels(const Polynomial& polynomial, int operand) {
    for (const Path& path : polynomial.paths)
        for (const Factor& factor : path.factors)
            if (factor.operand == operand && !factor.channels.empty()) return true;
    return false;
}

namespace {

/// The segments of an operand that paths use, each with channels (true) or without.
std::set<std::pair<int, bool>> uses_of(const Polynomial& polynomial, int operand) {
    std::set<std::pair<int, bool>> uses;
    for (const Path& path : polynomial.paths)
        for (const Factor& factor : path.factors)
            if (factor.operand == operand) uses.emplace(factor.segment, !factor.channels.empty());
    return uses;
}

/// What of an operand's row the paths use: whole segments, as far as copies of 16 bytes can take them one by one.
void choose_runs(const GpuProblem& problem, int o, StreamOperand& result) {
    const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(o)];
    const int bytes = bytes_of(problem.storage[static_cast<std::size_t>(o)]);
    std::set<int> segments;
    for (const Path& path : problem.polynomial.paths)
        for (const Factor& factor : path.factors)
            if (factor.operand == o) segments.insert(factor.segment);
    const auto collect = [&] {
        result.runs.clear();
        for (const int s : segments) {
            const Segment& segment = operand.segments[static_cast<std::size_t>(s)];
            const std::int64_t begin = operand.offset(s), count = segment.multiplicity * segment.components;
            if (!result.runs.empty() && result.runs.back().begin + result.runs.back().count == begin) result.runs.back().count += count;
            else result.runs.push_back({begin, result.numbers(), count});
        }
    };
    collect();
    constexpr int unit = 16;
    const auto fits = [&](std::int64_t number) { return number * bytes % unit == 0; };
    const bool apart = std::ranges::all_of(result.runs, [&](const StreamRun& run) { return fits(run.begin) && fits(run.count); });
    const bool reduced = operand.role == Role::output && !has_channels(problem.polynomial, o);
    if (reduced || (!apart && operand.role == Role::input && fits(operand.size()))) {
        for (int s = 0; s < static_cast<int>(operand.segments.size()); ++s) segments.insert(s);
        collect();
    }
    result.places.assign(operand.segments.size(), -1);
    for (const int s : segments)
        for (const StreamRun& run : result.runs)
            if (const std::int64_t offset = operand.offset(s); offset >= run.begin && offset < run.begin + run.count)
                result.places[static_cast<std::size_t>(s)] = run.place + offset - run.begin;
}

/// Which rows without channels the producer's lanes read 32 at a time instead of one by one: those that the copy engine does not take, for
/// which every row would wait, and the only one of numbers of fewer bits than the arithmetic has, which every warp would convert. Longer
/// rows take shared memory that stages and parked numbers need more.
void choose_carried(const GpuProblem& problem, StreamSchedule& schedule) {
    constexpr std::int64_t most_numbers = 16, unit = 16;
    std::vector<std::size_t> without_channels;
    for (std::size_t o = 0; o < schedule.operands.size(); ++o)
        if (schedule.operands[o].way == StreamWay::staged && !has_channels(problem.polynomial, static_cast<int>(o)))
            without_channels.push_back(o);
    for (const std::size_t o : without_channels) {
        StreamOperand& operand = schedule.operands[o];
        if (!problem.target.bulk_copies() || operand.runs.size() != 1 || operand.numbers() > most_numbers) continue;
        const int bytes = bytes_of(problem.storage[o]);
        const StreamRun& run = operand.runs.front();
        const bool copied = run.begin * bytes % unit == 0 && run.count * bytes % unit == 0;
        const bool narrow = bytes < bytes_of(problem.compute);
        operand.carried = !copied || (narrow && without_channels.size() == 1);
    }
}

/// Whether rows with channels are of 16-bit numbers, all of them, and nothing but sums leaves, where the copy engine brings them.
bool is_narrow(const GpuProblem& problem, const StreamSchedule& schedule) {
    bool any = false;
    for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
        const StreamWay way = schedule.operands[o].way;
        if (way == StreamWay::reduced || way == StreamWay::stored || way == StreamWay::scattered) return false;
        if (way != StreamWay::staged || !has_channels(problem.polynomial, static_cast<int>(o))) continue;
        if (bytes_of(problem.storage[o]) != 2) return false;
        any = true;
    }
    return any && problem.target.bulk_copies();
}

}  // namespace

bool choose_ways(const GpuProblem& problem, StreamSchedule& schedule, std::string& why_not) {
    const Polynomial& polynomial = problem.polynomial;
    std::set<int> used;
    for (const Path& path : polynomial.paths)
        for (const Factor& factor : path.factors) used.insert(factor.operand);
    if (!paths_use_the_same_indices(polynomial)) return why_not = "paths differ in the indices they use", false;
    for (int o = 0; o < static_cast<int>(polynomial.operands.size()); ++o) {
        const Operand& operand = polynomial.operands[static_cast<std::size_t>(o)];
        StreamOperand result;
        const bool channels = has_channels(polynomial, o);
        const bool stationary = operand.rows.kind == Addressing::Kind::indexed && operand.rows.via == schedule.stationary;
        const std::set<std::pair<int, bool>> segments = uses_of(polynomial, o);
        for (const auto& [segment, with_channels] : segments)  // which one channel can be, a lane's own number and every lane's
            if (with_channels && segments.contains({segment, false}))
                return why_not = "paths take a segment of '" + operand.name + "' with channels and without", false;
        if (operand.role == Role::input) {
            if (!used.contains(o)) result.way = StreamWay::unused;
            else if (stationary || operand.rows.kind == Addressing::Kind::shared) result.way = StreamWay::constant;
            else result.way = StreamWay::staged;
            // Rows in another order (schedule/gpu_order) are read once, too.
            result.kept = operand.rows.kind == Addressing::Kind::indexed && polynomial.space_of(operand) != polynomial.rows;
        } else {
            if (operand.rows.kind == Addressing::Kind::shared) return why_not = "output '" + operand.name + "' has one row for all", false;
            if (segments.empty()) result.way = StreamWay::unused;
            else if (operand.rows.kind == Addressing::Kind::each || problem.is_message(static_cast<std::size_t>(o)))
                result.way = channels ? StreamWay::stored : StreamWay::reduced;
            else if (!channels) return why_not = "output '" + operand.name + "' is summed over rows and channels", false;
            else result.way = stationary ? StreamWay::accumulated : StreamWay::scattered;
            // Other kernels add to what is reduced here: in fewer bits their sums would lose some.
            const bool narrow = problem.storage[static_cast<std::size_t>(o)] != problem.compute;
            result.summed = result.way == StreamWay::scattered || (result.way == StreamWay::reduced && problem.part && narrow);
            if (problem.ordered && result.way == StreamWay::scattered)
                return why_not = "sums of output '" + operand.name + "' would have no fixed order", false;
            for (const auto& [segment, with_channels] : segments)
                if (with_channels != channels)
                    return why_not = "output '" + operand.name + "' has segments with and without channels", false;
        }
        // A channel-free segment of several channels never occurs: without a letter a factor has one.
        if (result.way != StreamWay::unused) choose_runs(problem, o, result);
        schedule.operands.push_back(result);
    }
    choose_carried(problem, schedule);
    schedule.narrow = is_narrow(problem, schedule);
    return true;
}

}  // namespace clebsch
