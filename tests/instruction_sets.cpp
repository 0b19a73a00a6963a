// Which instruction sets the tests of this build run on. Without an argument: one line. With the name of a set: ends with 77 (ctest's
// "skipped") and says so if it cannot run here, so that what was not tested is on the list of every test run.
#include <algorithm>
#include <cstdio>
#include <string>

#include "schedule/cpu_target.hpp"

int main(int argc, char** argv) {
    using namespace clebsch;
    constexpr InstructionSet all[] = {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::neon};
    const std::vector<InstructionSet> here = available_instruction_sets();
    const auto available = [&](InstructionSet isa) { return std::ranges::find(here, isa) != here.end(); };
    if (argc > 1) {
        if (available(parse_instruction_set(argv[1]))) return 0;
        std::printf("instruction set %s: untested here, see ./dev test --emulate\n", argv[1]);
        return 77;
    }
    std::string tested, untested;
    for (const InstructionSet isa : all) (available(isa) ? tested : untested) += " " + to_text(isa);
    std::printf("instruction sets:%s tested%s\n", tested.c_str(),
                untested.empty() ? "" : (";" + untested + " untested here, see ./dev test --emulate").c_str());
    return 0;
}
