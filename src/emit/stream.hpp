#pragma once
// The stream schedule as CUDA C++.
#include "schedule/gpu_kernel.hpp"
#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// The kernel. Outputs through other indices than the stationary one are added to and must hold zeros; all others are written.
KernelText emit_stream(const GpuProblem& problem, const StreamSchedule& schedule);

/// Run before it when schedule.cuts: sets the output rows to zero to which several blocks will add.
KernelText emit_stream_cuts(const GpuProblem& problem, const StreamSchedule& schedule);
/// Instead, when schedule.parts: says whom parts belong to, and sets them to zero.
KernelText emit_stream_parts(const GpuProblem& problem, const StreamSchedule& schedule);

}  // namespace clebsch
