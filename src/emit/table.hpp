#pragma once
// The kernel that reads its coefficients when it runs (skeletons/table.cuh), as a kernel of a polynomial.
#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// Its name and arguments; the text is the same for every polynomial.
KernelText table_kernel(const GpuProblem& problem);
/// Rounds the sums of an output to its storage.
KernelText table_rounding(const GpuProblem& problem, int operand);

}  // namespace clebsch
