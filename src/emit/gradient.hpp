#pragma once
// Gradients of weights that rows share as CUDA C++: kernels for every description, which they read from tables in device memory.
#include <string>

#include "schedule/gpu_gradient.hpp"
#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// The kernels, complete but for the preambles: tiles of a chunk of rows, and what adds the parts that they leave. The argument of both is
/// GradientArguments (skeletons/gradient.cuh); blocks as gradient_shape and gradient_sum_shape say.
KernelText emit_gradient(GpuNumber compute, const GradientTile& tile);
KernelText emit_gradient_sum(GpuNumber compute);
std::string gradient_preambles();

/// Words of GradientArguments before the operands: addresses of jobs and terms, number of jobs (the first kernel's), rows, rows of a chunk,
/// chunks, numbers of a part, address of the parts. Then address and stride of every operand.
constexpr std::size_t gradient_first_operand = 8;

}  // namespace clebsch
