#include "tool/gpu_explain.hpp"

#include <cstdio>

#include "base/error.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/kernel_choice.hpp"
#include "run/gpu/plan.hpp"
#include "schedule/gpu_matrix.hpp"
#include "schedule/gpu_order.hpp"
#include "tool/command.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {
namespace {

struct Wanted {
    GpuTarget target;
    DType dtype;
    bool deterministic, source;
};

/// What runs a polynomial and, if there is a compiler, the registers that its kernels need.
std::string explain_kernels(const Polynomial& polynomial, const Wanted& wanted) {
    const bool compile = gpu::compiler_status().found;
    const std::vector<OrderedPass> passes = gpu_passes(polynomial, wanted.deterministic);
    std::string text = wanted.deterministic ? explain_passes(passes.size()) : "";
    for (const OrderedPass& pass : passes) {
        GpuProblem problem =
            gpu::gpu_problem(pass, std::vector<DType>(polynomial.operands.size(), wanted.dtype),
                             wanted.dtype == DType::float64 ? DType::float64 : DType::float32, wanted.target, wanted.deterministic);
        std::string own;
        gpu::gpu_kernels_for(problem, "", [&](const GpuKernels& kernels) {
            std::vector<int> spilled;
            own = (wanted.deterministic ? explain(pass, size_of(wanted.dtype)) : "") + kernels.explain;
            for (const GpuStage& stage : kernels.stages) {
                own += "kernel " + stage.kernel.name;
                if (compile) {
                    const gpu::KernelResources resources =
                        gpu::resources_of(gpu::compile(full_text(stage), stage.kernel.name, problem.target).log);
                    spilled.push_back(resources.spill_bytes);
                    if (resources.registers > 0)  // a compiler that has seen the text before may say nothing
                        own += ": " + std::to_string(resources.registers) + " registers, " + std::to_string(resources.spill_bytes) +
                               " bytes spilled";
                }
                own += "\n";
                if (wanted.source) own += stage.kernel.text + "\n";
            }
            return spilled;
        });
        text += own;
    }
    return text;
}

/// The steps of a program of matrix products: what they multiply, and the kernels of what is left to ordinary ones.
std::string explain_products(const Program& program, const Wanted& wanted) {
    std::string text;
    for (const Node& node : program.nodes) {
        const Polynomial& polynomial = std::get<PolynomialNode>(node).polynomial;
        const std::optional<MatrixSchedule> products = schedule_matrix(polynomial);
        if (products) text += explain(*products, polynomial) + "  by kernels for every such product, chosen by the rows of a call\n";
        if (!products) text += explain_kernels(polynomial, wanted);
        else if (products->rest) text += explain_kernels(*products->rest, wanted);
    }
    return text;
}

}  // namespace

int explain_gpu(const Request& request, const std::string& target, DType dtype, bool deterministic, bool source, bool json) {
    const auto* polynomial = std::get_if<Polynomial>(&request.description);
    if (polynomial == nullptr)
        throw Error(ErrorKind::unsupported, request.title + " is a program: clebsch explain --target takes polynomials");
    const gpu::CompilerStatus compiler = gpu::compiler_status();
    const Wanted wanted{.target = gpu_target(target), .dtype = dtype, .deterministic = deterministic, .source = source};
    const std::optional<Program> products = gpu::matrix_program(*polynomial, {});
    std::string text = products ? explain_products(*products, wanted) : explain_kernels(*polynomial, wanted);
    if (!compiler.found) text += "registers: " + compiler.text + "\n";
    const std::string name = wanted.target.name();
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
