#include "emit/kernels.hpp"

#include "base/error.hpp"
#include "emit/general.hpp"
#include "emit/stream.hpp"
#include "emit/text.hpp"

namespace clebsch {

GpuKernels gpu_kernels(const GpuProblem& problem, const std::string& schedule) {
    if (!schedule.empty() && schedule != "stream" && schedule != "general")
        fail("GPU schedule '" + schedule + "' is unknown; expected stream or general");
    GpuKernels kernels;
    std::string why_not = "the general schedule was asked for";
    if (schedule != "general") kernels.stream = schedule_stream(problem, why_not);
    if (!kernels.stream && schedule == "stream")
        throw Error(ErrorKind::unsupported, "the stream schedule does not take this polynomial: " + why_not);
    const std::size_t operands = problem.polynomial.operands.size();
    kernels.summed.assign(operands, false);
    kernels.needs_sums.assign(operands, false);
    if (kernels.stream) {
        kernels.explain = explain(*kernels.stream, problem);
        for (std::size_t o = 0; o < operands; ++o) kernels.summed[o] = kernels.stream->operands[o].way == StreamWay::scattered;
        if (kernels.stream->cuts) kernels.stages.push_back({GpuStageKind::stream_cuts, emit_stream_cuts(problem, *kernels.stream)});
        kernels.stages.push_back({GpuStageKind::stream, emit_stream(problem, *kernels.stream)});
    } else {
        kernels.general = schedule_general(problem);
        kernels.explain = explain(*kernels.general, problem) + "not the stream schedule: " + why_not + "\n";
        for (std::size_t o = 0; o < operands; ++o)
            kernels.summed[o] = problem.polynomial.operands[o].role == Role::output && kernels.general->sums[o] != RowSum::own;
        if (!kernels.general->jobs.empty()) kernels.stages.push_back({GpuStageKind::general, emit_general(problem, *kernels.general)});
    }
    for (std::size_t o = 0; o < operands; ++o) {
        if (!kernels.summed[o] || problem.storage[o] == problem.compute || problem.polynomial.operands[o].size() == 0) continue;
        kernels.needs_sums[o] = true;
        kernels.stages.push_back({GpuStageKind::rounding, emit_rounding(problem, static_cast<int>(o)), static_cast<int>(o)});
    }
    return kernels;
}

std::string full_text(const GpuStage& stage) {
    std::string text(device_preamble());
    if (stage.kind == GpuStageKind::stream || stage.kind == GpuStageKind::stream_cuts) text += stream_preamble();
    return text + "\n" + stage.kernel.text;
}

}  // namespace clebsch
