#pragma once
// A program as steps on a GPU, before any GPU is asked: what a plan makes and a folder of prebuilt kernels is filled with. Internal to
// run/gpu.
#include <optional>
#include <utility>
#include <vector>

#include "describe/program.hpp"
#include "run/buffers.hpp"
#include "schedule/gpu_matrix.hpp"
#include "schedule/gpu_program.hpp"

namespace clebsch::gpu {

/// What is launched as one: a step, or several as a chain.
struct ScheduledStep {
    std::vector<GpuProgramStep> links;
    std::optional<MatrixSchedule> matrix;  ///< of a polynomial that runs as matrix products
};

struct ScheduledProgram {
    Program program;             ///< what runs: simplified, with the copies that conversions need
    std::vector<int> arguments;  ///< values: the inputs, then the outputs
    std::vector<DType> dtypes;   ///< of every value
    std::vector<ScheduledStep> steps;
    std::vector<std::pair<int, int>> conversions_before, conversions_after;  ///< (from, to)
};

/// `dtypes`: of the arguments. `compute_again`: ProgramOptions.
ScheduledProgram schedule_program(const Program& program, const std::vector<DType>& dtypes, DType compute, bool compute_again);

}  // namespace clebsch::gpu
