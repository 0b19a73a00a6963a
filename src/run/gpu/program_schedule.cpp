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
    std::vector<GpuProgramStep> steps;
    for (const TileGroup& tile : tiled.groups)
        for (GpuProgramStep& step : gpu_steps(result.program, tile.nodes)) steps.push_back(std::move(step));

    // Matrix products want their arrays in the compute type.
    std::vector<bool> needed(result.program.values.size(), false);
    std::vector<std::optional<MatrixSchedule>> matrices(steps.size());
    std::vector<bool> alone(steps.size(), false);
    for (std::size_t s = 0; s < steps.size(); ++s) {
        if (steps[s].width != 0) continue;
        const auto& node = std::get<PolynomialNode>(result.program.nodes[at(steps[s].nodes[0])]);
        matrices[s] = schedule_matrix(node.polynomial);
        if (!matrices[s]) continue;
        alone[s] = true;
        for (const MatrixJob& job : matrices[s]->jobs) needed[at(node.arguments[at(job.output)])] = true;
        for (const GradientJob& job : matrices[s]->gradient.jobs) needed[at(node.arguments[at(job.output)])] = true;
        for (const GradientTerm& term : matrices[s]->gradient.terms)
            for (const std::int64_t operand : {term.left, term.right}) needed[at(node.arguments[at(operand)])] = true;
        for (const MatrixTerm& term : matrices[s]->terms)
            for (const std::int64_t operand : {term.input, term.weight}) needed[at(node.arguments[at(operand)])] = true;
    }
    const auto copies = add_copies(result.program, needed, result.dtypes, compute);
    for (GpuProgramStep& step : steps)
        for (int& value : step.stored)
            for (const auto& [argument, copy] : copies)
                if (value == argument) value = copy;
    for (const std::vector<std::size_t>& chain : step_chains(result.program, steps, alone)) {
        ScheduledStep& made = result.steps.emplace_back();
        made.matrix = std::move(matrices[chain.front()]);
        for (const std::size_t s : chain) made.links.push_back(std::move(steps[s]));
    }
    for (const auto& [argument, copy] : copies) {
        if (std::ranges::find(result.program.inputs, argument) != result.program.inputs.end())
            result.conversions_before.emplace_back(argument, copy);
        else result.conversions_after.emplace_back(copy, argument);
    }
    return result;
}

}  // namespace clebsch::gpu
