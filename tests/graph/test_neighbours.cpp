#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>

#include "base/error.hpp"
#include "graph/neighbours.hpp"
#include "graph/vesin.hpp"
#include "io/xyz.hpp"

using namespace clebsch;

namespace {

using Edge = std::tuple<std::int64_t, std::int64_t, int, int, int>;  // receiver, sender, shift

/// Every pair and every image up to `reach` cells away: the definition of a neighbour list, with no cell list and no cleverness.
std::vector<Edge> brute_force(const Structure& structure, double cutoff, int reach) {
    std::vector<Edge> out;
    const auto& x = structure.positions;
    const std::array<int, 3> most{structure.periodic[0] ? reach : 0, structure.periodic[1] ? reach : 0, structure.periodic[2] ? reach : 0};
    for (std::int64_t i = 0; i < structure.atoms(); ++i)
        for (std::int64_t j = 0; j < structure.atoms(); ++j)
            for (int a = -most[0]; a <= most[0]; ++a)
                for (int b = -most[1]; b <= most[1]; ++b)
                    for (int c = -most[2]; c <= most[2]; ++c) {
                        if (i == j && a == 0 && b == 0 && c == 0) continue;
                        double squared = 0.0;
                        for (std::size_t k = 0; k < 3; ++k) {
                            double d = x[static_cast<std::size_t>(3 * j) + k] - x[static_cast<std::size_t>(3 * i) + k];
                            if (a != 0) d += a * structure.cell[k];
                            if (b != 0) d += b * structure.cell[3 + k];
                            if (c != 0) d += c * structure.cell[6 + k];
                            squared += d * d;
                        }
                        if (squared < cutoff * cutoff) out.emplace_back(i, j, a, b, c);
                    }
    return out;  // generated in the order that a graph has
}

std::vector<Edge> edges_of(const Graph& graph) {
    std::vector<Edge> out;
    for (std::size_t e = 0; e < graph.sender.size(); ++e)
        out.emplace_back(graph.receiver[e], graph.sender[e], graph.shifts[3 * e], graph.shifts[3 * e + 1], graph.shifts[3 * e + 2]);
    return out;
}

void check_consistent(const Graph& graph) {
    REQUIRE(graph.offsets.size() == static_cast<std::size_t>(graph.nodes) + 1);
    REQUIRE(graph.sender_offsets.size() == graph.offsets.size());
    REQUIRE(graph.offsets.back() == graph.edges());
    REQUIRE(graph.sender_offsets.back() == graph.edges());
    REQUIRE(graph.by_sender.size() == graph.sender.size());
    REQUIRE(graph.vectors.size() == 3 * graph.sender.size());
    REQUIRE(graph.structure.size() == static_cast<std::size_t>(graph.nodes));
    std::vector<bool> seen(graph.sender.size(), false);
    for (std::int64_t node = 0; node < graph.nodes; ++node) {
        const auto n = static_cast<std::size_t>(node);
        for (auto e = graph.offsets[n]; e < graph.offsets[n + 1]; ++e) REQUIRE(graph.receiver[static_cast<std::size_t>(e)] == node);
        for (auto p = graph.sender_offsets[n]; p < graph.sender_offsets[n + 1]; ++p) {
            const auto e = static_cast<std::size_t>(graph.by_sender[static_cast<std::size_t>(p)]);
            REQUIRE(graph.sender[e] == node);
            REQUIRE_FALSE(seen[e]);
            seen[e] = true;
            if (p > graph.sender_offsets[n])
                REQUIRE(graph.by_sender[static_cast<std::size_t>(p)] > graph.by_sender[static_cast<std::size_t>(p) - 1]);
        }
    }
    // Every edge has its reverse, with exactly the negated vector.
    const std::vector<Edge> edges = edges_of(graph);
    REQUIRE(std::is_sorted(edges.begin(), edges.end()));
    for (std::size_t e = 0; e < edges.size(); ++e) {
        const auto [i, j, a, b, c] = edges[e];
        const auto reverse = std::lower_bound(edges.begin(), edges.end(), Edge{j, i, -a, -b, -c});
        REQUIRE(reverse != edges.end());
        REQUIRE(*reverse == Edge{j, i, -a, -b, -c});
        const auto r = static_cast<std::size_t>(reverse - edges.begin());
        for (std::size_t k = 0; k < 3; ++k) REQUIRE(graph.vectors[3 * e + k] == -graph.vectors[3 * r + k]);
    }
}

void check_against_brute_force(const Structure& structure, double cutoff, int reach) {
    const Graph graph = build_graph(structure, cutoff);
    check_consistent(graph);
    const std::vector<Edge> expected = brute_force(structure, cutoff, reach);
    CAPTURE(structure.atoms());
    CAPTURE(cutoff);
    CHECK(graph.edges() == static_cast<std::int64_t>(expected.size()));
    const bool same = edges_of(graph) == expected;
    CHECK(same);
    for (const Edge& edge : expected)  // the search of the oracle went far enough
        for (const int shift : {std::get<2>(edge), std::get<3>(edge), std::get<4>(edge)}) REQUIRE(std::abs(shift) < reach);
    for (std::int64_t e = 0; e < graph.edges(); ++e) {
        const double* r = graph.vectors.data() + 3 * e;
        CHECK(std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]) < cutoff);
    }
}

Structure random_structure(std::mt19937& random, std::int64_t atoms, double spread) {
    Structure out;
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < 3 * atoms; ++i) out.positions.push_back(spread * normal(random));
    return out;
}

std::string message_of(const std::vector<Structure>& structures, const NeighbourOptions& options) {
    try {
        build_graph(structures, options);
    } catch (const Error& error) { return error.what(); }
    return "accepted";
}

}  // namespace

TEST_CASE("neighbour lists equal brute force: open, periodic and mixed boundaries, triclinic cells, cells smaller than the cutoff") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (int pattern = 0; pattern < 8; ++pattern) {
        for (const auto& [edge, cutoff, atoms, reach] :
             {std::tuple{6.0, 2.5, 30, 10}, {3.0, 4.0, 4, 10}, {1.5, 4.0, 2, 13}, {9.0, 2.0, 40, 10}}) {
            CAPTURE(pattern);
            Structure structure = random_structure(random, atoms, edge);  // atoms outside the cell too
            for (std::size_t k = 0; k < 3; ++k) {
                structure.periodic[k] = (pattern >> k & 1) != 0;
                // An open direction's vector means nothing: fill it with what would be wrong.
                for (std::size_t axis = 0; axis < 3; ++axis)
                    structure.cell[3 * k + axis] =
                        structure.periodic[k] ? (k == axis ? edge : 0.35 * edge * uniform(random)) : (pattern % 2 ? 0.0 : std::nan(""));
            }
            check_against_brute_force(structure, cutoff, reach);
        }
    }
}

TEST_CASE("left-handed and permuted cells, and atoms many cells away from the origin") {
    std::mt19937 random(7);
    Structure structure = random_structure(random, 20, 2.0);
    structure.periodic = {true, true, true};
    structure.cell = {0, 5, 0, 5.5, 0, 1, 0, -1, 6};
    check_against_brute_force(structure, 3.0, 5);
    const Graph near = build_graph(structure, 3.0);
    Structure far = structure;
    for (std::size_t axis = 0; axis < 3; ++axis)
        far.positions[axis] += 30'000'000.0 * structure.cell[axis] - 7.0 * structure.cell[3 + axis];
    const Graph moved = build_graph(far, 3.0);
    CHECK(moved.edges() == near.edges());
    for (std::size_t i = 0; i < near.vectors.size(); ++i) CHECK(std::abs(moved.vectors[i]) <= 3.0);
}

TEST_CASE("one atom, no atoms, no edges, atoms in the same place") {
    Structure lone;
    lone.positions = {1, 2, 3};
    CHECK(build_graph(lone, 5.0).edges() == 0);
    CHECK(build_graph(lone, 5.0).offsets == std::vector<std::int64_t>{0, 0});
    lone.periodic = {true, true, true};
    lone.cell = {2, 0, 0, 0, 2, 0, 0, 0, 2};
    CHECK(build_graph(lone, 2.0).edges() == 0);  // the images are at the cutoff, which is not below it
    CHECK(build_graph(lone, 2.0001).edges() == 6);
    CHECK(build_graph(lone, 2.9).edges() == 18);
    check_consistent(build_graph(lone, 7.0));

    const Graph nothing = build_graph(Structure{}, 5.0);
    CHECK(nothing.nodes == 0);
    CHECK(nothing.structures == 1);
    CHECK(build_graph(std::span<const Structure>(), {.cutoff = 5.0}).structures == 0);

    Structure apart;
    apart.positions = {0, 0, 0, 100, 0, 0, 0, 100, 0};
    check_consistent(build_graph(apart, 5.0));
    CHECK(build_graph(apart, 5.0).edges() == 0);

    Structure same;
    same.positions = {1, 1, 1, 1, 1, 1};
    const Graph zero_length = build_graph(same, 5.0);
    CHECK(zero_length.edges() == 2);
    CHECK(zero_length.vectors == std::vector<double>(6, 0.0));
}

TEST_CASE("a batch has the edges of its structures one after another, none between them") {
    std::mt19937 random(11);
    std::vector<Structure> structures{random_structure(random, 7, 1.5), Structure{}, random_structure(random, 1, 1.0),
                                      random_structure(random, 9, 1.5)};
    structures[3].periodic = {true, true, true};
    structures[3].cell = {4, 0, 0, 1, 4, 0, 0, 1, 4};
    const Graph batch = build_graph(structures, {.cutoff = 2.5});
    check_consistent(batch);
    CHECK(batch.nodes == 17);
    CHECK(batch.structures == 4);
    std::int64_t first = 0, edge = 0;
    for (std::size_t s = 0; s < structures.size(); ++s) {
        const Graph single = build_graph(structures[s], 2.5);
        for (std::int64_t e = 0; e < single.edges(); ++e, ++edge) {
            CHECK(batch.sender[static_cast<std::size_t>(edge)] == first + single.sender[static_cast<std::size_t>(e)]);
            CHECK(batch.receiver[static_cast<std::size_t>(edge)] == first + single.receiver[static_cast<std::size_t>(e)]);
            for (std::size_t k = 0; k < 3; ++k)
                CHECK(batch.vectors[static_cast<std::size_t>(3 * edge) + k] == single.vectors[static_cast<std::size_t>(3 * e) + k]);
        }
        for (std::int64_t node = 0; node < single.nodes; ++node)
            CHECK(batch.structure[static_cast<std::size_t>(first + node)] == static_cast<std::int64_t>(s));
        first += single.nodes;
    }
    CHECK(edge == batch.edges());
    CHECK(edge_vectors(batch, structures) == batch.vectors);
}

TEST_CASE("the water box: every edge of brute force, twice the same graph") {
    const Structure water = read_xyz(CLEBSCH_SOURCE_DIR "/examples/data/water-216.xyz").at(0).structure;
    const Graph graph = build_graph(water, 6.0);
    CHECK(graph == build_graph(water, 6.0));
    check_against_brute_force(water, 3.0, 2);
    const auto histogram = degree_histogram(graph);
    std::int64_t edges = 0, nodes = 0;
    for (std::size_t degree = 0; degree < histogram.size(); ++degree) {
        nodes += histogram[degree];
        edges += histogram[degree] * static_cast<std::int64_t>(degree);
    }
    CHECK(nodes == 648);
    CHECK(edges == graph.edges());
}

TEST_CASE("long and thin systems, for which vesin's own grid divides by zero, are served") {
    for (const auto& [periodic, cell] : {std::pair{std::array<bool, 3>{}, std::array<double, 9>{}},
                                         {std::array<bool, 3>{true, true, true}, std::array<double, 9>{9000, 0, 0, 0, 9000, 0, 0, 0, 9}},
                                         {std::array<bool, 3>{true, true, false}, std::array<double, 9>{1e9, 0, 0, 0, 1e9, 0, 0, 0, 0}},
                                         {std::array<bool, 3>{true, false, false}, std::array<double, 9>{1e7, 0, 0, 0, 0, 0, 0, 0, 0}}}) {
        Structure structure;
        structure.positions = {0, 0, 0, 8999, 0, 0, 0, 8999.5, 0, 1, 1, 1, 1, 9000, 8};
        structure.periodic = periodic;
        structure.cell = cell;
        check_against_brute_force(structure, 3.0, 2);
        check_against_brute_force(structure, 0.05, 2);
    }
    Structure pair;
    pair.positions = {0, 0, 0, 2.9e8, 0, 0, 1, 0, 0};
    CHECK(build_graph(pair, 3.0).edges() == 2);
}

TEST_CASE("boxes of any proportion and skew, from half a cutoff to a million: each ends in the edges of brute force") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    int compared = 0;
    for (int trial = 0; trial < 120; ++trial) {
        Structure structure;
        for (std::size_t k = 0; k < 3; ++k) {
            structure.periodic[k] = uniform(random) < 0.7;
            const double edge = std::pow(10.0, -0.3 + (trial % 2 ? 6.3 : 1.0) * uniform(random));
            for (std::size_t axis = 0; axis < k; ++axis) structure.cell[3 * k + axis] = 2.0 * edge * (uniform(random) - 0.5);
            structure.cell[4 * k] = edge;
        }
        // Clusters, so that there are edges in large boxes too; near a corner, so that they cross its faces.
        const double spread = uniform(random) < 0.8 ? 1.0 : 1e4;
        for (int i = 0; i < 3 * 5; ++i) structure.positions.push_back(spread * (uniform(random) - 0.5));
        const int reach = 10;  // lower triangular: shift k moves by at least |shift| * edge along k beyond what later shifts undo
        const Graph graph = build_graph(structure, 1.0);
        check_consistent(graph);
        if (spread > 1.0) continue;
        const std::vector<Edge> expected = brute_force(structure, 1.0, reach);
        bool within = true;
        for (const Edge& edge : edges_of(graph))
            within = within && std::abs(std::get<2>(edge)) <= reach && std::abs(std::get<3>(edge)) <= reach &&
                     std::abs(std::get<4>(edge)) <= reach;
        if (!within) continue;  // an edge further away than brute force looked
        ++compared;
        CAPTURE(trial);
        const bool same = edges_of(graph) == expected;
        REQUIRE(same);
    }
    CHECK(compared > 50);
}

TEST_CASE("bad structures and options are refused, and the message says what and where") {
    Structure good;
    good.positions = {0, 0, 0, 1, 0, 0};
    Structure periodic = good;
    periodic.periodic = {true, true, true};
    periodic.cell = {5, 0, 0, 0, 5, 0, 0, 0, 5};
    const auto with_cell = [&](std::array<double, 9> cell) {
        Structure out = periodic;
        out.cell = cell;
        return out;
    };
    const auto with_position = [&](double x) {
        Structure out = periodic;
        out.positions[3] = x;
        return out;
    };
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
    for (const double cutoff : {0.0, -1.0, nan, infinity, 1e-300, 1e300})
        CHECK(message_of({good}, {.cutoff = cutoff}).find("positive, finite cutoff") != std::string::npos);
    Structure ragged = good;
    ragged.positions.pop_back();
    const std::pair<Structure, const char*> cases[] = {
        {with_position(nan), "structure 1: the position of atom 1 is not finite"},
        {with_position(-infinity), "structure 1: the position of atom 1 is not finite"},
        {with_position(1e20), "atom 1 is so far from the origin"},
        {with_position(2e9), "atom 1 is more than 1e8 cells"},
        {with_cell({5, 0, 0, 5, 0, 0, 0, 0, 5}), "lie in one plane"},
        {with_cell({5, 0, 0, 0, 5, 0, 5, 5, 0}), "lie in one plane"},
        {with_cell({5, 0, 0, 0, 5, 0, 5, 5, 1e-12}), "lie in one plane"},
        {with_cell({5, 0, 0, 0, 0, 0, 0, 0, 5}), "cell vector b: expected a length of 1e-50 to 1e50, got (0, 0, 0)"},
        {with_cell({5, 0, 0, 0, 5, 0, 0, 0, nan}), "cell vector c: expected a length of 1e-50 to 1e50, got (0, 0, nan)"},
        {with_cell({1e300, 0, 0, 0, 5, 0, 0, 0, 5}), "cell vector a: expected a length of 1e-50 to 1e50, got (1e+300, 0, 0)"},
        {with_cell({5, 0, 0, 0, infinity, 0, 0, 0, 5}), "cell vector b: expected a length of 1e-50 to 1e50, got (0, inf, 0)"},
        {with_cell({10, 0, 0, 10, 1e-6, 0, 0, 0, 10}), "above the limit"},
        {with_cell({1e-4, 0, 0, 0, 1e-4, 0, 0, 0, 1e-4}), "above the limit"},
        {with_cell({0.014, 0, 0, 0, 0.014, 0, 0, 0, 0.014}), "above the limit"},  // 1.65e8 edges, and gigabytes to find them
        {ragged, "three numbers an atom, got 5"},
    };
    for (const auto& [structure, part] : cases) {
        const std::string message = message_of({good, structure}, {.cutoff = 3.0});
        CAPTURE(message);
        CHECK(message.find("structure 1") != std::string::npos);
        CHECK(message.find(part) != std::string::npos);
    }
    Structure slab = periodic;
    slab.periodic = {true, true, false};
    slab.cell = {5, 0, 0, 10, 0, 0, 0, 0, 5};
    CHECK(message_of({slab}, {.cutoff = 3.0}).find("parallel") != std::string::npos);
    // Limits: exact where the estimate lets a graph pass, and early where even the search would be too much.
    CHECK(message_of({periodic}, {.cutoff = 3.0, .edge_limit = 2}) == "accepted");
    CHECK(message_of({periodic}, {.cutoff = 3.0, .edge_limit = 1}).find("limit of 1 edges") != std::string::npos);
    Structure crowd;
    crowd.positions.assign(3 * 100'000, 0.5);
    CHECK(message_of({crowd}, {.cutoff = 3.0}).find("above the limit of 100000000 edges") != std::string::npos);
}
