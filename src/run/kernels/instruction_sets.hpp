#pragma once
// How one kernel source becomes several functions. Every run/kernels/*.cpp is compiled once per instruction set with CLEBSCH_ISA naming the
// namespace of that version, and puts everything it defines there. Such a file must not use inline functions or templates of other headers
// (the standard library's neither): the linker keeps one copy of those, perhaps the one with instructions that the machine lacks. What it
// includes are plain structs. The two macros below are the only place that lists the versions.
#include "schedule/cpu_target.hpp"

/// Declares functions in the namespace of every version.
#define CLEBSCH_PER_INSTRUCTION_SET(...) \
    namespace isa_baseline {             \
    __VA_ARGS__                          \
    }                                    \
    namespace isa_avx2 {                 \
    __VA_ARGS__                          \
    }                                    \
    namespace isa_avx512 {               \
    __VA_ARGS__                          \
    }                                    \
    namespace isa_neon {                 \
    __VA_ARGS__                          \
    }

#if defined(CLEBSCH_HAS_AVX2)
#define CLEBSCH_IF_AVX2(name) isa_avx2::name
#else
#define CLEBSCH_IF_AVX2(name) nullptr
#endif
#if defined(CLEBSCH_HAS_AVX512)
#define CLEBSCH_IF_AVX512(name) isa_avx512::name
#else
#define CLEBSCH_IF_AVX512(name) nullptr
#endif
#if defined(CLEBSCH_HAS_NEON)
#define CLEBSCH_IF_NEON(name) isa_neon::name
#else
#define CLEBSCH_IF_NEON(name) nullptr
#endif
#if defined(CLEBSCH_HAS_BASELINE)
#define CLEBSCH_IF_BASELINE(name) isa_baseline::name
#else
#define CLEBSCH_IF_BASELINE(name) nullptr
#endif

namespace clebsch {

/// The version for `isa` among those that were compiled (the others are null). Plans are made for available sets only (require_available),
/// so that a missing one is a mistake of this library: it is reported by Error(unsupported), never called.
template <class Function>
Function version_of(InstructionSet isa, Function avx512, Function avx2, Function neon, Function baseline) {
    const Function version = isa == InstructionSet::avx512 ? avx512
                             : isa == InstructionSet::avx2 ? avx2
                             : isa == InstructionSet::neon ? neon
                                                           : baseline;
    if (version == nullptr) missing_version(isa);
    return version;
}

}  // namespace clebsch

/// The version of function `name` for `isa` as a pointer of type `type` (which picks among overloads); never null.
#define CLEBSCH_SELECT(type, isa, name) \
    version_of<type>(isa, CLEBSCH_IF_AVX512(name), CLEBSCH_IF_AVX2(name), CLEBSCH_IF_NEON(name), CLEBSCH_IF_BASELINE(name))
