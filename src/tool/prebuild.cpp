// `clebsch prebuild`: a folder of kernels for machines with a GPU and without its run-time compiler.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "model/potential.hpp"
#include "run/gpu/ascending.hpp"
#include "run/gpu/prebuild.hpp"
#include "tool/command.hpp"
#include "tool/explain_model.hpp"
#include "tool/force_field_file.hpp"
#include "tool/gpu_bench.hpp"
#include "tool/passes.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {
namespace {

struct Arguments {
    std::vector<std::string> names;
    std::string architecture, output, passes = "forward,backward";
    MachineOptions machine;
    ModelOptions model;
    bool deterministic = false, json = false;
};

void add_operation(gpu::PrebuiltFolder& folder, const std::string& name, const Arguments& arguments) {
    OperationArguments operation;
    operation.name = name;
    const std::vector<std::string> wanted = split(arguments.passes, ',');
    const auto is_wanted = [&](const char* pass) { return std::ranges::find(wanted, pass) != wanted.end(); };
    for (const Pass& pass : passes_of(read_request(operation).description, {}, is_wanted("double") ? 2 : is_wanted("backward") ? 1 : 0)) {
        if (!is_wanted(pass.key == "double_backward" ? "double" : pass.key.c_str())) continue;
        const DType dtype = arguments.machine.type();
        if (const auto* polynomial = std::get_if<Polynomial>(&pass.description))
            folder.add(*polynomial, gpu::PlanOptions{.dtypes = std::vector<DType>(polynomial->operands.size(), dtype),
                                                     .compute = dtype,
                                                     .deterministic = arguments.deterministic});
        if (const auto* program = std::get_if<Program>(&pass.description))
            folder.add(*program, gpu::ProgramOptions{.dtypes = std::vector<DType>(program->inputs.size() + program->outputs.size(), dtype),
                                                     .compute = dtype,
                                                     .deterministic = arguments.deterministic});
    }
}

int run(const Arguments& arguments) {
    for (const std::string& pass : split(arguments.passes, ','))
        if (pass != "forward" && pass != "backward" && pass != "double")
            fail("--passes: expected some of forward,backward,double, got '" + pass + "'");
    Report report;
    Progress progress;
    gpu::PrebuiltFolder folder(arguments.output, gpu_target(arguments.architecture));
    Table& table = report.table("prebuilt", "", {{"what", "what", false}, {"kernels", "kernels"}, {"compiled", "compiled now"}});
    for (const std::string& name : arguments.names) {
        const int kernels = folder.kernels(), compiled = folder.compiled();
        progress.now("compiling " + name);
        if (is_checkpoint(name)) {
            PotentialOptions options = potential_options(arguments.machine, arguments.model);
            options.deterministic = arguments.deterministic;
            prebuild(folder, name, options);
        } else {
            add_operation(folder, name, arguments);
            folder.add(gpu_bench_sources());              // so that `clebsch bench` needs no compiler either
            folder.add({gpu::AscendingCheck::source()});  // nor calls in JAX
        }
        table.row({name, std::int64_t{folder.kernels() - kernels}, std::int64_t{folder.compiled() - compiled}});
    }
    progress.now("");
    report.print(arguments.json);
    return exit_done;
}

}  // namespace

void add_prebuild(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command =
        app.add_subcommand("prebuild", "A folder of GPU kernels for machines without CUDA's run-time compiler (NVRTC); needs no GPU");
    command->add_option("what", arguments->names, "Models (.nqx), operations and labels of named problems")->required();
    command->add_option("--arch", arguments->architecture, "Of the GPU: sm_80, sm_90, sm_100, sm_120")->required();
    command
        ->add_option("--output", arguments->output,
                     "The folder; beside MODEL it is found as MODEL.kernels, else by --prebuilt or CLEBSCH_PREBUILT")
        ->required();
    command->add_option("--passes", arguments->passes, "Of operations: some of forward,backward,double")->capture_default_str();
    command->add_option("--dtype", arguments->machine.dtype, "float32 or float64")->capture_default_str();
    command->add_flag("--deterministic", arguments->deterministic, "For plans whose sums have one order");
    add_model_options(*command, arguments->model);
    command->add_flag("--json", arguments->json, "For machines");
    command->footer(
        "Kernels are those of this version of the library; a folder may hold those of several models and architectures.\n"
        "Examples:\n"
        "  clebsch prebuild nequix-mp-1.nqx --arch sm_90 --output nequix-mp-1.nqx.kernels\n"
        "  clebsch prebuild nequix-main mace-large --arch sm_80 --passes forward,backward,double --output kernels\n"
        "  clebsch bench nequix-main --device cuda --prebuilt kernels");
    command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace clebsch::tool
