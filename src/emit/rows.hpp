#pragma once
// Polynomials with a weight matrix per row (schedule/gpu_rows) as CUDA C++.
#include "schedule/gpu_kernel.hpp"
#include "schedule/gpu_rows.hpp"

namespace clebsch {

/// One kernel that computes all outputs, complete but for the preambles; those summed over rows are added to.
KernelText emit_rows(const GpuProblem& problem, const RowsSchedule& schedule);

}  // namespace clebsch
