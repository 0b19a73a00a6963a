#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "graph/edge_pairs.hpp"
#include "graph/neighbours.hpp"

using namespace clebsch;

namespace {

void check(const Graph& graph) {
    EdgePairs pairs;
    pairs.pair.assign(5, 7);  // of an earlier graph
    REQUIRE(find_pairs(graph, pairs));
    REQUIRE(std::ssize(pairs.pair) == graph.edges());
    REQUIRE(2 * pairs.count() == graph.edges());
    CHECK(std::ranges::is_sorted(pairs.first_edge));
    std::set<std::int64_t> seconds;
    for (std::size_t e = 0; e < pairs.pair.size(); ++e) {
        const auto first = static_cast<std::size_t>(pairs.first_edge.at(static_cast<std::size_t>(pairs.pair[e])));
        if (first == e) continue;
        CHECK(seconds.insert(pairs.pair[e]).second);
        CHECK(first < e);
        CHECK(graph.sender[e] == graph.receiver[first]);
        CHECK(graph.receiver[e] == graph.sender[first]);
        for (std::size_t k = 0; k < 3; ++k) CHECK(graph.vectors[3 * e + k] == -graph.vectors[3 * first + k]);
    }
    CHECK(std::ssize(seconds) == pairs.count());
}

}  // namespace

TEST_CASE("every edge of a neighbour list has its reverse, images of one atom too") {
    std::mt19937_64 engine(3);
    std::uniform_real_distribution<double> uniform;
    std::vector<Structure> structures;
    for (const int atoms : {1, 2, 0, 30}) {
        Structure structure{.positions = {}, .cell = {3, 0, 0, 0.4, 3.1, 0, -0.2, 0.3, 2.9}, .periodic = {true, true, true}};
        if (atoms == 30) structure.periodic = {true, false, true};
        for (int i = 0; i < 3 * atoms; ++i) structure.positions.push_back(4 * uniform(engine) - 1);
        structures.push_back(structure);
        check(build_graph(structure, 5.0));
    }
    check(build_graph(structures, {.cutoff = 4.0}));
    check(build_graph(Structure{{0, 0, 0, 9, 0, 0}, {}, {}}, 1.0));
}

TEST_CASE("a graph where an edge has no reverse has no pairs") {
    const auto paired = [](std::int64_t nodes, const std::vector<std::int64_t>& sender, const std::vector<std::int64_t>& receiver,
                           const std::vector<double>& vectors) {
        EdgePairs pairs;
        return find_pairs(graph_from_edges(nodes, sender, receiver, vectors), pairs);
    };
    CHECK(paired(2, {1, 0}, {0, 1}, {1, 2, 3, -1, -2, -3}));
    CHECK(paired(0, {}, {}, {}));
    CHECK(!paired(2, {1, 0}, {0, 1}, {}));
    CHECK(!paired(2, {1, 0}, {0, 1}, {1, 2, 3, -1, -2, 3}));
    CHECK(!paired(2, {1, 1}, {0, 0}, {1, 2, 3, -1, -2, -3}));
    CHECK(!paired(2, {1}, {0}, {1, 2, 3}));
    CHECK(!paired(3, {1, 0, 2, 1}, {0, 1, 0, 2}, {1, 2, 3, -1, -2, -3, 4, 5, 6, -4, -5, -6}));
    CHECK(!paired(1, {0, 0}, {0, 0}, {1, 2, 3, 1, 2, 3}));
    CHECK(paired(1, {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 3, 1, 2, 3, -1, -2, -3, -1, -2, -3}));
    CHECK(!paired(1, {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 2, 3, 1, 2, 3, -1, -2, -3, 1, 2, 3}));
    EdgePairs pairs;
    Graph graph = build_graph(Structure{{0, 0, 0, 1, 0, 0}, {}, {}}, 2.0);
    graph.sender_offsets.clear();
    CHECK(!find_pairs(graph, pairs));
}
