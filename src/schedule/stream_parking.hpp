#pragma once
// Inputs that stay with the receiver need not stay in registers: a warp may keep some in shared memory, a place for every lane, and read
// them in every row. What most of them need is a register only while one pair of segments is computed.
#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// Segments that may be parked, those first that fewest pairs need and of these the longest.
std::vector<std::pair<int, int>> parking_order(const GpuProblem& problem, const StreamSchedule& schedule);
/// Parks segments in this order until a warp has parked so many numbers of a lane, or all, and takes all others back.
void park(const GpuProblem& problem, StreamSchedule& schedule, const std::vector<std::pair<int, int>>& order, int numbers);

}  // namespace clebsch
