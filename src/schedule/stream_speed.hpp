#pragma once
// What a stream kernel takes, predicted: of two ways to compute the same, the one with fewer cycles is taken (stream_cycles).
#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// Rows per cycle of a multiprocessor as its instructions and the way from memory allow them.
double stream_speed(const StreamSchedule& schedule);

}  // namespace clebsch
