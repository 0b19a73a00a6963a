#include "tool/machine_options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "run/gpu/driver.hpp"
#include "run/gpu/store.hpp"

namespace clebsch::tool {

std::string not_positive(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0' && value > 0 && std::isfinite(value) ? "" : "expected a finite number above 0, got '" + text + "'";
}

std::string not_natural(const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? "" : "expected an integer of at least 0, got '" + text + "'";
}

void check_environment() {
    default_threads();
    default_instruction_set();
}

DType MachineOptions::type() const {
    if (dtype == "float32") return DType::float32;
    if (dtype == "float64") return DType::float64;
    fail("--dtype: expected float32 or float64, got '" + dtype + "'");
}

std::optional<InstructionSet> MachineOptions::isa() const {
    if (instruction_set.empty()) return std::nullopt;
    const InstructionSet asked = parse_instruction_set(instruction_set);
    require_available(asked);
    return asked;
}

std::optional<int> MachineOptions::gpu() const {
    const std::optional<int> number = gpu::parse_device(device, "--device");
    if (!number && !prebuilt.empty()) fail("--prebuilt: expected with --device cuda only, got --device " + device);
    if (!number) return number;
    for (const std::string& folder : prebuilt) {
        if (!std::filesystem::is_directory(folder)) throw Error(ErrorKind::not_found, "--prebuilt: " + folder + " is no folder");
        gpu::add_prebuilt_folder(folder);
    }
    for (const auto& [option, given] :
         {std::pair{"--threads", threads != 0}, {"--instruction-set", !instruction_set.empty()}, {"--copy-megabytes", copy_megabytes != 0}})
        if (given) fail(std::string(option) + ": expected with --device cpu only, got --device " + device);
    return number;
}

MeasuredPeaks MachineOptions::peaks(const ParallelFor& parallel_for) const {
    constexpr std::int64_t megabyte = 1'000'000;
    return measure_peaks({.compute = type(), .isa = isa().value_or(default_instruction_set()), .copy_bytes = copy_megabytes * megabyte},
                         parallel_for);
}

void add_machine_options(CLI::App& command, MachineOptions& options, bool dtype, bool peaks) {
    command.add_option("--threads", options.threads, "Threads (default: one per processor, or CLEBSCH_NUM_THREADS)")
        ->check(CLI::Range(1, 1024));
    command.add_option("--instruction-set", options.instruction_set, "baseline, avx2, avx512 or neon (default: the best here)");
    if (peaks)
        command
            .add_option("--copy-megabytes", options.copy_megabytes,
                        "Size of the arrays whose copy is measured (default: larger than the last-level cache)")
            ->check(CLI::Range(1, 1'000'000));
    if (dtype) command.add_option("--dtype", options.dtype, "float32 or float64")->capture_default_str();
}

void add_device_option(CLI::App& command, MachineOptions& options) {
    command.add_option("--device", options.device, "cpu, cuda or cuda:NUMBER")->capture_default_str();
    command.add_flag("--deterministic", options.deterministic,
                     "On a GPU: every sum in one order, so that results are the same bits every time (slower)");
    command
        .add_option("--prebuilt", options.prebuilt, "With --device cuda: a folder of kernels made by `clebsch prebuild`; again for others")
        ->allow_extra_args(false);
}

Threads::Threads(int threads)
    : own_(threads > 0 ? std::make_unique<ThreadPool>(threads) : nullptr), pool_(own_ ? own_.get() : &default_pool()) {}

void add_size_options(CLI::App& command, SizeOptions& sizes) {
    command.add_option("--nodes", sizes.nodes, "Nodes of the random graph (default 400)")->check(CLI::Range(1, 100'000'000));
    command.add_option("--neighbors,--neighbours", sizes.neighbours, "Edges that every node receives")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    command.add_option("--rows", sizes.rows, "Rows of what has no graph (default 2000; harmonics 20000)")
        ->check(CLI::Range(1, 1'000'000'000));
}

TopologyOptions topology_options(const SizeOptions& sizes, const std::string& kind, bool quick) {
    TopologyOptions options;
    const bool many = kind == "harmonics", some = kind == "fully connected" || kind == "product";
    options.nodes = sizes.nodes > 0 ? sizes.nodes : quick ? 100 : 400;
    options.neighbours = sizes.neighbours;
    options.rows = sizes.rows > 0 ? sizes.rows
                                  : (many                              ? 20'000
                                     : some                            ? 10'000
                                     : kind == "symmetric contraction" ? 500
                                                                       : 2'000) /
                                        (quick ? 4 : 1);
    return options;
}

void report_peaks(Report& report, const MeasuredPeaks& measured) {
    report.fact("peak_threads", "threads", measured.threads);
    report.fact("instruction_set", "instruction set", to_text(measured.isa));
    report.fact("copy_bytes_per_second", "copy bandwidth, measured",
                {measured.peaks.copy_bytes_per_second,
                 number(measured.peaks.copy_bytes_per_second * 1e-9, 3).text + " GB/s (read and written, arrays of " +
                     bytes(static_cast<double>(measured.copy_bytes)).text +
                     (measured.beyond_cache() ? ", larger than the last-level cache)" : ", smaller than the last-level cache)")});
    report.fact("last_level_cache_bytes", "last-level cache",
                measured.last_level_cache_bytes > 0 ? bytes(static_cast<double>(measured.last_level_cache_bytes)) : Cell());
    report.fact("multiply_adds_per_second", std::string("FMA peak, measured, ") + to_text(measured.compute),
                {measured.peaks.multiply_adds_per_second, number(2e-9 * measured.peaks.multiply_adds_per_second, 3).text + " GFLOP/s"});
}

}  // namespace clebsch::tool
