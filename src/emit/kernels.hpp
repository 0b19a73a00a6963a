#pragma once
// Everything a polynomial needs on a GPU, as text: which schedule, which kernels in which order, and why. No device is needed.
#include <optional>
#include <string>
#include <vector>

#include "schedule/gpu_general.hpp"
#include "schedule/gpu_kernel.hpp"
#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// What one kernel of the sequence is, hence how it is launched.
enum class GpuStageKind : std::uint8_t { general, stream_cuts, stream, rounding };

struct GpuStage {
    GpuStageKind kind = GpuStageKind::general;
    KernelText kernel;
    int operand = -1;  ///< rounding: the output
};

struct GpuKernels {
    std::optional<StreamSchedule> stream;
    std::optional<GeneralSchedule> general;
    std::vector<GpuStage> stages;  ///< in the order they run
    std::vector<bool> summed;      ///< per operand: an output that is added to and has to begin as zero
    std::vector<bool> needs_sums;  ///< of those: stored otherwise than summed, so that the workspace holds the sums
    std::string explain;
};

/// `schedule`: "" chooses, "stream" and "general" force. Throws Error(unsupported) when the forced one does not take the polynomial,
/// Error(invalid_argument) for another name.
GpuKernels gpu_kernels(const GpuProblem& problem, const std::string& schedule = "");

/// The text as the compiler gets it: the skeleton it stands on, then the kernel.
std::string full_text(const GpuStage& stage);

}  // namespace clebsch
