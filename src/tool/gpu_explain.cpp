#include "tool/gpu_explain.hpp"

#include <cstdio>

#include "base/error.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/plan.hpp"
#include "tool/command.hpp"

namespace clebsch::tool {

int explain_gpu(const Request& request, const std::string& target, DType dtype, bool source) {
    const auto* polynomial = std::get_if<Polynomial>(&request.description);
    if (polynomial == nullptr) throw Error(ErrorKind::unsupported, request.title + " is a program; only polynomials run on a GPU so far");
    GpuProblem problem = gpu::gpu_problem(*polynomial, std::vector<DType>(polynomial->operands.size(), dtype), dtype, gpu_target(target));
    const gpu::CompilerStatus compiler = gpu::compiler_status();
    std::string text;
    gpu::gpu_kernels_for(problem, "", [&](const GpuKernels& kernels) {
        text = request.title + " on " + problem.target.name() + ", " + to_text(dtype) + "\n" + kernels.explain;
        for (const GpuStage& stage : kernels.stages) {
            text += "kernel " + stage.kernel.name;
            if (compiler.found) {
                const gpu::KernelResources resources =
                    gpu::resources_of(gpu::compile(full_text(stage), stage.kernel.name, problem.target).log);
                if (resources.registers > 0)  // a compiler that has seen the text before may say nothing
                    text += ": " + std::to_string(resources.registers) + " registers, " + std::to_string(resources.spill_bytes) +
                            " bytes spilled";
            }
            text += "\n";
            if (source) text += stage.kernel.text + "\n";
        }
    });
    if (!compiler.found) text += "registers: " + compiler.text + "\n";
    std::fputs(text.c_str(), stdout);
    return exit_done;
}

}  // namespace clebsch::tool
