// clebsch info: what this build is, what it found on this machine, and why it chose what it chose.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "base/version.hpp"
#include "graph/vesin.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/driver.hpp"
#include "run/machine.hpp"
#include "run/threads.hpp"
#include "tool/command.hpp"
#include "tool/machine_options.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {
namespace {

/// A message of several lines in one.
std::string one_line(std::string text) {
    for (std::size_t i = text.find('\n'); i != std::string::npos; i = text.find('\n', i)) {
        const std::size_t end = std::min(text.find_first_not_of(" \n", i), text.size());
        text.replace(i, end - i, end == text.size() ? "" : " ");
    }
    return text;
}

int run(bool json, const MachineOptions& options) {
    const std::optional<int> gpu = options.gpu();
    Report report;
    const MachineInfo machine = machine_info();
    report.fact("version", "clebsch", std::string(version()));
    report.fact("build", "built by", std::string(build_description()));
    report.fact("processor", "processor", machine.processor);
    report.fact("processors", "processors of this process", machine.processors);
    report.fact("threads", "threads", default_pool().threads());
    report.fact("last_level_cache_bytes", "last-level cache",
                machine.last_level_cache_bytes > 0 ? bytes(static_cast<double>(machine.last_level_cache_bytes)) : Cell());
    report.fact("free_memory_bytes", "free memory",
                machine.free_memory_bytes > 0 ? bytes(static_cast<double>(machine.free_memory_bytes)) : Cell());
    Table& sets =
        report.table("instruction_sets", "instruction sets in this build",
                     {{"name", "name", false}, {"usable", "usable here", false}, {"chosen", "chosen", false}, {"why", "why", false}});
    for (const InstructionSetStatus& set : machine.compiled) sets.row({to_text(set.isa), set.usable, set.chosen, set.why});
    Table& libraries = report.table(
        "libraries", "libraries, loaded when first needed",
        {{"name", "name", false}, {"found", "found", false}, {"purpose", "for", false}, {"where", "where, or why not", false}});
    const VesinStatus vesin = vesin_status();
    libraries.row({"vesin", vesin.found, "neighbour lists", one_line(vesin.text)});
    const gpu::DriverStatus driver = gpu::driver_status();
    libraries.row({"CUDA driver", driver.found, "running on NVIDIA GPUs", one_line(driver.text)});
    const gpu::CompilerStatus compiler = gpu::compiler_status();
    libraries.row({"NVRTC", compiler.found, "compiling kernels for NVIDIA GPUs", one_line(compiler.text)});
    if (gpu) {
        const gpu::Device& device = gpu::Device::get(*gpu);
        report.fact("gpu", "GPU", device.name());
        report.fact("gpu_target", "its architecture", device.target().name());
        report.fact("gpu_multiprocessors", "its multiprocessors", device.multiprocessors());
        if (!compiler.found) throw Error(ErrorKind::not_found, compiler.text);
    }
    report.print(json);
    return exit_done;
}

}  // namespace

void add_info(CLI::App& app, int& status) {
    auto json = std::make_shared<bool>(false);
    auto options = std::make_shared<MachineOptions>();
    CLI::App* command = app.add_subcommand("info", "Processor, instruction sets, threads, and libraries found or not and why");
    add_device_option(*command, *options);
    command->add_flag("--json", *json, "For machines");
    command->footer(
        "With --device cuda it fails, and says why, where that GPU or the compiler of its kernels cannot be used.\n"
        "Examples:\n"
        "  clebsch info\n"
        "  clebsch info --device cuda");
    command->callback([json, options, &status] { status = run(*json, *options); });
}

}  // namespace clebsch::tool
