#pragma once
// Which kernels a problem gets, once the compiler has had its say.
#include <functional>
#include <string>
#include <vector>

#include "emit/kernels.hpp"

namespace clebsch::gpu {

/// The kernels of a problem for whoever compiles or loads them: `use` is called with them, gives the bytes that each of their stages
/// spills, and is called again with others: whose warps all have the same number of registers, where the compiler refuses to move registers
/// in the first (RegistersRefused), or refused to when a folder of prebuilt kernels was filled (KernelMissing); whose consumers have more
/// registers, or keep more in shared memory, where a stream kernel spills (a kernel of rows: fewer blocks), a few times at most. The last
/// call is with those that are returned; their `explain` says what happened. Any other error is let through.
using UseKernels = std::function<std::vector<int>(const GpuKernels&)>;
GpuKernels gpu_kernels_for(GpuProblem& problem, const std::string& schedule, const UseKernels& use);

}  // namespace clebsch::gpu
