#pragma once
// Atoms in space: what a neighbour list is made from.
#include <array>
#include <cstdint>
#include <vector>

namespace clebsch {

/// Positions and a cell, in one unit of length (Angstrom in the files we read).
struct Structure {
    std::vector<double> positions;   ///< x, y, z of every atom
    std::array<double, 9> cell{};    ///< rows are the vectors a, b, c; read only along periodic directions
    std::array<bool, 3> periodic{};  ///< along a, b, c

    std::int64_t atoms() const { return static_cast<std::int64_t>(positions.size() / 3); }
    friend bool operator==(const Structure&, const Structure&) = default;
};

}  // namespace clebsch
