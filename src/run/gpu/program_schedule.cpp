#include "run/gpu/program_schedule.hpp"

#include <algorithm>

#include "describe/harmonics_chain.hpp"
#include "run/program_arguments.hpp"
#include "schedule/program_groups.hpp"

namespace clebsch::gpu {
namespace {

std::size_t at(std::int64_t position) { return static_cast<std::size_t>(position); }

}  // namespace

ScheduledProgram schedule_program(const Program& program, const std::vector<DType>& dtypes, DType compute, bool compute_again) {
    AgainLimits limits = keep_on_gpu;
    if (!compute_again) limits = {0, 0};
    TiledProgram tiled = tile_program(simplified(with_harmonic_chains(program)), true, limits);
    ScheduledProgram result;
    result.program = std::move(tiled.program);
    for (const std::vector<int>* values : {&result.program.inputs, &result.program.outputs})
        result.arguments.insert(result.arguments.end(), values->begin(), values->end());
    result.dtypes.assign(result.program.values.size(), compute);
    for (std::size_t i = 0; i < result.arguments.size(); ++i) result.dtypes[at(result.arguments[i])] = dtypes[i];
    for (const TileGroup& tile : tiled.groups)
        for (GpuProgramStep& step : gpu_steps(result.program, tile.nodes)) result.steps.push_back({std::move(step), {}});

    // Matrix products want their arrays in the compute type.
    std::vector<bool> needed(result.program.values.size(), false);
    for (ScheduledStep& step : result.steps) {
        if (step.step.width != 0) continue;
        const auto& node = std::get<PolynomialNode>(result.program.nodes[at(step.step.nodes[0])]);
        step.matrix = schedule_matrix(node.polynomial);
        if (!step.matrix) continue;
        for (const MatrixJob& job : step.matrix->jobs) needed[at(node.arguments[at(job.output)])] = true;
        for (const MatrixTerm& term : step.matrix->terms)
            for (const std::int64_t operand : {term.input, term.weight}) needed[at(node.arguments[at(operand)])] = true;
    }
    const auto copies = add_copies(result.program, needed, result.dtypes, compute);
    for (ScheduledStep& step : result.steps)
        for (int& value : step.step.stored)
            for (const auto& [argument, copy] : copies)
                if (value == argument) value = copy;
    for (const auto& [argument, copy] : copies) {
        if (std::ranges::find(result.program.inputs, argument) != result.program.inputs.end())
            result.conversions_before.emplace_back(argument, copy);
        else result.conversions_after.emplace_back(copy, argument);
    }
    return result;
}

}  // namespace clebsch::gpu
