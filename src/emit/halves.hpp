#pragma once
// Products with weight matrices for many rows, by half-precision parts, as CUDA C++: two kernels for every description, which they read
// from tables in device memory.
#include <string>

#include "schedule/gpu_halves.hpp"
#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// The kernels of a launch, complete but for the preamble: the one that divides weights into parts, and the one that multiplies. Their
/// argument is HalvesArguments (skeletons/halves.cuh); blocks: one per piece, and as halves_shape says.
KernelText emit_halves_weights(GpuNumber compute, int columns);
KernelText emit_halves(GpuNumber compute, int columns);

/// What the kernels begin with, behind device_preamble.
std::string halves_preambles();

/// Words of HalvesArguments before the operands: addresses of jobs, pieces and divided weights, number of jobs, rows, tiles of columns a
/// block takes. Then address and stride of every operand.
constexpr std::size_t halves_first_operand = 6;

}  // namespace clebsch
