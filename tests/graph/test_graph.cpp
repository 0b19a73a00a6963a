#include <doctest/doctest.h>

#include <string>

#include "base/error.hpp"
#include "graph/graph.hpp"
#include "graph/vesin.hpp"

using namespace clebsch;

TEST_CASE("a caller's edges become receiver-sorted, stable, with the order by sender beside them") {
    const std::vector<std::int64_t> sender{2, 0, 1, 2, 2, 0}, receiver{3, 1, 3, 1, 3, 3};
    std::vector<double> vectors;
    for (int i = 0; i < 18; ++i) vectors.push_back(i);
    std::vector<std::int64_t> order;
    const Graph graph = graph_from_edges(5, sender, receiver, vectors, &order);
    CHECK(order == std::vector<std::int64_t>{1, 3, 0, 2, 4, 5});
    CHECK(graph.receiver == std::vector<std::int64_t>{1, 1, 3, 3, 3, 3});
    CHECK(graph.sender == std::vector<std::int64_t>{0, 2, 2, 1, 2, 0});
    CHECK(graph.offsets == std::vector<std::int64_t>{0, 0, 2, 2, 6, 6});
    CHECK(graph.by_sender == std::vector<std::int64_t>{0, 5, 3, 1, 2, 4});
    CHECK(graph.sender_offsets == std::vector<std::int64_t>{0, 2, 3, 6, 6, 6});
    CHECK(graph.vectors[3] == 9.0);
    CHECK(degree_histogram(graph) == std::vector<std::int64_t>{3, 0, 1, 0, 1});
    CHECK(graph_from_edges(0, {}, {}).edges() == 0);
}

TEST_CASE("edges that do not fit are refused with their position") {
    const std::vector<std::int64_t> two{0, 1}, one{0}, high{0, 2}, low{-1, 0};
    CHECK_THROWS_WITH_AS(graph_from_edges(2, two, one), doctest::Contains("2 senders and 1 receivers"), Error);
    CHECK_THROWS_WITH_AS(graph_from_edges(2, high, two), doctest::Contains("sender[1] is 2: expected 0 to 1"), Error);
    CHECK_THROWS_WITH_AS(graph_from_edges(2, two, low), doctest::Contains("receiver[0] is -1"), Error);
    CHECK_THROWS_AS(graph_from_edges(-1, {}, {}), Error);
    CHECK_THROWS_AS(graph_from_edges(2, two, two, std::vector<double>(5)), Error);
    const Graph graph = graph_from_edges(2, two, two);
    CHECK_THROWS_WITH_AS(edge_vectors(graph, {}), doctest::Contains("1 structures, got 0"), Error);
    const Structure structure{{0, 0, 0}, {}, {}};
    CHECK_THROWS_WITH_AS(edge_vectors(graph, std::span(&structure, 1)), doctest::Contains("has 1 atoms, in the graph 2"), Error);
}

TEST_CASE("the fields of vesin's options are read from its header, comments and spacing aside") {
    CHECK(vesin_options_fields("/// text\nstruct VesinOptions {\n  /// a; b\n  double cutoff;\n\tbool  full ; // x\n enum VesinAlgorithm "
                               "algorithm;\n};\nstruct B { int c; };") == "double cutoff;bool full;VesinAlgorithm algorithm");
    CHECK(vesin_options_fields("struct Other { int a; };").empty());
    CHECK(vesin_options_fields("struct VesinOptions { int a;").empty());
}
