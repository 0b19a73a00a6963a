#pragma once
// Tapes of programs (schedule/lanes.hpp) as CUDA C++: a thread per row, every number a variable.
#include <span>

#include "schedule/gpu_kernel.hpp"
#include "schedule/lanes.hpp"

namespace clebsch {

/// One thread for each of `width` places of every row: a value is read and written at the thread's place, `width` 1 for tapes whose values
/// have many numbers. `storage`: of every value of the program. Arguments: `which` is a value of the program.
KernelText emit_tape(const Program& program, const LanesCode& code, std::int64_t width, std::span<const GpuNumber> storage,
                     GpuNumber compute);

/// The same as a link of a chain (emit/chain.hpp).
KernelText emit_tape_link(const Program& program, const LanesCode& code, std::int64_t width, std::span<const GpuNumber> storage,
                          GpuNumber compute);

/// Numbers of a value copied into another type of storage: as a tape of one place.
KernelText emit_conversion(const Program& program, int from, int to, GpuNumber from_storage, GpuNumber to_storage);

/// Lines of 16 bytes from one place to another, one of which may be the host's: a thread for each. Arguments: from, to, how many.
KernelText emit_copy();

constexpr int tape_threads = 128;
/// `places`: rows x width.
LaunchShape tape_shape(std::int64_t places);

}  // namespace clebsch
