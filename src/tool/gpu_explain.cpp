#include "tool/gpu_explain.hpp"

#include <cstdio>

#include "base/error.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/plan.hpp"
#include "schedule/gpu_matrix.hpp"
#include "schedule/gpu_order.hpp"
#include "tool/command.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {

int explain_gpu(const Request& request, const std::string& target, DType dtype, bool deterministic, bool source, bool json) {
    const auto* polynomial = std::get_if<Polynomial>(&request.description);
    if (polynomial == nullptr)
        throw Error(ErrorKind::unsupported, request.title + " is a program: clebsch explain --target takes polynomials");
    const gpu::CompilerStatus compiler = gpu::compiler_status();
    std::string text;
    std::optional<MatrixSchedule> products;  // which leave a rest, or nothing
    if (gpu::runs_by_matrix_products(*polynomial, {})) {
        products = schedule_matrix(*polynomial);
        text += explain(*products, *polynomial);
        polynomial = products->rest ? &*products->rest : nullptr;
    }
    const std::vector<OrderedPass> passes = polynomial != nullptr ? gpu_passes(*polynomial, deterministic) : std::vector<OrderedPass>();
    if (deterministic) text += explain_passes(passes.size());
    for (const OrderedPass& pass : passes) {
        GpuProblem problem = gpu::gpu_problem(pass, std::vector<DType>(polynomial->operands.size(), dtype),
                                              dtype == DType::float64 ? DType::float64 : DType::float32, gpu_target(target), deterministic);
        std::string own;
        gpu::gpu_kernels_for(problem, "", [&](const GpuKernels& kernels) {
            own = (deterministic ? explain(pass, size_of(dtype)) : "") + kernels.explain;
            for (const GpuStage& stage : kernels.stages) {
                own += "kernel " + stage.kernel.name;
                if (compiler.found) {
                    const gpu::KernelResources resources =
                        gpu::resources_of(gpu::compile(full_text(stage), stage.kernel.name, problem.target).log);
                    if (resources.registers > 0)  // a compiler that has seen the text before may say nothing
                        own += ": " + std::to_string(resources.registers) + " registers, " + std::to_string(resources.spill_bytes) +
                               " bytes spilled";
                }
                own += "\n";
                if (source) own += stage.kernel.text + "\n";
            }
        });
        text += own;
    }
    if (!compiler.found) text += "registers: " + compiler.text + "\n";
    const std::string name = gpu_target(target).name();
    if (!json) {
        std::fputs((request.title + " on " + name + ", " + to_text(dtype) + "\n" + text).c_str(), stdout);
        return exit_done;
    }
    Report report;
    report.fact("operation", "operation", request.title);
    report.fact("target", "target", name);
    report.fact("dtype", "dtype", to_text(dtype));
    report.fact("schedule", "schedule", text);
    report.print(json);
    return exit_done;
}

}  // namespace clebsch::tool
