// The kernels that change a segment's order, against the definition, at every size up to whole groups and beyond.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "run/kernels/transpose.hpp"
#include "run/stage.hpp"

namespace clebsch {
namespace {

template <class T>
void check_all_sizes(InstructionSet isa) {
    const TransposeFunction<T> apart = CLEBSCH_SELECT(TransposeFunction<T>, isa, components_apart);
    const TransposeFunction<T> together = CLEBSCH_SELECT(TransposeFunction<T>, isa, components_together);
    for (const int components : {2, 3, 4, 5, 6, 7, 9, 25, 65}) {
        for (std::int64_t channels = 1; channels < 40; ++channels) {
            const auto size = static_cast<std::size_t>(channels * components);
            // Exactly as long as the segment, so that the address sanitizer sees any other access; the numbers around stay.
            std::vector<T> from(size), to(size, T(-1)), back(size + 2, T(-2));
            std::iota(from.begin(), from.end(), T(1));
            apart(from.data(), to.data(), channels, components);
            std::vector<T> expected(size);
            for (std::int64_t u = 0; u < channels; ++u)
                for (int c = 0; c < components; ++c)
                    expected[static_cast<std::size_t>(c * channels + u)] = from[static_cast<std::size_t>(u * components + c)];
            CHECK(to == expected);
            together(to.data(), back.data() + 1, channels, components);
            CHECK(std::vector<T>(back.begin() + 1, back.end() - 1) == from);
            CHECK(back.front() == T(-2));
            CHECK(back.back() == T(-2));
        }
    }
}

TEST_CASE("segments are transposed exactly, inside their memory, on every instruction set") {
    for (const InstructionSet isa : available_instruction_sets()) {
        check_all_sizes<float>(isa);
        check_all_sizes<double>(isa);
    }
}

}  // namespace
}  // namespace clebsch
