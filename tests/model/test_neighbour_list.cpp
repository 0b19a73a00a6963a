#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.hpp"
#include "graph/neighbours.hpp"
#include "model/neighbour_list.hpp"
#include "support/repetitions.hpp"

using namespace clebsch;
using testing::one_in;

namespace {

struct Case {
    const char* name;
    Structure structure;
    double cutoff, skin;
};

Structure random_structure(std::mt19937& random, int atoms, const std::array<double, 9>& cell, const std::array<bool, 3>& periodic) {
    Structure out;
    out.cell = cell;
    out.periodic = periodic;
    std::uniform_real_distribution<double> fraction(-0.3, 1.3);  // some atoms lie outside their cell
    for (int i = 0; i < atoms; ++i) {
        const double s[3] = {fraction(random), fraction(random), fraction(random)};
        for (std::size_t k = 0; k < 3; ++k) out.positions.push_back(s[0] * cell[k] + s[1] * cell[3 + k] + s[2] * cell[6 + k]);
    }
    return out;
}

std::vector<Case> cases(std::mt19937& random) {
    const std::array<double, 9> box{9, 0, 0, 0, 10, 0, 0, 0, 11}, skewed{7, 0, 0, 3.1, 6.2, 0, -2.4, 1.7, 8},
        small{3, 0, 0, 1, 2.5, 0, .5, -.7, 2.8};
    return {{"open", random_structure(random, 40, box, {}), 4, 0.4},
            {"periodic", random_structure(random, 60, box, {true, true, true}), 4, 0.4},
            {"triclinic", random_structure(random, 30, skewed, {true, true, true}), 3.5, 0.3},
            {"smaller than the cutoff", random_structure(random, 3, small, {true, true, true}), 5, 0.5},
            {"a slab", random_structure(random, 30, skewed, {true, false, true}), 3.5, 0.3},
            {"a wire", random_structure(random, 20, box, {false, false, true}), 4, 0.6},
            {"no skin", random_structure(random, 20, box, {true, true, true}), 4, 0},
            {"one atom", random_structure(random, 1, small, {true, true, true}), 4, 0.4},
            {"no edges", random_structure(random, 5, {90, 0, 0, 0, 90, 0, 0, 0, 90}, {true, true, true}), 0.5, 0.3}};
}

void strain(Structure& structure, const std::array<double, 9>& change) {
    const auto strained = [&](double* v) {
        const double x[3] = {v[0], v[1], v[2]};
        for (std::size_t k = 0; k < 3; ++k) v[k] += x[0] * change[k] + x[1] * change[3 + k] + x[2] * change[6 + k];
    };
    for (std::size_t i = 0; i < structure.positions.size(); i += 3) strained(structure.positions.data() + i);
    for (std::size_t k = 0; k < 9; k += 3) strained(structure.cell.data() + k);
}

}  // namespace

TEST_CASE("over a long random walk the list is the graph of a fresh search, bit for bit") {
    std::mt19937 random(11);
    for (Case& each : cases(random)) {
        CAPTURE(each.name);
        NeighbourList list(each.cutoff, each.skin);
        std::normal_distribution<double> step(0.0, 0.01);
        int different = 0;
        const int steps = 150 / one_in(5);
        for (int i = 0; i < steps; ++i) {
            different += !(list.update(each.structure) == build_graph(each.structure, each.cutoff));
            for (double& x : each.structure.positions) x += step(random);
        }
        CHECK(different == 0);
        CHECK(list.updates() == steps);
        if (each.skin > 0) CHECK(list.builds() < 40);
        if (each.skin == 0) CHECK(list.builds() == steps);
    }
}

TEST_CASE("changing cells: strains, shears and shrinking, with moving atoms") {
    std::mt19937 random(12);
    for (Case& each : cases(random)) {
        CAPTURE(each.name);
        NeighbourList list(each.cutoff, each.skin);
        std::normal_distribution<double> step(0.0, 0.004), change(-2e-4, 1e-3);
        int different = 0;
        for (int i = 0; i < 100 / one_in(5); ++i) {
            different += !(list.update(each.structure) == build_graph(each.structure, each.cutoff));
            for (double& x : each.structure.positions) x += step(random);
            std::array<double, 9> small;
            for (double& value : small) value = change(random);
            strain(each.structure, small);
        }
        CHECK(different == 0);
        const auto& p = each.structure.periodic;
        if (p[0] && p[1] && p[2] && each.skin > 0) CHECK(list.builds() < 75);
    }
}

TEST_CASE("a step just short of half the skin keeps the list, one beyond searches; both are right") {
    Structure pair{{0, 0, 0, 4.45, 0, 0}, {}, {}};
    NeighbourList list(4.0, 0.5);
    CHECK(list.update(pair).edges() == 0);
    pair.positions = {0.249, 0, 0, 4.201, 0, 0};
    CHECK(list.update(pair) == build_graph(pair, 4.0));
    CHECK(list.update(pair).edges() == 2);
    CHECK(list.builds() == 1);
    pair.positions = {0.251, 0, 0, 4.45, 0, 0};
    CHECK(list.update(pair) == build_graph(pair, 4.0));
    CHECK(list.builds() == 2);
}

TEST_CASE("between searches nothing is allocated: the arrays stay where they are") {
    std::mt19937 random(13);
    Structure structure = random_structure(random, 60, {9, 0, 0, 0, 10, 0, 0, 0, 11}, {true, true, true});
    NeighbourList list(4.0, 1.0);
    const Graph& graph = list.update(structure);
    const auto places = [&] {
        return std::array<const void*, 8>{graph.sender.data(),  graph.receiver.data(), graph.offsets.data(),   graph.by_sender.data(),
                                          graph.vectors.data(), graph.shifts.data(),   graph.structure.data(), graph.sender_offsets.data()};
    };
    const auto before = places();
    std::normal_distribution<double> step(0.0, 0.01);
    std::int64_t least = graph.edges(), most = graph.edges();
    for (int i = 0; i < 50; ++i) {
        for (double& x : structure.positions) x += step(random);
        list.update(structure);
        least = std::min(least, graph.edges()), most = std::max(most, graph.edges());
    }
    CHECK(list.builds() == 1);
    CHECK(most > least);
    CHECK(places() == before);
}

TEST_CASE("another number of atoms, other periodicity and bad input") {
    std::mt19937 random(14);
    Structure structure = random_structure(random, 20, {9, 0, 0, 0, 10, 0, 0, 0, 11}, {true, true, true});
    NeighbourList list(4.0, 0.5);
    list.update(structure);
    structure.periodic[1] = false;
    CHECK(list.update(structure) == build_graph(structure, 4.0));
    structure.positions.resize(30);
    CHECK(list.update(structure) == build_graph(structure, 4.0));
    structure.positions[7] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH_AS(list.update(structure), doctest::Contains("atom 2"), Error);
    structure.positions[7] = 1.0;
    CHECK(list.update(structure) == build_graph(structure, 4.0));
    structure.positions.clear();
    CHECK(list.update(structure) == build_graph(structure, 4.0));
    CHECK_THROWS_AS(NeighbourList(0.0, 0.5), Error);
    CHECK_THROWS_AS(NeighbourList(4.0, -0.1), Error);
    CHECK_THROWS_AS(NeighbourList(4.0, std::numeric_limits<double>::infinity()), Error);
}
