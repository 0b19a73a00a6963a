#pragma once
// The general schedule as CUDA C++.
#include <vector>

#include "schedule/gpu_general.hpp"
#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// One kernel that computes all outputs; those summed over rows are added to, so they must hold zeros (or what they are added to).
/// Throws Error(unsupported) for descriptions with more operands than a kernel's arguments hold.
KernelText emit_general(const GpuProblem& problem, const GeneralSchedule& schedule);

/// The same as a link of a chain (emit/chain.hpp) whose blocks take so many rows, for polynomials without indices whose outputs have the
/// rows of the iteration space.
KernelText emit_general_link(const GpuProblem& problem, const GeneralSchedule& schedule, std::int64_t rows_of_block);

/// Rounds the sums of an output to its storage.
KernelText emit_rounding(const GpuProblem& problem, int operand);

}  // namespace clebsch
