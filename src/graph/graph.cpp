#include "graph/graph.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.hpp"

namespace clebsch {

Grouping group_by(std::span<const std::int64_t> index, std::int64_t groups, std::string_view what) {
    if (groups < 0) fail(std::string(what) + ": " + std::to_string(groups) + " groups");
    Grouping out;
    out.offsets.assign(static_cast<std::size_t>(groups) + 1, 0);
    for (std::size_t i = 0; i < index.size(); ++i) {
        if (index[i] < 0 || index[i] >= groups)
            fail(std::string(what) + "[" + std::to_string(i) + "] is " + std::to_string(index[i]) + ": expected 0 to " +
                 std::to_string(groups - 1));
        ++out.offsets[static_cast<std::size_t>(index[i]) + 1];
    }
    for (std::size_t g = 1; g < out.offsets.size(); ++g) out.offsets[g] += out.offsets[g - 1];
    std::vector<std::int64_t> next(out.offsets.begin(), out.offsets.end() - 1);
    out.order.resize(index.size());
    for (std::size_t i = 0; i < index.size(); ++i)
        out.order[static_cast<std::size_t>(next[static_cast<std::size_t>(index[i])]++)] = static_cast<std::int64_t>(i);
    return out;
}

Graph graph_from_edges(std::int64_t nodes, std::span<const std::int64_t> sender, std::span<const std::int64_t> receiver,
                       std::span<const double> vectors, std::vector<std::int64_t>* edge_order) {
    if (sender.size() != receiver.size())
        fail("edges: " + std::to_string(sender.size()) + " senders and " + std::to_string(receiver.size()) + " receivers");
    if (!vectors.empty() && (vectors.size() % 3 != 0 || vectors.size() / 3 != sender.size()))
        fail("edges: expected 3 vector components for each of " + std::to_string(sender.size()) + " edges, got " +
             std::to_string(vectors.size()));
    Grouping by_receiver = group_by(receiver, nodes, "receiver");
    Graph graph;
    graph.nodes = nodes;
    graph.offsets = std::move(by_receiver.offsets);
    graph.sender.reserve(sender.size());
    graph.receiver.reserve(sender.size());
    graph.vectors.reserve(vectors.size());
    for (const std::int64_t edge : by_receiver.order) {
        const auto e = static_cast<std::size_t>(edge);
        graph.sender.push_back(sender[e]);
        graph.receiver.push_back(receiver[e]);
        if (!vectors.empty()) graph.vectors.insert(graph.vectors.end(), vectors.begin() + 3 * edge, vectors.begin() + 3 * edge + 3);
    }
    Grouping by_sender = group_by(graph.sender, nodes, "sender");
    graph.by_sender = std::move(by_sender.order);
    graph.sender_offsets = std::move(by_sender.offsets);
    graph.structure.assign(static_cast<std::size_t>(nodes), 0);
    graph.structures = 1;
    if (edge_order) *edge_order = std::move(by_receiver.order);
    return graph;
}

std::vector<double> edge_vectors(const Graph& graph, std::span<const Structure> structures) {
    if (static_cast<std::int64_t>(structures.size()) != graph.structures)
        fail("edge vectors: the graph has " + std::to_string(graph.structures) + " structures, got " + std::to_string(structures.size()));
    std::vector<std::int64_t> first;  // node of every structure
    std::int64_t nodes = 0;
    for (std::size_t s = 0; s < structures.size(); ++s) {
        if (structures[s].positions.size() % 3 != 0) fail("structure " + std::to_string(s) + ": positions are not three numbers an atom");
        first.push_back(nodes);
        nodes += structures[s].atoms();
        const auto count = std::count(graph.structure.begin(), graph.structure.end(), static_cast<std::int64_t>(s));
        if (count != structures[s].atoms())
            fail("edge vectors: structure " + std::to_string(s) + " has " + std::to_string(structures[s].atoms()) +
                 " atoms, in the graph " + std::to_string(count));
    }
    std::vector<double> out;
    out.reserve(3 * graph.sender.size());
    for (std::size_t e = 0; e < graph.sender.size(); ++e) {
        const auto s = static_cast<std::size_t>(graph.structure[static_cast<std::size_t>(graph.receiver[e])]);
        std::array<std::int32_t, 3> shift{};
        if (!graph.shifts.empty()) shift = {graph.shifts[3 * e], graph.shifts[3 * e + 1], graph.shifts[3 * e + 2]};
        const std::array<double, 3> vector = edge_vector(structures[s], graph.sender[e] - first[s], graph.receiver[e] - first[s], shift);
        out.insert(out.end(), vector.begin(), vector.end());
    }
    return out;
}

std::array<double, 3> edge_vector(const Structure& structure, std::int64_t sender, std::int64_t receiver,
                                  const std::array<std::int32_t, 3>& shift) {
    const double* from = structure.positions.data() + 3 * sender;
    const double* to = structure.positions.data() + 3 * receiver;
    std::array<double, 3> out{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        // Swapping the ends negates every intermediate value exactly. A zero shift adds nothing, whatever an open direction's cell vector
        // holds.
        double image = 0.0;
        for (std::size_t k = 0; k < 3; ++k)
            if (shift[k] != 0) image += shift[k] * structure.cell[3 * k + axis];
        out[axis] = (from[axis] - to[axis]) + image;
    }
    return out;
}

double edge_length(const std::array<double, 3>& vector) {
    return std::sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
}

std::vector<std::int64_t> degree_histogram(const Graph& graph) {
    std::vector<std::int64_t> out;
    for (std::int64_t node = 0; node < graph.nodes; ++node) {
        const auto degree =
            static_cast<std::size_t>(graph.offsets[static_cast<std::size_t>(node) + 1] - graph.offsets[static_cast<std::size_t>(node)]);
        if (degree >= out.size()) out.resize(degree + 1, 0);
        ++out[degree];
    }
    return out;
}

}  // namespace clebsch
