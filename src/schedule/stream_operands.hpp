#pragma once
// How the rows of a stream kernel's operands come and leave.
#include <string>

#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// Whether any path takes the operand by channels.
bool has_channels(const Polynomial& polynomial, int operand);

/// The ways of all operands, what of their rows is used and what lies where in a stage, given the receiver's indices. False, and why, where
/// this schedule has no way for one.
bool choose_ways(const GpuProblem& problem, StreamSchedule& schedule, std::string& why_not);

}  // namespace clebsch
