#pragma once
// Kernels around sums in a fixed order: rows sorted by where they lead, whom parts of sums belong to, parts added up.
#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// Where every row leads through a chain of so many indices, as order kernels want it; row i is at place i. Words of its arguments:
/// address, rows of the space it leads to and whether it is int64 (else int32), for every index; rows; error flag; targets; rows at places.
KernelText emit_order_targets(int indices);
/// One step of sorting them by 8 bits; arguments: OrderArguments of skeletons/order.cuh. `step`: "count", "scan" or "place".
KernelText emit_order_step(const std::string& step);
/// Rows a block of count and place takes, and threads of every block.
constexpr int order_tile = 2048, order_threads = 256;

/// Whether a sorted index ascends, or else NaN in all outputs; arguments: AscendingArguments of skeletons/ascending.cuh.
KernelText emit_ascending();
/// Threads of a block, and outputs one launch takes.
constexpr int ascending_threads = 1024, ascending_outputs = 8;

/// General schedule: the first and the last row that the sums of each chunk go to. A warp for every chunk, 4 a block.
KernelText emit_part_targets(const GpuProblem& problem);
/// Parts of an output's sums are added in their order. Blocks of 256 threads take parts in turn; who has the first of a sum's parts does
/// it. The second dimension of the grid divides the numbers of a row.
KernelText emit_join(const GpuProblem& problem, int operand);

}  // namespace clebsch
