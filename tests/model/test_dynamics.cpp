#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "model/dynamics.hpp"
#include "model/units.hpp"
#include "support/analytic_force_fields.hpp"

using namespace clebsch;
using clebsch::testing::LennardJones;
using clebsch::testing::Springs;

namespace {

/// Argon on a face-centred lattice of so many cubes along each axis, periodic.
MovingAtoms argon(int cubes, double temperature, std::uint64_t seed) {
    constexpr double edge = 5.4;
    Structure structure;
    structure.cell = {edge * cubes, 0, 0, 0, edge * cubes, 0, 0, 0, edge * cubes};
    structure.periodic = {true, true, true};
    for (int i = 0; i < 8 * cubes * cubes * cubes; ++i) {
        const int x = i % (2 * cubes), y = i / (2 * cubes) % (2 * cubes), z = i / (4 * cubes * cubes);
        if ((x + y + z) % 2 == 0) structure.positions.insert(structure.positions.end(), {x * edge / 2, y * edge / 2, z * edge / 2});
    }
    const auto atoms = static_cast<std::size_t>(structure.atoms());
    MovingAtoms out = atoms_at_rest(std::move(structure), std::vector<int>(atoms, 18));
    out.velocities = thermal_velocities(out.masses, temperature, seed);
    return out;
}

MovingAtoms on_springs(int atoms, int atomic_number) {
    Structure structure;
    structure.positions.assign(static_cast<std::size_t>(3 * atoms), 0.0);
    for (int i = 0; i < 3 * atoms; ++i) structure.positions[static_cast<std::size_t>(i)] = 0.3 * i * (i % 2 == 0 ? 1 : -1);
    return atoms_at_rest(std::move(structure), std::vector<int>(static_cast<std::size_t>(atoms), atomic_number));
}

/// Largest deviation of the total energy from its start over `time` fs.
double energy_error(double timestep, double time) {
    LennardJones field;
    MolecularDynamics dynamics(field, argon(2, 60, 5), {.timestep = timestep});
    const double start = dynamics.conserved_energy();
    double worst = 0.0;
    for (int i = 0; i < static_cast<int>(time / timestep + 0.5); ++i) {
        dynamics.advance();
        worst = std::max(worst, std::abs(dynamics.conserved_energy() - start));
    }
    return worst;
}

}  // namespace

TEST_CASE("units: a known oscillator has its textbook period and energies") {
    // Two hydrogen atoms on a spring of 36 eV / A^2: omega = sqrt(2 k / m).
    Springs field(18, true);  // the ring of two has the spring twice
    MovingAtoms start = on_springs(2, 1);
    start.structure.positions = {0, 0, 0, 0.1, 0, 0};
    const double omega = std::sqrt(2 * 36 * 1.602176634e-19 * 1e20 / (1.008 * 1.66053906892e-27)) * 1e-15;  // 1/fs
    MolecularDynamics dynamics(field, start, {.timestep = 0.001});
    CHECK(dynamics.potential_energy() == doctest::Approx(0.5 * 36 * 0.01));
    for (int i = 0; i < 5000; ++i) dynamics.advance();
    CHECK(dynamics.atoms().structure.positions[3] - dynamics.atoms().structure.positions[0] ==
          doctest::Approx(0.1 * std::cos(omega * 5)).epsilon(1e-6));
    CHECK(dynamics.conserved_energy() == doctest::Approx(0.18).epsilon(1e-7));
    CHECK(boltzmann == doctest::Approx(8.617333262e-5).epsilon(1e-10));
    CHECK(gigapascal == doctest::Approx(160.2176634));
}

TEST_CASE("velocity Verlet conserves energy, to the second order of the time step") {
    const double coarse = energy_error(8, 800), fine = energy_error(4, 800), finest = energy_error(2, 800);
    CAPTURE(coarse);
    CAPTURE(fine);
    CAPTURE(finest);
    CHECK(coarse / fine == doctest::Approx(4).epsilon(0.15));
    CHECK(fine / finest == doctest::Approx(4).epsilon(0.15));
    CHECK(finest < 1e-4);
}

TEST_CASE("velocity Verlet conserves momentum and runs backwards to where it came from") {
    LennardJones field;
    const MovingAtoms start = argon(2, 60, 6);
    MolecularDynamics forwards(field, start, {.timestep = 4});
    for (int i = 0; i < 100; ++i) forwards.advance();
    std::array<double, 3> momentum{};
    for (std::size_t i = 0; i < start.velocities.size(); ++i) momentum[i % 3] += start.masses[i / 3] * forwards.atoms().velocities[i];
    for (const double p : momentum) CHECK(std::abs(p) < 1e-12);
    MovingAtoms turned = forwards.atoms();
    for (double& v : turned.velocities) v = -v;
    MolecularDynamics backwards(field, turned, {.timestep = 4});
    for (int i = 0; i < 100; ++i) backwards.advance();
    double moved = 0, error = 0;
    for (std::size_t i = 0; i < start.structure.positions.size(); ++i) {
        moved = std::max(moved, std::abs(forwards.atoms().structure.positions[i] - start.structure.positions[i]));
        error = std::max(error, std::abs(backwards.atoms().structure.positions[i] - start.structure.positions[i]));
    }
    CHECK(moved > 0.1);
    CHECK(error < 1e-10);
}

TEST_CASE("thermal velocities: their temperature, its width, no drift, and the same bits everywhere") {
    const std::vector<double> masses(200, 18.0);
    double sum = 0, square = 0;
    constexpr int runs = 400;
    for (int seed = 0; seed < runs; ++seed) {
        const std::vector<double> velocities = thermal_velocities(masses, 300, static_cast<std::uint64_t>(seed));
        const double temperature = 2 * kinetic_energy(masses, velocities) / (boltzmann * 597);
        sum += temperature, square += temperature * temperature;
        std::array<double, 3> drift{};
        for (std::size_t i = 0; i < velocities.size(); ++i) drift[i % 3] += velocities[i];
        for (const double d : drift) REQUIRE(std::abs(d) < 1e-14);
    }
    const double mean = sum / runs, variance = square / runs - mean * mean, expected = 2 * 300.0 * 300.0 / 597;
    CHECK(std::abs(mean - 300) < 4 * std::sqrt(expected / runs));
    CHECK(std::abs(variance / expected - 1) < 4 * std::sqrt(2.0 / runs));
    CHECK(thermal_velocities(std::vector<double>{1.0}, 300, 3)[0] != 0.0);
    CHECK(thermal_velocities(std::vector<double>{1.0, 2.0}, 0, 3) == std::vector<double>(6, 0.0));
    // Written down once: another machine, compiler or library must not change a bit.
    const std::vector<double> known = thermal_velocities(std::vector<double>{1.0, 16.0}, 300, 2026);
    CAPTURE(known[0]);
    CHECK(known[0] == -0.008170746427244337);
    CHECK(known[5] == -8.964131381324026e-05);
}

TEST_CASE("Langevin dynamics of a harmonic system has the exact spread of positions at any time step, and velocities' known error") {
    // BAOAB: <x^2> = kT/k without error, <v^2> = kT/m (1 - (omega dt)^2 / 4).
    constexpr int atoms = 200, steps = 400;
    constexpr double stiffness = 5.0, temperature = 250.0;
    const double mass = atoms_at_rest({{0, 0, 0}, {}, {}}, {8}).masses[0], omega = std::sqrt(stiffness * acceleration_unit / mass);
    Springs field(stiffness, false);
    for (const double part : {0.2, 1.0}) {
        CAPTURE(part);
        const double timestep = part / omega;
        MovingAtoms start = on_springs(atoms, 8);
        for (std::size_t i = 0; i < start.structure.positions.size(); ++i) start.structure.positions[i] = Springs::place(i);
        MolecularDynamics dynamics(field, start,
                                   {.ensemble = Ensemble::langevin,
                                    .timestep = timestep,
                                    .temperature = temperature,
                                    .friction = 0.5 / timestep,
                                    .seed = 17,
                                    .skin = 5});
        for (int i = 0; i < 100; ++i) dynamics.advance();
        double positions = 0, velocities = 0;
        for (int i = 0; i < steps; ++i) {
            for (int k = 0; k < 10; ++k) dynamics.advance();  // far enough apart to count as independent
            for (std::size_t c = 0; c < 3 * atoms; ++c) {
                const double x = dynamics.atoms().structure.positions[c] - Springs::place(c);
                positions += x * x;
            }
            for (const double v : dynamics.atoms().velocities) velocities += v * v;
        }
        constexpr double count = 3.0 * atoms * steps;
        const double expected = boltzmann * temperature / stiffness;
        const double expected_velocities = boltzmann * temperature * acceleration_unit / mass * (1 - part * part / 4);
        CHECK(std::abs(positions / count / expected - 1) < 0.015);  // about three standard deviations
        CHECK(std::abs(velocities / count / expected_velocities - 1) < 0.015);
    }
}

TEST_CASE("Langevin dynamics without forces: the velocity's memory decays as friction says") {
    Springs field(1e-12, false);
    MovingAtoms start = on_springs(1000, 8);
    for (std::size_t i = 0; i < start.structure.positions.size(); ++i) start.structure.positions[i] = Springs::place(i);
    start.velocities = thermal_velocities(start.masses, 300, 4);
    MolecularDynamics dynamics(field, start,
                               {.ensemble = Ensemble::langevin, .timestep = 2, .temperature = 300, .friction = 0.02, .seed = 5, .skin = 5});
    for (int i = 0; i < 25; ++i) dynamics.advance();
    double product = 0, square = 0;
    for (std::size_t i = 0; i < start.velocities.size(); ++i) {
        product += start.velocities[i] * dynamics.atoms().velocities[i];
        square += start.velocities[i] * start.velocities[i];
    }
    CHECK(std::abs(product / square - std::exp(-1.0)) < 4 * std::sqrt(1 / 3000.0));
}

TEST_CASE(
    "stochastic velocity rescaling: kinetic energies are distributed canonically, the centre of mass rests, the heat is accounted for") {
    constexpr int atoms = 5, degrees = 3 * atoms - 3, steps = 80'000;
    constexpr double temperature = 320;
    Springs field(3.0, true);
    MovingAtoms start = on_springs(atoms, 6);
    for (double& x : start.structure.positions) x *= 0.02;
    start.velocities = thermal_velocities(start.masses, 100, 9);
    MolecularDynamics dynamics(
        field, start,
        {.ensemble = Ensemble::rescaling, .timestep = 1, .temperature = temperature, .time_constant = 8, .seed = 21, .skin = 8});
    const double conserved = dynamics.conserved_energy();
    CHECK(dynamics.degrees_of_freedom() == degrees);
    for (int i = 0; i < 2000; ++i) dynamics.advance();
    double kinetic = 0, kinetic_square = 0, potential = 0, worst = 0;
    for (int i = 0; i < steps; ++i) {
        dynamics.advance();
        const double k = dynamics.kinetic_energy();
        kinetic += k, kinetic_square += k * k, potential += dynamics.potential_energy();
        worst = std::max(worst, std::abs(dynamics.conserved_energy() - conserved));
    }
    const double unit = boltzmann * temperature, mean = kinetic / steps, variance = kinetic_square / steps - mean * mean;
    // Correlated over about 8 steps: some 5,000 independent samples.
    CHECK(std::abs(mean / (degrees / 2.0 * unit) - 1) < 0.02);
    CHECK(std::abs(variance / (degrees / 2.0 * unit * unit) - 1) < 0.08);
    CHECK(std::abs(potential / steps / (degrees / 2.0 * unit) - 1) < 0.05);
    CHECK(worst < 0.03 * degrees * unit);
    for (std::size_t k = 0; k < 3; ++k) {
        double momentum = 0;
        for (std::size_t i = 0; i < atoms; ++i) momentum += dynamics.atoms().velocities[3 * i + k];
        CHECK(std::abs(momentum) < 1e-9);
    }
}

TEST_CASE("trajectories go on with the same bits from any step, with every thermostat and whatever the skin") {
    LennardJones field;
    for (const Ensemble ensemble : {Ensemble::nve, Ensemble::langevin, Ensemble::rescaling}) {
        CAPTURE(to_text(ensemble));
        DynamicsOptions options{.ensemble = ensemble, .timestep = 5, .temperature = 90, .seed = 3};
        MolecularDynamics whole(field, argon(2, 120, 8), options);
        for (int i = 0; i < 60; ++i) whole.advance();
        options.skin = 1.7;
        MovingAtoms middle = argon(2, 120, 8);
        for (const int part : {23, 36, 1}) {
            MolecularDynamics dynamics(field, middle, options);
            for (int i = 0; i < part; ++i) dynamics.advance();
            middle = dynamics.atoms();
        }
        CHECK(middle == whole.atoms());
        CHECK(whole.neighbours().builds() < 30);
        CHECK(whole.neighbours().builds() > 1);
        options.seed = 4;
        MolecularDynamics other(field, argon(2, 120, 8), options);
        other.advance();
        MolecularDynamics same(field, argon(2, 120, 8), {.ensemble = ensemble, .timestep = 5, .temperature = 90, .seed = 3});
        same.advance();
        CHECK((other.atoms() == same.atoms()) == (ensemble == Ensemble::nve));
    }
}

TEST_CASE("pressure: kinetic part and virial against a finite difference of the volume") {
    LennardJones field;
    const MovingAtoms start = argon(2, 0, 1);
    const auto energy = [&](double scale) {
        MovingAtoms scaled = start;
        for (double& x : scaled.structure.positions) x *= scale;
        for (double& x : scaled.structure.cell) x *= scale;
        return MolecularDynamics(field, scaled, {}).potential_energy();
    };
    const double space = volume(start.structure), step = 1e-5;
    const double expected = -(energy(1 + step) - energy(1 - step)) / (6 * step * space);
    CHECK(MolecularDynamics(field, start, {}).pressure() == doctest::Approx(expected).epsilon(1e-6));
    MovingAtoms warm = start;
    warm.velocities = thermal_velocities(warm.masses, 100, 1);
    const MolecularDynamics dynamics(field, warm, {});
    CHECK(dynamics.pressure() - expected == doctest::Approx(2 * dynamics.kinetic_energy() / (3 * space)).epsilon(1e-6));
}

TEST_CASE("bad options, masses and forces are named") {
    LennardJones field;
    const MovingAtoms good = argon(2, 60, 1);
    const auto rejects = [&](const MovingAtoms& atoms, const DynamicsOptions& options, const char* words) {
        CHECK_THROWS_WITH_AS(MolecularDynamics(field, atoms, options), doctest::Contains(words), Error);
    };
    rejects(good, {.timestep = 0}, "timestep: expected 1e-06 to 1000 fs, got 0");
    for (const double timestep : {std::numeric_limits<double>::quiet_NaN(), 1e300, 1e-300, -1.0})
        rejects(good, {.timestep = timestep}, "molecular dynamics: timestep: expected");
    rejects(good, {.temperature = 1e9}, "temperature: expected 0 to 1e+06 K, got 1e+09");
    rejects(good, {.ensemble = Ensemble::langevin, .timestep = 1, .friction = 101}, "friction: expected at most 100 per time step");
    rejects(good, {.ensemble = Ensemble::rescaling, .timestep = 1, .time_constant = 1e-3}, "time-constant: expected at least");
    rejects(good, {.temperature = -1}, "temperature");
    rejects(good, {.ensemble = Ensemble::langevin, .friction = 0}, "friction");
    rejects(good, {.ensemble = Ensemble::rescaling, .time_constant = -3}, "time-constant");
    rejects(good, {.skin = -0.5}, "skin");
    MovingAtoms bad = good;
    bad.masses[3] = 0;
    rejects(bad, {}, "atom 3");
    bad = good;
    bad.velocities[10] = std::numeric_limits<double>::infinity();
    rejects(bad, {}, "atom 3");
    bad = good;
    bad.velocities.pop_back();
    rejects(bad, {}, "velocity components");
    bad = good;  // on top of one another: infinite forces
    for (std::size_t k = 0; k < 3; ++k) bad.structure.positions[3 + k] = bad.structure.positions[k];
    rejects(bad, {}, "step 0");
    rejects(MovingAtoms{}, {}, "no atoms");
    CHECK_THROWS_WITH_AS(parse_ensemble("npt"), doctest::Contains("npt"), Error);
    for (const Ensemble ensemble : {Ensemble::nve, Ensemble::langevin, Ensemble::rescaling})
        CHECK(parse_ensemble(to_text(ensemble)) == ensemble);
}
