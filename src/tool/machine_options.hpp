#pragma once
// Options that several subcommands share: threads, instruction set, dtype, the size of a problem, and peaks given or measured.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/peaks.hpp"
#include "run/threads.hpp"
#include "tool/report.hpp"
#include "tool/workload.hpp"

namespace CLI {
class App;
}

namespace clebsch::tool {

/// Checks of an option's text, for CLI11: what is wrong, or nothing. A positive, finite number; an integer of at least 0.
std::string not_positive(const std::string& text);
std::string not_natural(const std::string& text);

/// Throws Error for an environment variable of this library that no use would be made of. Commands that need none of them look too.
void check_environment();

struct MachineOptions {
    int threads = 0;              ///< 0: the default pool's
    std::string instruction_set;  ///< "": the default one
    std::string dtype = "float32";
    std::int64_t copy_megabytes = 0;  ///< 0: larger than the last-level cache
    std::string device = "cpu";
    bool deterministic = false;         ///< on a GPU; the processor always is
    std::vector<std::string> prebuilt;  ///< folders of kernels for the GPU

    DType type() const;  ///< throws Error unless float32 or float64
    std::optional<InstructionSet> isa() const;
    /// The number of the GPU asked for, whose plans then find kernels in the folders given; nothing: the processor. Throws Error for other
    /// text, and for options given that the device makes no use of.
    std::optional<int> gpu() const;
    /// Measures them with these options.
    MeasuredPeaks peaks(const ParallelFor& parallel_for) const;
};
/// `dtype`, `peaks`: whether the command has a choice of dtype, and measures peaks.
void add_machine_options(CLI::App& command, MachineOptions& options, bool dtype, bool peaks = true);
/// --device: cpu, cuda or cuda:NUMBER; --deterministic; --prebuilt.
void add_device_option(CLI::App& command, MachineOptions& options);

/// The pool that a subcommand runs on: the default one, or one of its own with as many threads as asked for.
class Threads {
 public:
    explicit Threads(int threads);
    ParallelFor parallel_for() const { return pool_->parallel_for(); }
    int count() const { return pool_->threads(); }

 private:
    std::unique_ptr<ThreadPool> own_;
    ThreadPool* pool_;
};

struct SizeOptions {
    std::int64_t nodes = 0, neighbours = 45, rows = 0;  ///< 0: what suits the problem
};
void add_size_options(CLI::App& command, SizeOptions& sizes);
/// Sizes for a kind of named problem (or ""): nodes x neighbours edges for convolutions, rows for the rest. quick: a quarter of it.
TopologyOptions topology_options(const SizeOptions& sizes, const std::string& kind, bool quick);

/// "2 threads, avx2, float32: copy 21 GB/s (512 MB arrays), FMA 120 GFLOP/s".
void report_peaks(Report& report, const MeasuredPeaks& measured);

}  // namespace clebsch::tool
