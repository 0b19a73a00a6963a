#pragma once
// Products with weight matrices as CUDA C++: one kernel for every description, which it reads from tables in device memory.
#include "schedule/gpu_kernel.hpp"
#include "schedule/gpu_matrix.hpp"

namespace clebsch {

/// The kernel, complete but for the preambles. Its argument is MatrixArguments (skeletons/matrix.cuh); blocks as matrix_shape says.
KernelText emit_matrix(GpuNumber compute, const MatrixTile& tile);

/// Words of MatrixArguments before the operands: addresses of jobs and terms, number of jobs, rows, the index array, whether it is int64,
/// rows of the space it leads to, address of the flag. Then address and stride of every operand.
constexpr std::size_t matrix_first_operand = 8;

}  // namespace clebsch
