#include "api/structures.hpp"

#include <algorithm>

#include "api/guard.hpp"

namespace clebsch::api {

namespace {

/// Empty structures cost memory too; more than this many in one batch are a mistake, not a batch.
constexpr std::int64_t most_structures = 10'000'000;

}  // namespace

std::vector<Structure> structures_of(const clebsch_graph_options& options) {
    if (options.atoms < 0) fail("atoms: expected a number >= 0, got " + std::to_string(options.atoms));
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(options.atoms, std::int64_t{3 * sizeof(double)}, &bytes))
        fail("atoms: the positions of " + std::to_string(options.atoms) + " atoms exceed 2^63 bytes");
    if (options.atoms > 0) require(options.positions, "positions");
    if (options.structures < 1) fail("structures: expected at least 1, got " + std::to_string(options.structures));
    if (options.structure == nullptr && options.structures != 1 && options.atoms > 0)
        fail("structure: expected the structure of each atom for " + std::to_string(options.structures) + " structures, got NULL");
    if (options.structures > most_structures)
        fail("structures: expected at most " + std::to_string(most_structures) + ", got " + std::to_string(options.structures));
    std::int64_t previous = 0;
    for (std::int64_t atom = 0; options.structure != nullptr && atom < options.atoms; ++atom) {
        const std::int64_t s = options.structure[atom];
        if (s < previous || s >= options.structures)
            fail("structure[" + std::to_string(atom) + "]: expected non-decreasing numbers from 0 to " +
                 std::to_string(options.structures - 1) + ", got " + std::to_string(s));
        previous = s;
    }
    std::vector<Structure> result(static_cast<size_t>(options.structures));
    for (size_t s = 0; s < result.size(); ++s) {
        if (options.cells != nullptr) std::copy_n(options.cells + 9 * s, 9, result[s].cell.begin());
        for (size_t axis = 0; axis < 3; ++axis)
            result[s].periodic[axis] = options.periodic != nullptr ? options.periodic[3 * s + axis] != 0 : options.cells != nullptr;
    }
    for (std::int64_t atom = 0; atom < options.atoms; ++atom) {
        std::vector<double>& positions = result[options.structure == nullptr ? 0 : static_cast<size_t>(options.structure[atom])].positions;
        positions.insert(positions.end(), options.positions + 3 * atom, options.positions + 3 * atom + 3);
    }
    return result;
}

}  // namespace clebsch::api
