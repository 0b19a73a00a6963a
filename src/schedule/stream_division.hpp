#pragma once
// How the paths and channels of a stream kernel are divided over the warps of a team.
#include <vector>

#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// One way to divide the work.
struct StreamDivision {
    std::vector<std::vector<StreamShare>> warps;
    std::vector<double> instructions;  ///< of every warp, for a row
    int live = 0;                      ///< of the fullest warp
};

/// Divisions over each of these numbers of warps; several each, which differ in the paths that stay together: those that share products,
/// that add to one row elsewhere, or neither. Every sum and stored output has one owner. Uses axes, operands and channels of the schedule.
std::vector<StreamDivision> divisions(const GpuProblem& problem, const StreamSchedule& schedule, const std::vector<int>& warps);

}  // namespace clebsch
