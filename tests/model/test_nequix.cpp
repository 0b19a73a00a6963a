// The Nequix model against golden values of the authors' implementation, and what any potential must satisfy.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>
#include <string>

#include "algebra/rotation.hpp"
#include "base/error.hpp"
#include "graph/neighbours.hpp"
#include "io/json.hpp"
#include "io/nequix.hpp"
#include "model/nequix.hpp"
#include "model/potential.hpp"
#include "support/atoms.hpp"
#include "support/repetitions.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

Potential& mp1(DType dtype) {
    static Potential single = Potential::load(data + "nequix-mp-1.nqx");
    static Potential twice = Potential::load(data + "nequix-mp-1.nqx", {.dtype = DType::float64});
    return dtype == DType::float32 ? single : twice;
}

Energies evaluate(Potential& potential, const Atoms& atoms) { return potential.evaluate(std::span(&atoms.structure, 1), atoms.numbers); }

std::vector<double> stress(const Energies& energies, const Structure& structure) {
    std::vector<double> result = energies.virial;
    for (double& number : result) number /= volume(structure);
    return result;
}

/// Random atoms in a random triclinic cell, no two closer than 1.5 A.
Atoms random_crystal(std::uint64_t seed, int atoms) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    Atoms result;
    result.structure.cell = {5, 0, 0, 0, 5.5, 0, 0, 0, 6};
    for (double& number : result.structure.cell) number += 0.4 * normal(random);
    result.structure.periodic = {true, true, true};
    const auto& c = result.structure.cell;
    for (int tries = 0; std::ssize(result.numbers) < atoms && tries < 10000; ++tries) {
        const double f[3] = {uniform(random), uniform(random), uniform(random)};
        Structure with = result.structure;
        for (std::size_t k = 0; k < 3; ++k) with.positions.push_back(f[0] * c[k] + f[1] * c[3 + k] + f[2] * c[6 + k]);
        if (build_graph(with, 1.5).edges() > 0) continue;
        result.structure = with;
        result.numbers.push_back(std::vector<int>{1, 6, 8, 14, 29}[random() % 5]);
    }
    REQUIRE(std::ssize(result.numbers) == atoms);
    return result;
}

Atoms strained(const Atoms& atoms, const std::array<double, 9>& deformation) {
    Atoms result = atoms;
    const auto apply = [&](double* x) {
        const double old[3] = {x[0], x[1], x[2]};
        for (std::size_t b = 0; b < 3; ++b) x[b] = old[0] * deformation[b] + old[1] * deformation[3 + b] + old[2] * deformation[6 + b];
    };
    for (std::size_t i = 0; i < atoms.numbers.size(); ++i) apply(result.structure.positions.data() + 3 * i);
    for (std::size_t i = 0; i < 3; ++i) apply(result.structure.cell.data() + 3 * i);
    return result;
}

std::string message(Potential& potential, const Atoms& atoms) {
    try {
        evaluate(potential, atoms);
    } catch (const Error& error) { return error.what(); }
    return "accepted";
}

}  // namespace

TEST_CASE("energies, forces and stress of published structures are those of the authors' implementation") {
    const nlohmann::json goldens = read_json(CLEBSCH_TEST_DATA "/nequix.json");
    for (const auto& [given_file, golden] : goldens.items()) {
        const auto& file = given_file;
        CAPTURE(file);
        const Atoms atoms = read(file);
        if (one_in(2) == 2 && atoms.numbers.size() > 100) continue;
        const auto& exact = golden.at("float64");
        const auto count = static_cast<double>(atoms.numbers.size());
        const std::vector<double> forces = flat(exact.at("forces"));
        const bool has_stress = !exact.at("stress").is_null();
        for (const DType dtype : {DType::float64, DType::float32}) {
            CAPTURE(to_text(dtype));
            const bool twice = dtype == DType::float64;
            const Energies result = evaluate(mp1(dtype), atoms);
            const double energy = exact.at("energy");
            CHECK(std::abs(result.energy[0] - energy) <= (twice ? 1e-9 * std::abs(energy) : 2e-6 * count));
            CHECK(deviation(result.forces, forces) <= (twice ? 1e-9 * largest(forces) : 1e-4));
            if (!has_stress) continue;
            const std::vector<double> expected = flat(exact.at("stress"));
            CHECK(deviation(stress(result, atoms.structure), expected) <= (twice ? 1e-9 * largest(expected) : 1e-6));
        }
    }
}

TEST_CASE("forces and virial are derivatives of the energy: finite differences in a triclinic cell") {
    Potential& potential = mp1(DType::float64);
    const Atoms atoms = random_crystal(11, 7);
    const Energies here = evaluate(potential, atoms);
    constexpr double step = 1e-4;
    const auto slope = [&](const auto& moved) {
        double sum = 0;
        for (const auto& [factor, distance] : {std::pair(8.0, 1.0), std::pair(-1.0, 2.0)})
            sum +=
                factor * (evaluate(potential, moved(distance * step)).energy[0] - evaluate(potential, moved(-distance * step)).energy[0]);
        return sum / (12 * step);
    };
    for (std::size_t i = 0; i < here.forces.size(); i += static_cast<std::size_t>(2 * one_in(3))) {
        const double force = -slope([&](double by) {
            Atoms moved = atoms;
            moved.structure.positions[i] += by;
            return moved;
        });
        CAPTURE(i);
        CHECK(std::abs(force - here.forces[i]) < 1e-7);
    }
    for (std::size_t a = 0; a < 3; ++a) {
        for (std::size_t b = 0; b <= a; ++b) {
            const double virial = slope([&](double by) {
                std::array<double, 9> deformation = {1, 0, 0, 0, 1, 0, 0, 0, 1};
                deformation[3 * a + b] += by / 2;
                deformation[3 * b + a] += by / 2;
                return strained(atoms, deformation);
            });
            CAPTURE(a);
            CAPTURE(b);
            CHECK(std::abs(virial - here.virial[3 * a + b]) < 1e-6);
            CHECK(here.virial[3 * a + b] == here.virial[3 * b + a]);
        }
    }
}

TEST_CASE("rotations, permutations, translations and supercells change what they should and nothing else") {
    Potential& potential = mp1(DType::float64);
    const Atoms atoms = random_crystal(12, 6);
    const Energies here = evaluate(potential, atoms);
    const double size = largest(here.forces);

    SUBCASE("rotation with inversion") {
        const Matrix3 rotation = rotation_matrix(Angles{0.3, 1.1, -0.7});
        std::array<double, 9> transposed{};
        for (std::size_t a = 0; a < 3; ++a)
            for (std::size_t b = 0; b < 3; ++b) transposed[3 * b + a] = -rotation[3 * a + b];
        const Energies there = evaluate(potential, strained(atoms, transposed));
        CHECK(std::abs(there.energy[0] - here.energy[0]) < 1e-10);
        std::vector<double> expected(here.forces.size(), 0.0), virial(9, 0.0);
        for (std::size_t i = 0; i < atoms.numbers.size(); ++i)
            for (std::size_t a = 0; a < 3; ++a)
                for (std::size_t b = 0; b < 3; ++b) expected[3 * i + b] += here.forces[3 * i + a] * transposed[3 * a + b];
        CHECK(deviation(there.forces, expected) < 1e-10 * size);
        for (std::size_t a = 0; a < 3; ++a)
            for (std::size_t b = 0; b < 3; ++b)
                for (std::size_t c = 0; c < 3; ++c)
                    for (std::size_t d = 0; d < 3; ++d)
                        virial[3 * c + d] += transposed[3 * a + c] * here.virial[3 * a + b] * transposed[3 * b + d];
        CHECK(deviation(there.virial, virial) < 1e-10 * largest(virial));
    }
    SUBCASE("permutation") {
        Atoms reversed = atoms;
        const std::size_t count = atoms.numbers.size();
        for (std::size_t i = 0; i < count; ++i) {
            reversed.numbers[i] = atoms.numbers[count - 1 - i];
            for (std::size_t k = 0; k < 3; ++k)
                reversed.structure.positions[3 * i + k] = atoms.structure.positions[3 * (count - 1 - i) + k];
        }
        Energies there = evaluate(potential, reversed);
        CHECK(std::abs(there.energy[0] - here.energy[0]) < 1e-11);
        std::vector<double> back(here.forces.size());
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t k = 0; k < 3; ++k) back[3 * i + k] = there.forces[3 * (count - 1 - i) + k];
        CHECK(deviation(back, here.forces) < 1e-11 * size);
    }
    SUBCASE("translation, by a lattice vector for one atom") {
        Atoms moved = atoms;
        for (std::size_t i = 0; i < moved.structure.positions.size(); ++i) moved.structure.positions[i] += 0.37;
        for (std::size_t k = 0; k < 3; ++k) moved.structure.positions[3 + k] -= 2 * atoms.structure.cell[3 + k];
        const Energies there = evaluate(potential, moved);
        CHECK(std::abs(there.energy[0] - here.energy[0]) < 1e-10);
        CHECK(deviation(there.forces, here.forces) < 1e-10 * size);
    }
    SUBCASE("supercell") {
        Atoms doubled = atoms;
        doubled.numbers.insert(doubled.numbers.end(), atoms.numbers.begin(), atoms.numbers.end());
        for (std::size_t i = 0; i < atoms.structure.positions.size(); ++i)
            doubled.structure.positions.push_back(atoms.structure.positions[i] + atoms.structure.cell[6 + i % 3]);
        for (std::size_t k = 0; k < 3; ++k) doubled.structure.cell[6 + k] *= 2;
        const Energies there = evaluate(potential, doubled);
        CHECK(std::abs(there.energy[0] - 2 * here.energy[0]) < 1e-10);
        CHECK(deviation({there.forces.begin(), there.forces.begin() + std::ssize(here.forces)}, here.forces) < 1e-10 * size);
    }
}

TEST_CASE("a batch gives each structure what it gives alone, and any number of threads the same bits") {
    std::vector<Atoms> all = {read("aspirin.xyz"), random_crystal(13, 5), random_crystal(14, 1)};
    all.push_back({{.positions = {1, 2, 3}, .cell = {}, .periodic = {}}, {8}});
    all.push_back({{.positions = {0, 0, 0, 50, 0, 0}, .cell = {}, .periodic = {}}, {6, 1}});
    std::vector<Structure> structures;
    std::vector<int> numbers;
    for (const Atoms& atoms : all) {
        structures.push_back(atoms.structure);
        numbers.insert(numbers.end(), atoms.numbers.begin(), atoms.numbers.end());
    }
    for (const DType dtype : {DType::float32, DType::float64}) {
        const double bound = dtype == DType::float32 ? 1e-5 : 1e-11;
        const Energies batch = mp1(dtype).evaluate(structures, numbers);
        std::size_t atom = 0;
        for (std::size_t s = 0; s < all.size(); ++s) {
            CAPTURE(s);
            const Energies alone = evaluate(mp1(dtype), all[s]);
            CHECK(std::abs(alone.energy[0] - batch.energy[s]) < bound * static_cast<double>(all[s].numbers.size()));
            const auto begin = batch.forces.begin() + static_cast<std::ptrdiff_t>(3 * atom);
            CHECK(deviation(alone.forces, {begin, begin + std::ssize(alone.forces)}) < 10 * bound);
            atom += all[s].numbers.size();
        }
        Potential three = Potential::load(data + "nequix-mp-1.nqx", {.dtype = dtype, .threads = 3});
        const Energies again = three.evaluate(structures, numbers);
        CHECK(again.energy == batch.energy);
        CHECK(again.forces == batch.forces);
        CHECK(again.virial == batch.virial);
    }
}

TEST_CASE("skip weights per species: equal ones give the model with one set, and each species takes its own") {
    NequixCheckpoint checkpoint = read_nequix(data + "nequix-mp-1.nqx");
    const Atoms atoms = random_crystal(15, 4);
    const Energies shared = evaluate(mp1(DType::float64), atoms);
    const std::size_t species = checkpoint.atomic_numbers.size();
    checkpoint.index_weights = true;
    for (NequixLayer& layer : checkpoint.layers) {
        for (WeightArray& skip : layer.skip) {
            const std::vector<float> one = skip.values;
            for (std::size_t s = 1; s < species; ++s) skip.values.insert(skip.values.end(), one.begin(), one.end());
            skip.shape.insert(skip.shape.begin(), static_cast<std::int64_t>(species));
        }
    }
    Potential indexed(nequix_model(checkpoint), {.dtype = DType::float64});
    const Energies same = evaluate(indexed, atoms);
    CHECK(std::abs(same.energy[0] - shared.energy[0]) < 1e-11);
    CHECK(deviation(same.forces, shared.forces) < 1e-11);

    // Without the skip of one species, energies change where that species is, and only there.
    const int first = atoms.numbers.front();
    const auto row = static_cast<std::size_t>(std::ranges::find(checkpoint.atomic_numbers, first) - checkpoint.atomic_numbers.begin());
    for (WeightArray& skip : checkpoint.layers.back().skip) {
        const std::size_t size = skip.values.size() / species;
        std::fill_n(skip.values.begin() + static_cast<std::ptrdiff_t>(row * size), size, 0.0f);
    }
    Potential without(nequix_model(checkpoint), {.dtype = DType::float64});
    const Energies changed = evaluate(without, atoms);
    for (std::size_t i = 0; i < atoms.numbers.size(); ++i)
        CHECK((std::abs(changed.atom_energy[i] - shared.atom_energy[i]) > 1e-3) == (atoms.numbers[i] == first));
}

TEST_CASE("one atom alone has its own energy and no force; so have atoms out of reach") {
    Potential& potential = mp1(DType::float64);
    const Energies one = evaluate(potential, {{.positions = {1, 2, 3}, .cell = {}, .periodic = {}}, {8}});
    CHECK(std::isfinite(one.energy[0]));
    CHECK(one.forces == std::vector<double>(3, 0.0));
    CHECK(one.virial == std::vector<double>(9, 0.0));
    const Energies two = evaluate(potential, {{.positions = {0, 0, 0, 6, 0, 0}, .cell = {}, .periodic = {}}, {8, 8}});
    CHECK(two.energy[0] == doctest::Approx(2 * one.energy[0]).epsilon(1e-14));
    const Energies huge =
        evaluate(potential, {{.positions = {0, 0, 0}, .cell = {1e6, 0, 0, 0, 1e6, 0, 0, 0, 1e6}, .periodic = {true, true, true}}, {8}});
    CHECK(huge.energy[0] == one.energy[0]);
    const Energies none = potential.evaluate(std::vector<Structure>(1), {});
    CHECK(none.energy == std::vector<double>{0.0});
}

TEST_CASE("pairs beyond the cutoff change nothing") {
    const Atoms atoms = read("aspirin.xyz");
    Potential& potential = mp1(DType::float64);
    Energies wide;
    potential.evaluate(std::span(&atoms.structure, 1), atoms.numbers, build_graph(atoms.structure, potential.cutoff() + 1), wide);
    const Energies exact = evaluate(potential, atoms);
    CHECK(std::abs(wide.energy[0] - exact.energy[0]) < 1e-11);
    CHECK(deviation(wide.forces, exact.forces) < 1e-11);
}

TEST_CASE("a graph whose edges are not in order, or lack their reverse, is one too") {
    const Atoms atoms = random_crystal(16, 3);
    Potential& potential = mp1(DType::float64);
    const Energies expected = evaluate(potential, atoms);
    const Graph graph = build_graph(atoms.structure, potential.cutoff());
    std::vector<std::int64_t> sender(graph.sender.rbegin(), graph.sender.rend()), receiver(graph.receiver.rbegin(), graph.receiver.rend());
    std::vector<double> vectors;
    for (std::size_t e = sender.size(); e-- > 0;)
        vectors.insert(vectors.end(), graph.vectors.begin() + 3 * e, graph.vectors.begin() + 3 * e + 3);
    Energies result;
    const auto run = [&] {
        potential.evaluate(std::span(&atoms.structure, 1), atoms.numbers, graph_from_edges(3, sender, receiver, vectors), result);
    };
    run();
    CHECK(std::abs(result.energy[0] - expected.energy[0]) < 1e-11);
    CHECK(deviation(result.forces, expected.forces) < 1e-11);
    CHECK(deviation(result.virial, expected.virial) < 1e-10);
    const double whole = result.energy[0];
    sender.pop_back(), receiver.pop_back(), vectors.resize(vectors.size() - 3);
    run();
    CHECK(std::abs(result.energy[0] - whole) > 1e-6);
    CHECK(deviation(evaluate(potential, atoms).forces, expected.forces) == 0);  // and the usual way again
}

TEST_CASE("bad input is an error that names the atom: elements, positions, atoms at the same place") {
    Potential& potential = mp1(DType::float32);
    Atoms atoms{{.positions = {0, 0, 0, 1, 0, 0}, .cell = {}, .periodic = {}}, {8, 85}};
    CHECK(message(potential, atoms).find("atom 1 (At) has atomic number 85") != std::string::npos);
    atoms.numbers[1] = 0;
    CHECK(message(potential, atoms).find("atom 1 has atomic number 0") != std::string::npos);
    atoms.numbers = {8, 1};
    atoms.structure.positions[4] = std::nan("");
    CHECK(message(potential, atoms).find("is not finite") != std::string::npos);
    Energies result;
    Graph graph = build_graph(Structure{.positions = {0, 0, 0, 1, 0, 0}, .cell = {}, .periodic = {}}, 2.0);
    CHECK_THROWS_WITH_AS(potential.evaluate(std::span(&atoms.structure, 1), atoms.numbers, graph, result),
                         doctest::Contains("the position of atom 1 (H) is not finite"), Error);
    atoms.structure.positions[4] = 0;
    graph.nodes = 3;
    CHECK_THROWS_AS(potential.evaluate(std::span(&atoms.structure, 1), atoms.numbers, graph, result), Error);
    atoms.structure.positions = {0, 0, 0, 0, 0, 0};
    CHECK(message(potential, atoms).find("atom 0 (O) and atom 1 (H) are 0 A apart, expected at least 0.001 A") != std::string::npos);
    atoms.structure.positions[3] = 0.0009;
    CHECK(message(potential, atoms).find("are 9e-04 A apart") != std::string::npos);
    atoms.structure.positions[3] = 0.0011;
    result = evaluate(potential, atoms);
    CHECK(std::isfinite(result.energy[0]));
    CHECK(std::isfinite(largest(result.forces)));
    Atoms image{{.positions = {0, 0, 0}, .cell = {5, 0, 0, 0, 5, 0, 0, 0, 5}, .periodic = {true, true, true}}, {8}};
    graph = build_graph(image.structure, 6.0);
    graph.vectors[0] = graph.vectors[1] = graph.vectors[2] = 0;
    CHECK_THROWS_WITH_AS(potential.evaluate(std::span(&image.structure, 1), image.numbers, graph, result),
                         doctest::Contains("atom 0 (O) and its image are 0 A apart"), Error);
    CHECK_THROWS_AS(Potential::load(data + "missing.nqx"), Error);
}
