#include "graph/edge_pairs.hpp"

#include <span>

namespace clebsch {
namespace {

bool opposite(const Graph& graph, std::size_t a, std::size_t b) {
    const double *x = graph.vectors.data() + 3 * a, *y = graph.vectors.data() + 3 * b;
    return x[0] == -y[0] && x[1] == -y[1] && x[2] == -y[2];
}

}  // namespace

bool find_pairs(const Graph& graph, EdgePairs& pairs) {
    const std::size_t edges = graph.sender.size(), nodes = static_cast<std::size_t>(graph.nodes);
    if (edges % 2 != 0 || graph.vectors.size() != 3 * edges || graph.offsets.size() != nodes + 1 ||
        graph.sender_offsets.size() != nodes + 1 || graph.by_sender.size() != edges)
        return false;
    pairs.pair.assign(edges, -1);
    pairs.first_edge.clear();
    pairs.first_edge.reserve(edges / 2);
    for (std::size_t node = 0; node < nodes; ++node) {
        // What the node receives and what it sends, both by the other end.
        auto edge = static_cast<std::size_t>(graph.offsets[node]), position = static_cast<std::size_t>(graph.sender_offsets[node]);
        const auto received = static_cast<std::size_t>(graph.offsets[node + 1]),
                   sent = static_cast<std::size_t>(graph.sender_offsets[node + 1]);
        while (edge < received) {
            const std::int64_t other = graph.sender[edge];
            std::size_t count = 0;  // of edges from there
            while (edge + count < received && graph.sender[edge + count] == other) ++count;
            if (position + count > sent) return false;
            const std::span<const std::int64_t> back(graph.by_sender.data() + position, count);
            for (std::size_t i = 0; i < count; ++i)
                if (graph.receiver[static_cast<std::size_t>(back[i])] != other) return false;
            for (std::size_t i = 0; i < count; ++i) {
                if (pairs.pair[edge + i] >= 0) continue;
                // Shifts are in ascending order, so those of the reversed edges are in descending order.
                std::size_t found = count;
                for (std::size_t k = 0; k < count && found == count; ++k) {
                    const std::size_t place = (2 * count - 1 - i - k) % count;
                    const auto candidate = static_cast<std::size_t>(back[place]);
                    if (pairs.pair[candidate] < 0 && candidate != edge + i && opposite(graph, edge + i, candidate)) found = place;
                }
                if (found == count) return false;
                pairs.pair[edge + i] = pairs.pair[static_cast<std::size_t>(back[found])] = pairs.count();
                pairs.first_edge.push_back(static_cast<std::int64_t>(edge + i));
            }
            edge += count;
            position += count;
        }
        if (position != sent) return false;
    }
    return true;
}

}  // namespace clebsch
