#pragma once
// Times of polynomials on a GPU, against the copy bandwidth of the same run.
#include <string>
#include <vector>

#include "run/gpu/kernels.hpp"
#include "tool/machine_options.hpp"
#include "tool/request.hpp"

namespace clebsch::tool {

struct GpuProblemToTime {
    std::string label, kind;
    Description description;
};

struct GpuBenchOptions {
    std::vector<std::string> passes;     ///< of forward, backward, double
    std::vector<std::string> gradients;  ///< inputs; empty: all
    DType dtype = DType::float32;
    SizeOptions sizes;
    double seconds = 1;
    std::string schedule;
    int device = 0, blocks = 0, team_warps = 0, consumers = 0;
    bool deterministic = false, json = false;
};

/// Its own kernels, which fill arrays with random numbers.
std::vector<gpu::KernelSource> gpu_bench_sources();

/// --dtype where it is what a GPU's arrays hold: 16-bit numbers, too. Throws Error for anything else.
DType storage_type(const MachineOptions& options);

/// Prints the report; programs and what has no polynomial are named as left out. Returns an exit code.
int gpu_bench(const std::vector<GpuProblemToTime>& problems, const GpuBenchOptions& options);

}  // namespace clebsch::tool
