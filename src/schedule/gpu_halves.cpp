#include "schedule/gpu_halves.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace clebsch {
namespace {

constexpr std::array<int, 2> widths{32, 64};  ///< of tiles

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const HalvesJob& job_at(const HalvesSchedule& schedule, std::int64_t j) { return schedule.jobs[static_cast<std::size_t>(j)]; }

/// Of a launch, when blocks take `share` tiles of columns.
std::int64_t blocks_of(const HalvesSchedule& schedule, const HalvesLaunch& launch, std::int64_t rows, std::int64_t share) {
    std::int64_t blocks = 0;
    for (std::int64_t j = launch.first_job; j < launch.first_job + launch.jobs; ++j) {
        const HalvesJob& job = job_at(schedule, j);
        blocks += up(rows * job.components, HalvesSchedule::rows) * up(up(job.columns, launch.columns), share);
    }
    return blocks;
}

}  // namespace

std::int64_t weight_tile_bytes(int columns) { return std::int64_t{columns} * (HalvesSchedule::depth * 4 + 4); }

std::optional<HalvesSchedule> schedule_halves(const MatrixSchedule& matrix, GpuNumber compute) {
    if (compute != GpuNumber::float32 || matrix.jobs.empty() ||
        std::ranges::any_of(matrix.terms, [](const MatrixTerm& term) { return term.indexed != 0; }))
        return std::nullopt;
    HalvesSchedule schedule;
    for (const MatrixJob& from : matrix.jobs) {  // in the order of their columns
        const int width = from.columns <= widths.front() ? widths.front() : widths.back();
        if (schedule.launches.empty() || schedule.launches.back().columns != width)
            schedule.launches.push_back({.columns = width,
                                         .first_job = static_cast<std::int64_t>(schedule.jobs.size()),
                                         .first_piece = static_cast<std::int64_t>(schedule.pieces.size()),
                                         .weights_at = schedule.weights_bytes});
        HalvesLaunch& launch = schedule.launches.back();
        HalvesJob job{.output = from.output,
                      .offset = from.offset,
                      .column = from.column,
                      .component = from.component,
                      .columns = from.columns,
                      .components = from.components,
                      .adds = from.adds,
                      .first_piece = launch.pieces};
        const std::int64_t tiles = up(from.columns, width);
        for (std::int64_t tile = 0; tile < tiles; ++tile)
            for (std::int64_t t = from.first_term; t < from.first_term + from.terms; ++t) {
                const MatrixTerm& term = matrix.terms[static_cast<std::size_t>(t)];
                for (std::int64_t k = 0; k < term.depth; k += HalvesSchedule::depth)
                    schedule.pieces.push_back({.input = term.input,
                                               .weight = term.weight,
                                               .input_offset = term.input_offset,
                                               .input_channel = term.input_channel,
                                               .input_component = term.input_component,
                                               .weight_offset = term.weight_offset,
                                               .weight_k = term.weight_k,
                                               .weight_column = term.weight_column,
                                               .k = k,
                                               .depth = term.depth,
                                               .column = tile * width,
                                               .columns = from.columns,
                                               .scale = term.scale});
            }
        const std::int64_t pieces = static_cast<std::int64_t>(schedule.pieces.size()) - launch.first_piece - launch.pieces;
        job.pieces = pieces / tiles;
        launch.pieces += pieces;
        ++launch.jobs;
        schedule.weights_bytes += pieces * weight_tile_bytes(width);
        schedule.jobs.push_back(job);
    }
    return schedule;
}

std::int64_t halves_share(const HalvesSchedule& schedule, const HalvesLaunch& launch, std::int64_t rows, int multiprocessors) {
    constexpr std::int64_t waves = 8;  // of blocks: what the last, incomplete one costs is small
    std::int64_t share = 1;
    for (std::int64_t j = launch.first_job; j < launch.first_job + launch.jobs; ++j)
        share = std::max(share, up(job_at(schedule, j).columns, launch.columns));
    while (share > 1 && blocks_of(schedule, launch, rows, share) < waves * HalvesSchedule::blocks * multiprocessors) share = up(share, 2);
    return share;
}

LaunchShape halves_shape(const HalvesSchedule& schedule, const HalvesLaunch& launch, std::int64_t rows, std::int64_t share) {
    const std::int64_t blocks = blocks_of(schedule, launch, rows, share);
    if (blocks > 0x7fffffff)
        throw Error(ErrorKind::unsupported,
                    "a launch of " + std::to_string(blocks) + " blocks is beyond what a GPU takes; divide the rows");
    constexpr std::int64_t bytes = 4;  // of a number of x
    return {
        .grid = {blocks, 1},
        .threads = HalvesSchedule::threads,
        .shared_bytes = static_cast<int>(2 * (weight_tile_bytes(launch.columns) + HalvesSchedule::rows * HalvesSchedule::depth * bytes))};
}

}  // namespace clebsch
