#include "schedule/gpu_gradient.hpp"

#include <algorithm>

namespace clebsch {
namespace {

constexpr std::int64_t least_extent = 8;  ///< of the longer side of a matrix

std::size_t at(std::int64_t position) { return static_cast<std::size_t>(position); }
std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t tiles_of(const GradientJob& job, const GradientTile& tile) { return up(job.rows, tile.rows) * up(job.columns, tile.columns); }

}  // namespace

std::optional<GradientPath> gradient_path(const Polynomial& polynomial, const Path& path) {
    if (path.factors.size() != 3) return std::nullopt;
    const Factor& out = path.output();
    const auto segment_of = [&](const Factor& factor) -> const Segment& {
        return polynomial.operands[at(factor.operand)].segments[at(factor.segment)];
    };
    if (polynomial.operands[at(out.operand)].rows.kind != Addressing::Kind::shared || segment_of(out).components != 1) return std::nullopt;
    const bool in_order = out.channels == path.factors[0].channels + path.factors[1].channels;
    const Factor &left = path.factors[in_order ? 0 : 1], &right = path.factors[in_order ? 1 : 0];
    if (out.channels != left.channels + right.channels || out.channels.find('(') != std::string::npos) return std::nullopt;
    if (out.channels.size() != path.extents.size() || segment_of(left).components != segment_of(right).components) return std::nullopt;
    for (const Factor* factor : {&left, &right})
        if (polynomial.operands[at(factor->operand)].rows.kind != Addressing::Kind::each) return std::nullopt;
    // The coefficients have to be one number, component by component.
    const std::vector<CoefficientEntry> entries = reduced_entries(path);
    const int components = segment_of(left).components;
    if (static_cast<int>(entries.size()) != components) return std::nullopt;
    std::vector<bool> met(at(components), false);
    for (const CoefficientEntry& entry : entries) {
        if (entry.index[0] != entry.index[1] || met[at(entry.index[0])] || entry.value != entries.front().value) return std::nullopt;
        met[at(entry.index[0])] = true;
    }
    const std::int64_t rows = segment_of(left).multiplicity, columns = segment_of(right).multiplicity;
    if (rows * columns == 0 || std::max(rows, columns) < least_extent) return std::nullopt;
    const auto strides = [&](const Factor& factor, std::int64_t& offset, std::int64_t& channel, std::int64_t& component) {
        const Operand& operand = polynomial.operands[at(factor.operand)];
        const bool by_channel = operand.layout == Layout::mul_ir;
        offset = operand.offset(factor.segment);
        channel = by_channel ? components : 1;
        component = by_channel ? 1 : segment_of(factor).multiplicity;
    };
    GradientPath found{
        {.left = left.operand, .right = right.operand, .components = components, .scale = entries.front().value}, rows, columns};
    strides(left, found.term.left_offset, found.term.left_channel, found.term.left_component);
    strides(right, found.term.right_offset, found.term.right_channel, found.term.right_component);
    return found;
}

std::vector<GradientTile> gradient_tiles(GpuNumber compute) {
    if (compute == GpuNumber::float64)
        return {{.rows = 64, .columns = 16, .depth = 16, .stages = 3, .own_rows = 2, .own_columns = 2},
                {.rows = 64, .columns = 64, .depth = 8, .stages = 4, .own_rows = 4, .own_columns = 4}};
    return {{.rows = 64, .columns = 16, .depth = 32, .stages = 3, .own_rows = 2, .own_columns = 2},
            {.rows = 64, .columns = 64, .depth = 16, .stages = 4, .own_rows = 32, .own_columns = 16, .tensor = true},
            {.rows = 128, .columns = 128, .depth = 8, .stages = 4, .own_rows = 64, .own_columns = 32, .tensor = true}};
}

std::size_t gradient_tile(const GradientJob& job, const std::vector<GradientTile>& tiles) {
    std::size_t tile = 0;
    while (tile + 1 < tiles.size() && std::min(job.rows, job.columns) > tiles[tile].columns) ++tile;
    return tile;
}

std::vector<GradientLaunch> gradient_launches(const GradientSchedule& schedule, const std::vector<GradientTile>& tiles) {
    std::vector<GradientLaunch> launches;
    for (std::size_t j = 0; j < schedule.jobs.size(); ++j) {
        const std::size_t tile = gradient_tile(schedule.jobs[j], tiles);
        if (launches.empty() || launches.back().tile != tile) launches.push_back({tile, static_cast<std::int64_t>(j), 0});
        ++launches.back().count;
    }
    return launches;
}

GradientChunks gradient_chunks(const GradientSchedule& schedule, const std::vector<GradientTile>& tiles, std::int64_t rows,
                               int multiprocessors) {
    constexpr std::int64_t blocks = 4;  // of a multiprocessor
    constexpr std::int64_t least_rows = 64, most_rows = 1 << 24, most_chunks = 65535;
    std::int64_t all = 0;
    for (const GradientJob& job : schedule.jobs) all += tiles_of(job, tiles[gradient_tile(job, tiles)]);
    all = std::max<std::int64_t>(1, all);  // a schedule has jobs, and each of them tiles
    GradientChunks chunks;
    chunks.rows = up(rows, std::max<std::int64_t>(1, blocks * multiprocessors / all));
    chunks.rows = std::max(std::clamp(chunks.rows, least_rows, most_rows), up(rows, most_chunks));  // kernels count them by 32-bit numbers
    chunks.count = up(rows, chunks.rows);
    return chunks;
}

LaunchShape gradient_shape(const GradientSchedule& schedule, const GradientLaunch& launch, const GradientTile& tile, std::int64_t chunks) {
    LaunchShape shape{.grid = {0, chunks}, .threads = GradientTile::threads};
    for (std::int64_t j = launch.first; j < launch.first + launch.count; ++j) shape.grid[0] += tiles_of(schedule.jobs[at(j)], tile);
    return shape;
}

LaunchShape gradient_sum_shape(const GradientSchedule& schedule) {
    LaunchShape shape{.grid = {0, static_cast<std::int64_t>(schedule.jobs.size())}, .threads = GradientSchedule::sum_threads};
    for (const GradientJob& job : schedule.jobs)
        shape.grid[0] = std::max(shape.grid[0], up(job.rows * job.columns, GradientSchedule::sum_threads));
    return shape;
}

}  // namespace clebsch
