#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "base/error.hpp"
#include "model/relax.hpp"
#include "support/analytic_force_fields.hpp"

using namespace clebsch;
using clebsch::testing::LennardJones;

namespace {

/// The four atoms of a face-centred cubic cell, displaced and strained at random.
Structure shaken_crystal(double edge, double displacement, double strain, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    Structure out;
    out.periodic = {true, true, true};
    for (std::size_t k = 0; k < 9; ++k) out.cell[k] = edge * ((k % 4 == 0 ? 1.0 : 0.0) + strain * uniform(random));
    for (const auto& s : {std::array{0.0, 0.0, 0.0}, {0.0, 0.5, 0.5}, {0.5, 0.0, 0.5}, {0.5, 0.5, 0.0}})
        for (std::size_t k = 0; k < 3; ++k)
            out.positions.push_back(s[0] * out.cell[k] + s[1] * out.cell[3 + k] + s[2] * out.cell[6 + k] + displacement * uniform(random));
    return out;
}

int steps_to_converge(Relaxation& relaxation, int limit) {
    for (int i = 0; i < limit && !relaxation.converged(); ++i) relaxation.advance();
    REQUIRE(relaxation.converged());
    return static_cast<int>(relaxation.steps());
}

double energy_of(LennardJones& field, double edge) {
    return Relaxation(field, shaken_crystal(edge, 0, 0, 1), {18, 18, 18, 18}, {}).energies().energy.front();
}

}  // namespace

TEST_CASE("a pair ends where its energy is least") {
    LennardJones field;
    double best = 0, least = 0;
    for (double r = 3.5; r < 4.2; r += 1e-4) {
        const double energy = Relaxation(field, {{0, 0, 0, r, 0, 0}, {}, {}}, {18, 18}, {}).energies().energy.front();
        if (energy < least) least = energy, best = r;
    }
    Relaxation relaxation(field, {{0, 0, 0, 2.1, 2.4, -2.2}, {}, {}}, {18, 18}, {.force = 1e-7});
    steps_to_converge(relaxation, 500);
    const auto& x = relaxation.structure().positions;
    CHECK(std::hypot(x[3] - x[0], x[4] - x[1], x[5] - x[2]) == doctest::Approx(best).epsilon(1e-4));
    CHECK(relaxation.energies().energy.front() == doctest::Approx(least).epsilon(1e-6));
}

TEST_CASE("a crystal in a fixed cell goes back to its lattice sites, the cell untouched") {
    LennardJones field;
    const Structure start = shaken_crystal(5.3, 0.3, 0, 3);
    Relaxation relaxation(field, start, {18, 18, 18, 18}, {.force = 1e-6});
    CHECK(relaxation.max_force() > 0.01);
    steps_to_converge(relaxation, 500);
    CHECK(relaxation.structure().cell == start.cell);
    CHECK(relaxation.energies().energy.front() == doctest::Approx(energy_of(field, 5.3)).epsilon(1e-7));
}

TEST_CASE("a free cell reaches zero stress and the lattice constant of least energy, from strained and triclinic starts") {
    LennardJones field;
    double best = 0, least = 0;
    for (double edge = 5.1; edge < 5.5; edge += 2e-4)
        if (const double energy = energy_of(field, edge); energy < least) least = energy, best = edge;
    for (const unsigned seed : {4U, 5U, 6U}) {
        CAPTURE(seed);
        Relaxation relaxation(field, shaken_crystal(5.6, 0.15, 0.03, seed), {18, 18, 18, 18},
                              {.free_cell = true, .force = 1e-6, .stress = 1e-8});
        CHECK(relaxation.max_stress() > 1e-4);
        steps_to_converge(relaxation, 1000);
        CHECK(relaxation.max_stress() < 1e-8);
        CHECK(relaxation.energies().energy.front() == doctest::Approx(least).epsilon(1e-6));
        CHECK(volume(relaxation.structure()) == doctest::Approx(best * best * best).epsilon(3e-4));
    }
}

TEST_CASE("steps are short however large the forces") {
    LennardJones field;
    Relaxation relaxation(field, {{0, 0, 0, 1.5, 0, 0}, {}, {}}, {18, 18}, {});
    CHECK(relaxation.max_force() > 100);
    for (int i = 0; i < 30; ++i) {
        const std::vector<double> before = relaxation.structure().positions;
        relaxation.advance();
        for (std::size_t k = 0; k < 6; ++k) CHECK(std::abs(relaxation.structure().positions[k] - before[k]) <= 0.1 + 1e-12);
    }
}

TEST_CASE("a single atom is converged at once; bad requests are named") {
    LennardJones field;
    CHECK(Relaxation(field, {{1, 2, 3}, {}, {}}, {18}, {}).converged());
    const Structure pair{{0, 0, 0, 4, 0, 0}, {}, {}};
    CHECK_THROWS_WITH_AS(Relaxation(field, pair, {18, 18}, {.free_cell = true}), doctest::Contains("periodic"), Error);
    CHECK_THROWS_WITH_AS(Relaxation(field, pair, {18, 18}, {.force = 0}), doctest::Contains("fmax"), Error);
    CHECK_THROWS_WITH_AS(Relaxation(field, pair, {18, 18}, {.stress = -1}), doctest::Contains("smax"), Error);
    CHECK_THROWS_WITH_AS(Relaxation(field, {{0, 0, 0, 0, 0, 0}, {}, {}}, {18, 18}, {}), doctest::Contains("not finite"), Error);
}
