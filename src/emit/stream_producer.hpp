#pragma once
// The producer of a stream kernel's teams: the warp that fills stages ahead of the consumers and takes the outputs they leave there.
#include "emit/text.hpp"
#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// The functions fills_alone, produce and, where a row's outputs leave through stages, retire; behind the kernel's Arguments, Control,
/// target_of and zero_sums.
void write_stream_producer(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule);

}  // namespace clebsch
