#include "run/machine.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/error.hpp"

namespace clebsch {
namespace {

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("model name", 0) != 0) continue;
        const auto colon = line.find(": ");
        if (colon != std::string::npos) return line.substr(colon + 2);
    }
#if defined(__x86_64__)
    return "x86-64";
#elif defined(__aarch64__)
    return "AArch64";
#else
    return "unknown";
#endif
}

int allowed_processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
    return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

/// The largest data or unified cache that the first processor sees, in bytes.
std::int64_t last_level_cache() {
    std::int64_t largest = 0;
    for (int index = 0; index < 8; ++index) {
        std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
        std::int64_t size = 0;
        char unit = 0;
        if (!(file >> size)) continue;
        file >> unit;
        largest = std::max(largest, unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size);
    }
    return largest;
}

/// What can be taken without swapping, caches included.
std::int64_t free_memory() {
    std::ifstream file("/proc/meminfo");
    std::string key, unit;
    std::int64_t kilobytes = 0;
    while (file >> key >> kilobytes) {
        if (key == "MemAvailable:") return kilobytes << 10;
        std::getline(file, unit);
    }
    return 0;
}

std::vector<InstructionSet> compiled_sets() {
    return {
#if defined(CLEBSCH_HAS_BASELINE)
        InstructionSet::baseline,
#endif
#if defined(CLEBSCH_HAS_NEON)
            InstructionSet::neon,
#endif
#if defined(CLEBSCH_HAS_AVX2)
            InstructionSet::avx2,
#endif
#if defined(CLEBSCH_HAS_AVX512)
            InstructionSet::avx512,
#endif
    };
}

}  // namespace

MachineInfo machine_info() {
    MachineInfo info;
    info.processor = processor_name();
    info.processors = allowed_processors();
    info.last_level_cache_bytes = last_level_cache();
    info.free_memory_bytes = free_memory();
    const std::vector<InstructionSet> usable = available_instruction_sets();
    const InstructionSet chosen = default_instruction_set();
    const char* variable = std::getenv("CLEBSCH_INSTRUCTION_SET");
    const bool forced = variable != nullptr && *variable != '\0';
    for (const InstructionSet isa : compiled_sets()) {
        InstructionSetStatus status{isa, std::ranges::find(usable, isa) != usable.end(), isa == chosen, {}};
        if (!status.usable) status.why = "this processor or its operating system lacks it";
        else if (status.chosen) status.why = forced ? "asked for by CLEBSCH_INSTRUCTION_SET" : "the best that can run here";
        info.compiled.push_back(std::move(status));
    }
    return info;
}

}  // namespace clebsch
