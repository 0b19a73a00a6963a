#pragma once
// What the processor is: the facts a CPU schedule depends on.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clebsch {

/// Sets a kernel can be compiled for. baseline: the ABI's own (SSE2 on x86-64); avx2: with FMA and F16C (x86-64-v3);
/// avx512: F, DQ, BW and VL; neon: AArch64's baseline.
enum class InstructionSet : std::uint8_t { baseline, avx2, avx512, neon };
std::string to_text(InstructionSet isa);
InstructionSet parse_instruction_set(std::string_view text);  // throws, listing the names

/// Sets compiled into this library that this machine can run (asked of the processor and the operating system), best last.
std::vector<InstructionSet> available_instruction_sets();

/// The set new plans use: the forced one, else CLEBSCH_INSTRUCTION_SET (read at the first call), else the best available.
/// Throws Error(unsupported) when the variable names a set that cannot run here, Error(invalid_argument) when it names none.
InstructionSet default_instruction_set();

/// Overrides the environment for plans made from now on; nullopt returns to it. Throws Error(unsupported) when the set cannot run here.
/// Thread-safe; plans that exist keep theirs.
void force_instruction_set(std::optional<InstructionSet> isa);

/// Throws Error(unsupported), naming the sets that can run here, unless `isa` is one of them.
void require_available(InstructionSet isa);

/// Throws Error(unsupported): this library has no kernels for `isa`.
[[noreturn]] void missing_version(InstructionSet isa);

}  // namespace clebsch
