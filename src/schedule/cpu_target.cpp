#include "schedule/cpu_target.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>

#include "base/error.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace clebsch {
namespace {

constexpr std::array<std::pair<InstructionSet, const char*>, 4> names{{{InstructionSet::baseline, "baseline"},
                                                                       {InstructionSet::avx2, "avx2"},
                                                                       {InstructionSet::avx512, "avx512"},
                                                                       {InstructionSet::neon, "neon"}}};

#if defined(__x86_64__)
bool bit(unsigned word, int position) { return (word >> position & 1U) != 0; }

/// Register state the operating system saves on a context switch (XCR0): without it the registers may not be used.
unsigned saved_state() {
    unsigned low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

struct X86Features {
    bool avx2 = false, avx512 = false;
};

X86Features detect() {
    X86Features features;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) return features;
    const bool fma = bit(c, 12), osxsave = bit(c, 27), avx = bit(c, 28), f16c = bit(c, 29);
    if (!osxsave || !avx) return features;
    const unsigned saved = saved_state();
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return features;
    features.avx2 = (saved & 0x06U) == 0x06U && fma && f16c && bit(b, 5);
    features.avx512 = features.avx2 && (saved & 0xe6U) == 0xe6U && bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);
    return features;
}
#endif

std::vector<InstructionSet> detect_available() {
    std::vector<InstructionSet> sets;
#if defined(CLEBSCH_HAS_BASELINE)
    sets.push_back(InstructionSet::baseline);
#endif
#if defined(CLEBSCH_HAS_NEON)
    sets.push_back(InstructionSet::neon);  // part of AArch64 itself
#endif
#if defined(__x86_64__)
    const X86Features features = detect();
#if defined(CLEBSCH_HAS_AVX2)
    if (features.avx2) sets.push_back(InstructionSet::avx2);
#endif
#if defined(CLEBSCH_HAS_AVX512)
    if (features.avx512) sets.push_back(InstructionSet::avx512);
#endif
    (void)features;
#endif
    return sets;
}

std::string list_of(const std::vector<InstructionSet>& sets) {
    std::string text;
    for (const InstructionSet isa : sets) text += (text.empty() ? "" : ", ") + to_text(isa);
    return text;
}

InstructionSet from_environment() {
    const char* text = std::getenv("CLEBSCH_INSTRUCTION_SET");
    if (text == nullptr || *text == '\0') return available_instruction_sets().back();
    InstructionSet isa{};
    try {
        isa = parse_instruction_set(text);
    } catch (const Error& error) {
        throw Error(error.kind(), std::string("environment variable CLEBSCH_INSTRUCTION_SET: ") + error.what());
    }
    require_available(isa);
    return isa;
}

constexpr int not_forced = -1;
std::atomic<int> forced{not_forced};

}  // namespace

std::string to_text(InstructionSet isa) {
    for (const auto& [value, name] : names)
        if (value == isa) return name;
    return "unknown";
}

InstructionSet parse_instruction_set(std::string_view text) {
    std::string known;
    for (const auto& [value, name] : names) {
        if (text == name) return value;
        known += (known.empty() ? "" : ", ") + std::string(name);
    }
    fail("instruction set '" + std::string(text) + "' is unknown; expected one of " + known);
}

std::vector<InstructionSet> available_instruction_sets() {
    static const std::vector<InstructionSet> sets = detect_available();
    return sets;
}

InstructionSet default_instruction_set() {
    if (const int isa = forced.load(std::memory_order_relaxed); isa != not_forced) return static_cast<InstructionSet>(isa);
    static const InstructionSet isa = from_environment();
    return isa;
}

void force_instruction_set(std::optional<InstructionSet> isa) {
    if (isa) require_available(*isa);
    forced.store(isa ? static_cast<int>(*isa) : not_forced, std::memory_order_relaxed);
}

void require_available(InstructionSet isa) {
    const auto sets = available_instruction_sets();
    if (std::find(sets.begin(), sets.end(), isa) != sets.end()) return;
    throw Error(ErrorKind::unsupported,
                "instruction set '" + to_text(isa) + "' cannot run here; this library and machine have " + list_of(sets));
}

void missing_version(InstructionSet isa) {
    throw Error(ErrorKind::unsupported, "this library was compiled without kernels for instruction set '" + to_text(isa) + "'");
}

}  // namespace clebsch
