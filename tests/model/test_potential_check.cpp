// The check of a potential must find what is wrong with one, and a model must be refused when it is not what a Model is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "describe/operations/path_builder.hpp"
#include "describe/operations/program_builder.hpp"
#include "model/potential_check.hpp"

using namespace clebsch;

namespace {

/// The atom's energy is w times the sum over neighbours of a polynomial in r: |r|^2, or r_x^2, which depends on the axes.
Model toy(bool invariant) {
    ProgramBuilder program;
    const std::vector<Segment> vector = {{1, 3, Irrep{1, Parity::odd}}}, scalar = {{1, 1, {}}};
    const int vectors = program.input("vectors", "edge", vector), weight = program.input("w", "", scalar);
    Polynomial sum;
    sum.rows = "edge";
    sum.indices = {{"receiver", "edge", "node", true}};
    sum.operands = {make_operand({"r"}, vector, Role::input), make_operand({"w", Layout::mul_ir, shared_row()}, scalar, Role::input),
                    make_operand({"out", Layout::mul_ir, row_of("receiver")}, scalar, Role::output)};
    add_path(sum, {{0, 0, "", 0}, {0, 0, "", 1}, {1, 0, "", -1}, {2, 0, "", -1}},
             invariant ? Coefficients::identity(3) : Coefficients::literal({3, 3}, {{{0, 0}, 1.0}}), 1.0, {});
    const int energy = program.apply("atom_energy", sum, {vectors, weight});
    return {.name = "toy",
            .program = program.finish({energy}),
            .weights = {{"w", {0.5}}},
            .atomic_numbers = {1, 8},
            .element_energies = {-1, -2},
            .cutoff = 3};
}

const Structure three = {.positions = {0, 0, 0, 1, 0.2, 0, 0.3, 1.1, 0.4}, .cell = {}, .periodic = {}};
const std::vector<int> water = {8, 1, 1};

std::string message(Model model) {
    try {
        Potential potential(std::move(model));
    } catch (const Error& error) { return error.what(); }
    return "accepted";
}

}  // namespace

TEST_CASE("a toy model has the energy, forces and virial of its formula") {
    Potential potential(toy(true), {.dtype = DType::float64});
    const Structure two{.positions = {0, 0, 0, 1, 2, 0}, .cell = {}, .periodic = {}};
    const Energies result = potential.evaluate(std::span(&two, 1), std::vector<int>{8, 1});
    // Two edges of |r|^2 = 5 with weight 1/2 each; elements -2 and -1. dE/dr of an edge is r.
    CHECK(result.energy == std::vector<double>{2});
    CHECK(result.atom_energy == std::vector<double>{0.5, 1.5});
    CHECK(result.forces == std::vector<double>{2, 4, 0, -2, -4, 0});
    CHECK(result.virial == std::vector<double>{2, 4, 0, 4, 8, 0, 0, 0, 0});
}

TEST_CASE("an invariant model passes every check, one that knows the axes fails the rotation and nothing else") {
    for (const bool invariant : {true, false}) {
        CAPTURE(invariant);
        Potential exact(toy(invariant), {.dtype = DType::float64}), single(toy(invariant));
        const auto checks = check_potential(exact, &single, three, water);
        CHECK(checks.size() >= 9);
        for (const PotentialCheck& check : checks) {
            CAPTURE(check.what);
            CHECK(check.passed() == (invariant || check.what.find("rotation") == std::string::npos));
        }
    }
    CHECK_FALSE(PotentialCheck{"", std::nan(""), 1, ""}.passed());
}

TEST_CASE("a model that is not one is refused with what does not fit") {
    Model model = toy(true);
    model.weights[0].values.push_back(1);
    CHECK(message(model).find("expected 1 numbers for weights 'w', got 2") != std::string::npos);
    model = toy(true);
    model.weights.clear();
    CHECK(message(model).find("expected weights for 1 inputs, got 0") != std::string::npos);
    model = toy(true);
    model.weights[0].name = "v";
    CHECK(message(model).find("no value 'v'") != std::string::npos);
    model = toy(true);
    model.cutoff = std::nan("");
    CHECK(message(model).find("cutoff") != std::string::npos);
    model = toy(true);
    model.element_energies.pop_back();
    CHECK(message(model).find("an energy for each of 2 elements") != std::string::npos);
    model = toy(true);
    model.atomic_numbers[0] = 200;
    CHECK(message(model).find("atomic numbers from 1 to 118, got 200") != std::string::npos);
    model = toy(true);
    std::swap(model.program.inputs[0], model.program.inputs[1]);
    CHECK(message(model).find("first input 'vectors'") != std::string::npos);
}
