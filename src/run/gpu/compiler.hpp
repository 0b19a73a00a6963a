#pragma once
// NVRTC, the run-time compiler, found and loaded when first used. The only file that knows its functions.
#include <string>
#include <vector>

#include "base/error.hpp"
#include "schedule/gpu_target.hpp"

namespace clebsch::gpu {

/// What is there (loading it if need be) or why nothing is: one line for `clebsch info`. Never throws.
struct CompilerStatus {
    bool found = false;
    std::string text;  ///< "NVRTC 13.0, /path/to/libnvrtc.so.13", or what was tried and how to get it
};
CompilerStatus compiler_status();

/// Where the library is looked for, in order: CLEBSCH_NVRTC (and nowhere else if it is set), a copy the process has loaded already, the
/// CUDA toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda), NVIDIA's wheels for CUDA 13 and 12 and PyTorch's own copy in the Python
/// environments nearby (beside this library, VIRTUAL_ENV), conda (CONDA_PREFIX), the system loader's search.
std::vector<std::string> compiler_candidates();

struct Compiled {
    std::string cubin;
    std::string log;  ///< the compiler's and the assembler's words: registers, spills, warnings
};

/// A text that moves registers between warps, as stream kernels may, and that the assembler refuses for it: a producer may not keep more
/// registers than any part of the kernel uses, which the assembler alone knows. The message is its log.
class RegistersRefused : public Error {
    using Error::Error;
};

/// The text as machine code of one architecture; architecture-specific features of sm_90 and newer (sm_90a) are on. Thread-safe.
/// Throws Error(not_found) without the library, Error(unsupported) with the compiler's log when it does not take the text, which is a
/// RegistersRefused for that reason.
Compiled compile(const std::string& text, const std::string& name, const GpuTarget& target);

/// What identifies the compiler for a cache: version, and size of its file. Throws as compile.
std::string compiler_identity();

/// Registers per thread, bytes spilled (stores and loads) and bytes of static shared memory, read from a log of the assembler.
struct KernelResources {
    int registers = 0, spill_bytes = 0, shared_bytes = 0;
};
KernelResources resources_of(const std::string& log);

}  // namespace clebsch::gpu
