#pragma once
// The machine as a user is told about it: processor, caches, instruction sets and why one was chosen.
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/cpu_target.hpp"

namespace clebsch {

struct InstructionSetStatus {
    InstructionSet isa{};
    bool usable = false;  ///< by this processor and operating system
    bool chosen = false;  ///< default_instruction_set()
    std::string why;
};

struct MachineInfo {
    std::string processor;                       ///< its own name, or the architecture's
    int processors = 1;                          ///< this process may run on
    std::int64_t last_level_cache_bytes = 0;     ///< 0: not known
    std::int64_t free_memory_bytes = 0;          ///< 0: not known
    std::vector<InstructionSetStatus> compiled;  ///< sets in this library, best last
};

/// Reads /proc and /sys; what cannot be read stays empty. Throws Error only for a CLEBSCH_INSTRUCTION_SET that cannot be used.
MachineInfo machine_info();

}  // namespace clebsch
