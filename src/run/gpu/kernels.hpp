#pragma once
// Text to loaded kernel: memory, then disk, then the compiler. One build per text and device, whoever asks.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "describe/polynomial.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/driver.hpp"
#include "run/gpu/store.hpp"
#include "schedule/gpu_kernel.hpp"

namespace clebsch::gpu {

/// There is no compiler, and no folder of prebuilt kernels has the kernel. The message says what was looked for and how to do without.
class KernelMissing : public Error {
    using Error::Error;
};

/// A kernel's text (complete) and the name of its function.
struct KernelSource {
    std::string name, text;
};

KernelSource source_of(const KernelText& kernel, std::string_view preamble = {});

/// The machine code of a kernel: from a folder of prebuilt kernels, else from the cache, else from the compiler, whose work is then kept.
/// Needs no GPU. Throws Error as compile(); KernelMissing without the compiler.
MachineCode machine_code(const GpuTarget& target, const KernelSource& source);
/// What is kept of the compiler's work.
MachineCode machine_code_of(const Compiled& result);
/// What a kernel is kept under in a folder of prebuilt ones, where no compiler is at hand.
Hash prebuilt_key(const GpuTarget& target, const KernelSource& source);

/// Calls work(0) to work(count - 1) in threads side by side, and rethrows the first error once all are done. For what compiles.
void side_by_side(std::size_t count, const std::function<void(std::size_t)>& work);

/// Compiles what is in no cache in parallel threads. In the order asked. Throws Error as compile() and Module do.
std::vector<std::shared_ptr<const Module>> load_kernels(const Device& device, const std::vector<KernelSource>& sources);

/// Kernels that were compiled (not found in a cache) in this process so far: for tests and measurements.
int compiled_kernels();

}  // namespace clebsch::gpu
