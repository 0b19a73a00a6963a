#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "schedule/cpu_target.hpp"

using namespace clebsch;

TEST_CASE("names of instruction sets parse back; an unknown one lists the names") {
    for (const InstructionSet isa : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::neon})
        CHECK(parse_instruction_set(to_text(isa)) == isa);
    CHECK_THROWS_WITH_AS(parse_instruction_set("sse9"), "instruction set 'sse9' is unknown; expected one of baseline, avx2, avx512, neon",
                         Error);
}

TEST_CASE("every available set can be forced, and letting go returns to the default") {
    const auto sets = available_instruction_sets();
    REQUIRE(!sets.empty());
    const InstructionSet before = default_instruction_set();
    for (const InstructionSet isa : sets) {
        force_instruction_set(isa);
        CHECK(default_instruction_set() == isa);
    }
    force_instruction_set(std::nullopt);
    CHECK(default_instruction_set() == before);
}

TEST_CASE("a set this machine lacks is refused, naming those it has") {
    const auto sets = available_instruction_sets();
    for (const InstructionSet isa : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::neon}) {
        if (std::find(sets.begin(), sets.end(), isa) != sets.end()) continue;
        CHECK_THROWS_AS(force_instruction_set(isa), Error);
    }
}
