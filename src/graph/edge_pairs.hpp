#pragma once
// Which edges of a graph are each other's reverse.
#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace clebsch {

/// An edge and its reverse, sender and receiver exchanged and the vector negated exactly, are a pair. Pairs are in the order of their first
/// edges.
struct EdgePairs {
    std::vector<std::int64_t> pair;        ///< of every edge
    std::vector<std::int64_t> first_edge;  ///< of every pair, ascending

    std::int64_t count() const { return static_cast<std::int64_t>(first_edge.size()); }
};

/// Whether every edge has its reverse, as in the graphs of build_graph; then `pairs` are they. False too for edges of a receiver that are
/// not in the order of their senders, and without vectors. Memory of `pairs` is used again.
bool find_pairs(const Graph& graph, EdgePairs& pairs);

}  // namespace clebsch
