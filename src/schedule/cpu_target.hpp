#pragma once
// What the processor is: the facts a CPU schedule depends on.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clebsch {

enum class InstructionSet : std::uint8_t { baseline, avx2, avx512, neon };
std::string to_text(InstructionSet isa);
InstructionSet parse_instruction_set(std::string_view text);    // throws, listing the names

/// Sets compiled into this library that this machine can run, best last. CLEBSCH_INSTRUCTION_SET (read once) or force() restrict the choice.
std::vector<InstructionSet> available_instruction_sets();
/// The set new plans use. Throws when the forced one cannot run here.
InstructionSet default_instruction_set();

}  // namespace clebsch
