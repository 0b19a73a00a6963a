// A small model of the machine: what of a schedule's limits was measured, and how they meet.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedule/stream_speed.hpp"

namespace clebsch {
namespace {

/// The given warps without those that run the code of an earlier one.
std::vector<std::size_t> codes(const StreamSchedule& schedule, const std::vector<std::size_t>& warps) {
    std::vector<std::size_t> first;
    for (const std::size_t w : warps)
        if (std::ranges::none_of(first, [&](std::size_t other) { return schedule.same_code(w, other); })) first.push_back(w);
    return first;
}

/// Blocks of channels on which every warp has the same paths.
double blocks_of_a_warp(const StreamSchedule& schedule) {
    auto blocks = static_cast<std::size_t>(schedule.channels);
    for (const std::vector<StreamShare>& shares : schedule.warps) {
        const bool same = std::ranges::all_of(shares, [&](const StreamShare& share) { return share.paths == shares.front().paths; });
        blocks = std::min(blocks, same ? shares.size() : 1);
    }
    return static_cast<double>(blocks);
}

}  // namespace

/// Rows per cycle of a multiprocessor, predicted from what was measured on an H200 (docs/reports/gpu-h200.md):
/// - a warp alone issues every 2.2 cycles; n of them leave a scheduler idle as often as n independent ones would; a producer takes about
///   110 instructions for a row; a further code costs a twelfth, on the same scheduler a quarter more;
/// - code beyond 32 kilobytes comes from the second-level cache at 0.46 instructions a cycle, once for all warps that run it: the more
///   teams share it the better;
/// - in float64 an instruction takes a scheduler 1.75 times as long, and a quarter more code;
/// - a warp with the same paths on several blocks of channels need not wait for one while it computes another; this decides where rows are
///   of 16-bit numbers and nothing but sums leaves, elsewhere memory does and it was not measured;
/// - a row is some 1,800 cycles on its way from memory.
/// Limits that lie close together are not reached.
double stream_speed(const StreamSchedule& schedule) {
    constexpr double latency = 1800, producer = 110, kept_code = 2000, fetched = 0.46, of_one_block = 2.2, another = 0.25;
    const double blocks = schedule.narrow ? blocks_of_a_warp(schedule) : 1;
    const double cycles_of_a_warp = of_one_block / (1 + another * (blocks - 1));
    const double slower = schedule.wide ? 1.75 : 1, longer = schedule.wide ? 1.25 : 1;
    constexpr double further_code = 1.0 / 12, on_same = 0.25;
    constexpr std::size_t schedulers = 4;
    const int teams = schedule.blocks * schedule.teams;
    const double per_scheduler = static_cast<double>(teams * schedule.consumer_warps()) / schedulers;
    const double issued = 1 - std::pow(1 - 1 / cycles_of_a_warp, per_scheduler);
    std::vector<std::size_t> all(schedule.warps.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    double cycles = 0;  // of a row, for the scheduler with most work
    for (std::size_t s = 0; s < schedulers; ++s) {
        std::vector<std::size_t> warps;
        double work = producer / schedulers;
        for (const std::size_t w : all)
            if (!schedule.pinned || w % schedulers == s) {
                warps.push_back(w);
                work += slower * schedule.instructions[w] / (schedule.pinned ? 1 : schedulers);
            }
        const double different = std::min<double>(static_cast<double>(codes(schedule, warps).size()), per_scheduler);
        cycles = std::max(cycles, work / issued * (1 + on_same * std::max(0.0, different - 1)));
    }
    const std::vector<std::size_t> different = codes(schedule, all);
    cycles *= 1 + further_code * static_cast<double>(different.size() - 1);
    double code = 0;
    for (const std::size_t w : different) code += longer * schedule.instructions[w];
    double sum = 0;
    constexpr double power = 4;
    for (const double limit :
         {cycles, slower * cycles_of_a_warp * std::ranges::max(schedule.instructions) / teams,
          code > kept_code ? code / (fetched * teams) : 0.0, latency / (teams * (schedule.stages - schedule.lag - 0.5))})
        sum += std::pow(limit, power);
    return std::pow(sum, -1 / power);
}

double stream_memory_cycles(const StreamSchedule& schedule, const GpuProblem& problem) {
    // What the memory system moves for one multiprocessor in a cycle when every row is gathered from nearby (measured on an H200).
    constexpr double bytes_per_cycle = 24;
    double bytes = 0;
    for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
        const StreamWay way = schedule.operands[o].way;
        if (way == StreamWay::unused || way == StreamWay::constant || way == StreamWay::accumulated) continue;
        const GpuNumber type = schedule.operands[o].carried ? problem.storage[o] : schedule.number_of(problem, o);
        bytes += static_cast<double>(schedule.operands[o].numbers()) * bytes_of(type);
    }
    return bytes / bytes_per_cycle;
}

double stream_cycles(const StreamSchedule& schedule, const GpuProblem& problem) {
    constexpr double power = 4;  // limits that lie close together are not reached
    return std::pow(std::pow(1 / stream_speed(schedule), power) + std::pow(stream_memory_cycles(schedule, problem), power), 1 / power);
}

}  // namespace clebsch
