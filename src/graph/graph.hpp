#pragma once
// Edges between nodes, sorted by receiver, with the order by sender beside it. docs/graphs.md tells the conventions.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/structure.hpp"

namespace clebsch {

/// Node i receives edges offsets[i] .. offsets[i+1]. Nodes of several structures follow one another. Plain data, made by build_graph or
/// graph_from_edges; whoever changes it keeps the arrays consistent.
struct Graph {
    std::int64_t nodes = 0;
    std::vector<std::int64_t> sender, receiver;  ///< of every edge, by receiver, then sender, then shift (build_graph)
    std::vector<std::int64_t> offsets;           ///< nodes + 1: first edge of every receiver
    std::vector<std::int64_t> by_sender;         ///< edges ordered by sender, those of one sender in increasing order (stable)
    std::vector<std::int64_t> sender_offsets;    ///< nodes + 1: first position of every sender in by_sender
    std::vector<double> vectors;                 ///< edges x 3: x_sender - x_receiver + shift . cell; empty without positions
    std::vector<std::int32_t> shifts;     ///< edges x 3: how many cell vectors a, b, c the sender's image is away; empty without a cell
    std::vector<std::int64_t> structure;  ///< of every node, from 0, non-decreasing
    std::int64_t structures = 0;

    std::int64_t edges() const { return static_cast<std::int64_t>(sender.size()); }
    friend bool operator==(const Graph&, const Graph&) = default;
};

/// A stable counting sort: positions of `index` grouped by value.
struct Grouping {
    std::vector<std::int64_t> offsets;  ///< groups + 1
    std::vector<std::int64_t> order;    ///< order[offsets[g] .. offsets[g+1]]: where index is g, in increasing order
};
/// Throws Error naming `what`, the position and the value for one outside 0 .. groups - 1.
Grouping group_by(std::span<const std::int64_t> index, std::int64_t groups, std::string_view what);

/// A graph of one structure from edges that a caller already has, in any order. `vectors` (3 an edge) may be empty. Edges of a receiver
/// keep their order; edge_order, if given, becomes the caller's edge number of every edge of the graph. Throws Error for counts that differ
/// and indices out of range.
Graph graph_from_edges(std::int64_t nodes, std::span<const std::int64_t> sender, std::span<const std::int64_t> receiver,
                       std::span<const double> vectors = {}, std::vector<std::int64_t>* edge_order = nullptr);

/// Edge vectors of the same edges for moved atoms or strained cells (3 an edge). `structures` are those the graph was built from, moved.
/// Throws Error when atoms or structures differ in number.
std::vector<double> edge_vectors(const Graph& graph, std::span<const Structure> structures);

/// The vector of one edge: x_sender - x_receiver + shift . cell. Indices are not checked.
std::array<double, 3> edge_vector(const Structure& structure, std::int64_t sender, std::int64_t receiver,
                                  const std::array<std::int32_t, 3>& shift);
/// Its length, as every neighbour list here compares it with the cutoff.
double edge_length(const std::array<double, 3>& vector);

/// How many receivers have 0, 1, 2, ... edges.
std::vector<std::int64_t> degree_histogram(const Graph& graph);

}  // namespace clebsch
