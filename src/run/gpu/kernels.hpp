#pragma once
// Text to loaded kernel: memory, then disk, then the compiler. One build per text and device, whoever asks.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/gpu/driver.hpp"

namespace clebsch::gpu {

/// A kernel's text (complete) and the name of its function.
struct KernelSource {
    std::string name, text;
};

/// Compiles what is in no cache in parallel threads. In the order asked. Throws Error as compile() and Module do.
std::vector<std::shared_ptr<const Module>> load_kernels(const Device& device, const std::vector<KernelSource>& sources);

/// Kernels that were compiled (not found in a cache) in this process so far: for tests and measurements.
int compiled_kernels();

}  // namespace clebsch::gpu
