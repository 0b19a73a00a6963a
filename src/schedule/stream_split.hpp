#pragma once
// Into how many stream kernels a channel-wise polynomial is split.
#include <optional>
#include <string>
#include <vector>

#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// One of the kernels: the problem with its paths alone (operands and indices stay), and how it runs.
struct StreamKernel {
    GpuProblem problem;
    StreamSchedule schedule;
};

enum class StreamSplit : std::uint8_t { chosen, never, always };

/// The kernels that run a polynomial one after another. Paths that share a segment with channels stay in one kernel, so that no number with
/// channels is read or written twice: a convolution can be split by its input's segments. Kernels are split where that is predicted to be
/// faster: their code fits the instruction cache, they need fewer registers, and each has channels of one number. Empty when the
/// schedule does not take the polynomial; `why_not` then says why.
/// `split`: by prediction; for measurements and tests a kernel for everything, or one for every set of paths that can stand alone.
std::vector<StreamKernel> stream_kernels(const GpuProblem& problem, std::string& why_not, StreamSplit split = StreamSplit::chosen);

}  // namespace clebsch
