#include "emit/kernels.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "emit/general.hpp"
#include "emit/order.hpp"
#include "emit/rows.hpp"
#include "emit/stream.hpp"
#include "emit/table.hpp"
#include "emit/text.hpp"

namespace clebsch {

namespace {

/// Outputs with segments that no path writes.
std::vector<bool> unwritten(const Polynomial& polynomial) {
    std::vector<bool> result(polynomial.operands.size(), false);
    std::set<std::pair<int, int>> written;
    for (const Path& path : polynomial.paths) written.emplace(path.output().operand, path.output().segment);
    for (std::size_t o = 0; o < result.size(); ++o)
        for (int s = 0; polynomial.operands[o].role == Role::output && s < static_cast<int>(polynomial.operands[o].segments.size()); ++s)
            if (!written.contains({static_cast<int>(o), s})) result[o] = true;
    return result;
}

/// The kernel's paths scheduled again; as they are where they do not fit so.
void schedule_again(StreamKernel& kernel, SpareRegisters spare) {
    if (spare == SpareRegisters{}) return;
    kernel.problem.spare = spare;
    std::string why_not;
    if (std::optional<StreamSchedule> roomier = schedule_stream(kernel.problem, why_not)) kernel.schedule = std::move(*roomier);
}

}  // namespace

GpuKernels gpu_kernels(const GpuProblem& problem, const std::string& schedule, const std::vector<SpareRegisters>& spare,
                       const std::vector<StreamKernel>& chosen) {
    const std::map<std::string, StreamSplit> splits = {{"", StreamSplit::chosen},
                                                       {"stream", StreamSplit::chosen},
                                                       {"stream-whole", StreamSplit::never},
                                                       {"stream-split", StreamSplit::always}};
    const auto split = splits.find(schedule);
    if (split == splits.end() && schedule != "rows" && schedule != "general" && schedule != "table")
        fail("GPU schedule '" + schedule + "' is unknown; expected stream, stream-whole, stream-split, rows, general or table");
    GpuKernels kernels;
    std::string why_not = "the general schedule was asked for";
    if (!chosen.empty()) kernels.streams = chosen;
    else if (split != splits.end()) kernels.streams = stream_kernels(problem, why_not, split->second);
    if (kernels.streams.empty() && split != splits.end() && !schedule.empty())
        throw Error(ErrorKind::unsupported, "the stream schedule does not take this polynomial: " + why_not);
    for (std::size_t k = 0; k < std::min(kernels.streams.size(), spare.size()); ++k) schedule_again(kernels.streams[k], spare[k]);
    std::string why_not_rows = why_not;
    if (kernels.streams.empty() && (schedule.empty() || schedule == "rows")) {
        GpuProblem own = problem;
        if (!spare.empty()) own.spare = spare.front();
        kernels.rows = schedule_rows(own, why_not_rows);
    }
    if (!kernels.rows && schedule == "rows")
        throw Error(ErrorKind::unsupported, "the schedule of rows with matrices does not take this polynomial: " + why_not_rows);
    const std::size_t operands = problem.polynomial.operands.size();
    kernels.summed.assign(operands, false);
    kernels.cleared.assign(operands, false);
    kernels.needs_sums.assign(operands, false);
    kernels.has_parts.assign(operands, false);
    for (std::size_t k = 0; k < kernels.streams.size(); ++k) {
        const auto& [own, stream] = kernels.streams[k];
        const auto add = [&](GpuStageKind kind, KernelText text) {
            kernels.stages.push_back({.kind = kind, .kernel = std::move(text), .stream = static_cast<int>(k)});
        };
        kernels.explain += explain(stream, own);
        for (std::size_t o = 0; o < operands; ++o) {
            if (stream.operands[o].summed) kernels.summed[o] = true;
            if (stream.parts && stream.operands[o].way == StreamWay::accumulated) kernels.has_parts[o] = true;
        }
        const bool sums = std::ranges::find(stream.operands, StreamWay::accumulated, &StreamOperand::way) != stream.operands.end();
        if (stream.parts) add(GpuStageKind::stream_parts, emit_stream_parts(own, stream));
        else if (stream.cuts && sums) add(GpuStageKind::stream_cuts, emit_stream_cuts(own, stream));
        add(GpuStageKind::stream, emit_stream(own, stream));
    }
    if (!kernels.streams.empty()) kernels.cleared = unwritten(problem.polynomial);
    if (schedule == "table") {
        kernels.table = schedule_table(problem, why_not);
        if (!kernels.table)
            throw Error(ErrorKind::unsupported, "the kernel compiled with the library does not take this polynomial: " + why_not);
        kernels.general = kernels.table->general;
        kernels.explain = explain(*kernels.table, problem);
    } else if (kernels.rows) {
        kernels.explain = explain(*kernels.rows, problem) + "not the stream schedule: " + why_not + "\n";
        for (std::size_t o = 0; o < operands; ++o) {
            const Operand& operand = problem.polynomial.operands[o];
            kernels.summed[o] = operand.role == Role::output && operand.rows.kind != Addressing::Kind::each;
        }
        kernels.stages.push_back({.kind = GpuStageKind::rows, .kernel = emit_rows(problem, *kernels.rows)});
    } else if (kernels.streams.empty()) {
        kernels.general = schedule_general(problem);
        kernels.explain = explain(*kernels.general, problem) + "not the stream schedule: " + why_not + "\n";
        if (schedule.empty()) kernels.explain += "not the schedule of rows with matrices: " + why_not_rows + "\n";
    }
    if (kernels.general) {
        for (std::size_t o = 0; o < operands; ++o)
            kernels.summed[o] = problem.polynomial.operands[o].role == Role::output && kernels.general->sums[o] != RowSum::own;
        if (problem.ordered) kernels.has_parts = kernels.summed;
        for (std::size_t o = 0; o < operands; ++o)
            if (problem.polynomial.operands[o].size() == 0) kernels.has_parts[o] = false;
        if (std::ranges::find(kernels.has_parts, true) != kernels.has_parts.end())
            kernels.stages.push_back({.kind = GpuStageKind::general_parts, .kernel = emit_part_targets(problem)});
        if (!kernels.general->jobs.empty())
            kernels.stages.push_back(
                {.kind = GpuStageKind::general, .kernel = kernels.table ? table_kernel(problem) : emit_general(problem, *kernels.general)});
    }
    for (std::size_t o = 0; o < operands; ++o)
        if (kernels.has_parts[o])
            kernels.stages.push_back(
                {.kind = GpuStageKind::join, .kernel = emit_join(problem, static_cast<int>(o)), .operand = static_cast<int>(o)});
    for (std::size_t o = 0; o < operands; ++o) {
        if (!kernels.summed[o] || kernels.has_parts[o] || problem.storage[o] == problem.compute ||
            problem.polynomial.operands[o].size() == 0)
            continue;
        kernels.needs_sums[o] = true;
        const auto operand = static_cast<int>(o);
        kernels.stages.push_back({.kind = GpuStageKind::rounding,
                                  .kernel = kernels.table ? table_rounding(problem, operand) : emit_rounding(problem, operand),
                                  .operand = operand});
    }
    return kernels;
}

std::string full_text(const GpuStage& stage) {
    std::string text(device_preamble());
    switch (stage.kind) {
        case GpuStageKind::general:
        case GpuStageKind::join:
        case GpuStageKind::rounding:
            break;
        case GpuStageKind::rows:
            text += rows_preamble();
            break;
        default:
            text += stream_preamble();
    }
    return text + "\n" + stage.kernel.text;
}

GpuChunks gpu_chunks(const GpuKernels& kernels, std::int64_t rows, std::int64_t stationary_rows, int multiprocessors) {
    GpuChunks chunks;
    if (kernels.rows) {
        chunks.rows = chunks.reach = std::max<std::int64_t>(1, rows);
    } else if (kernels.streams.empty()) {
        chunks.rows = general_chunk(rows, kernels.general->ordered);
        chunks.reach = general_run(rows);
    } else {
        const StreamChunks stream = stream_chunks(kernels.streams.front().schedule, rows, stationary_rows, multiprocessors);
        chunks = {.rows = stream.rows, .reach = stream.reach, .divided = stream.divided};
    }
    chunks.count = (rows + chunks.rows - 1) / chunks.rows;
    return chunks;
}

LaunchShape gpu_shape(const GpuKernels& kernels, const GpuStage& stage, std::int64_t rows, const GpuChunks& chunks,
                      std::int64_t stream_blocks, std::int64_t numbers, std::int64_t row_numbers) {
    constexpr std::int64_t threads = 256, most_blocks = 65536;
    switch (stage.kind) {
        case GpuStageKind::general:
            return general_shape(*kernels.general, rows);
        case GpuStageKind::rows:
            return rows_shape(*kernels.rows, rows);
        case GpuStageKind::general_parts:
        case GpuStageKind::stream_cuts:
        case GpuStageKind::stream_parts:
            return {.grid = {chunks.divided ? (chunks.count + 3) / 4 : 0, 1}, .threads = 128};
        case GpuStageKind::stream: {
            const StreamSchedule& stream = kernels.streams[static_cast<std::size_t>(stage.stream)].schedule;
            return {.grid = {std::min(chunks.count, stream_blocks), 1}, .threads = stream.threads(), .shared_bytes = stream.shared_bytes()};
        }
        case GpuStageKind::join:
            return {.grid = {chunks.divided ? std::min<std::int64_t>(chunks.parts(), 1024) : 0,
                             std::clamp<std::int64_t>((row_numbers + threads - 1) / threads, 1, 1024)},
                    .threads = threads};
        case GpuStageKind::rounding:
            break;
    }
    return {.grid = {std::min<std::int64_t>((numbers + threads - 1) / threads, most_blocks), 1}, .threads = threads};
}

}  // namespace clebsch
