#pragma once
// From atoms in space to the graph of pairs within a cutoff.
#include <cstdint>
#include <span>

#include "graph/graph.hpp"
#include "graph/structure.hpp"

namespace clebsch {

struct NeighbourOptions {
    double cutoff = 0.0;                    ///< edges have 0 <= length < cutoff
    std::int64_t edge_limit = 100'000'000;  ///< more are refused before memory runs out (a graph needs about 70 bytes an edge)
};

/// All pairs of a structure closer than the cutoff, both directions, periodic images included; an atom with its own images too, but never
/// with itself. Structures of a batch share no edges; their nodes follow one another. The result depends on nothing but the input:
/// edges are ordered by receiver, sender, shift, and the reversed edge has exactly the negated vector.
/// Throws Error naming the structure for: a cutoff that is not positive and finite, positions that are not finite or so far away that
/// float64 cannot resolve the cutoff, periodic cell vectors that are linearly dependent, sizes above the limit; Error(not_found) without
/// vesin.
Graph build_graph(std::span<const Structure> structures, const NeighbourOptions& options);
inline Graph build_graph(const Structure& structure, double cutoff) { return build_graph(std::span(&structure, 1), {.cutoff = cutoff}); }

}  // namespace clebsch
