#pragma once
// What the layer stacks of this folder share: the beginning of every model of this family, random weights, and the check.
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/program_builder.hpp"
#include "describe/operations/radial_network.hpp"
#include "graph/neighbours.hpp"
#include "model/potential_check.hpp"

namespace layers {

using namespace clebsch;

inline constexpr double cutoff = 4.5;
inline const std::vector<int> elements = {1, 6, 8};

/// A program under construction with the inputs every model has, and weights as they are asked for.
struct Stack {
    ProgramBuilder program;
    int vectors, harmonics, basis, one;
    Irreps edge;  ///< of the harmonics

    Stack(const Irreps& edge_irreps, int cutoff_power) : edge(edge_irreps) {
        vectors = program.input("vectors", "edge", {{1, 3, Irrep{1, Parity::odd}}});
        HarmonicsOptions of_edges;
        of_edges.rows = "edge";
        harmonics = program.apply("harmonics", normalized_harmonics(edge, of_edges), {vectors}).front();
        RadialOptions radial;
        radial.cutoff = cutoff;
        radial.cutoff_power = cutoff_power;
        radial.from_vectors = true;
        basis = program.apply("basis", radial_network(radial), {vectors}).front();
        Polynomial constant;
        constant.rows = "node";
        constant.operands = {make_operand({"one"}, {{1, 1, Irrep{0, Parity::even}}}, Role::output)};
        add_path(constant, {{0, 0, "", -1}}, Coefficients(), 1.0, {});
        one = program.apply("one", constant, {});
    }

    /// A linear map with shared weights, or with weights per element.
    int linear(const std::string& name, int x, const Irreps& from, const Irreps& to, bool per_element = false) {
        LinearOptions options;
        options.rows = "node";
        if (per_element) {
            options.indices = {{"species", "node", "element", false}};
            options.weights.rows = row_of("species");
        }
        const Polynomial map = clebsch::linear(from, to, options);
        return program.apply(name, map, {x, program.input(name + ".weights", per_element ? "element" : "", map.operands[1].segments)});
    }

    /// Radial network, tensor product and sum over neighbours. Returns the message; `summed` becomes its irreps.
    int convolution(const std::string& name, int x, const Irreps& from, const Irreps& kept, ConvolutionOptions options, Irreps& summed) {
        const Polynomial product = clebsch::convolution(from, edge, kept, options);
        const std::int64_t paths = product.operands[2].size();
        const Activation silu{Function{FunctionKind::silu, 0},
                              activation_scale(Function{FunctionKind::silu, 0}, ActivationNormalization::e3nn)};
        const int w = program
                          .apply(name + ".radial", multilayer_perceptron(8, {16}, paths, silu, /*fan_in=*/true, "edge"),
                                 {basis, program.input(name + ".radial_0", "", {{8 * 16, 1, {}}}),
                                  program.input(name + ".radial_1", "", {{16 * paths, 1, {}}})})
                          .front();
        summed = *irreps_of(product.operands[3]);
        return program.apply(name, product, {x, harmonics, w});
    }

    /// The model, with standard normal weights.
    Model model(const std::string& name, int atom_energy) {
        Model result{.name = name,
                     .program = program.finish({atom_energy}),
                     .weights = {},
                     .atomic_numbers = elements,
                     .element_energies = {-1.0, -2.0, -3.0},
                     .cutoff = cutoff};
        std::mt19937_64 random(7);
        std::normal_distribution<double> normal;
        for (std::size_t i = 1; i < result.program.inputs.size(); ++i) {
            const Value& value = result.program.values[static_cast<std::size_t>(result.program.inputs[i])];
            ModelWeights weights{value.name, {}};
            const std::int64_t rows = value.space.empty() ? 1 : static_cast<std::int64_t>(elements.size());
            for (std::int64_t n = 0; n < rows * value.size(); ++n) weights.values.push_back(normal(random));
            result.weights.push_back(std::move(weights));
        }
        return result;
    }
};

/// Ten atoms in a triclinic cell, no two closer than 1 A.
inline Structure crystal(std::vector<int>& numbers) {
    Structure structure{.positions = {}, .cell = {5, 0.3, -0.2, 0.4, 5.5, 0.1, -0.3, 0.2, 6}, .periodic = {true, true, true}};
    std::mt19937_64 random(11);
    std::uniform_real_distribution<double> uniform;
    while (numbers.size() < 10) {
        const double f[3] = {uniform(random), uniform(random), uniform(random)};
        Structure with = structure;
        for (std::size_t k = 0; k < 3; ++k)
            with.positions.push_back(f[0] * structure.cell[k] + f[1] * structure.cell[3 + k] + f[2] * structure.cell[6 + k]);
        if (build_graph(with, 1.0).edges() > 0) continue;
        structure = with;
        numbers.push_back(elements[random() % elements.size()]);
    }
    return structure;
}

/// Prints what the model is and whether it is a potential: 0 if every check passed.
inline int check(const Model& model, bool inversion = true) {
    try {
        std::vector<int> numbers;
        const Structure structure = crystal(numbers);
        Potential exact(model, {.dtype = DType::float64});
        const Energies energies = exact.evaluate(std::span(&structure, 1), numbers);
        std::printf("%s: %zu nodes, %zu with the gradient; energy %.6f eV, force on atom 0 (%.5f, %.5f, %.5f) eV/A\n", model.name.c_str(),
                    model.program.nodes.size(), exact.plan().program().nodes.size(), energies.energy[0], energies.forces[0],
                    energies.forces[1], energies.forces[2]);
        PotentialCheckOptions options;
        options.inversion = inversion;
        bool passed = std::abs(energies.forces[0]) > 1e-3;  // or nothing was tested
        for (const PotentialCheck& check : check_potential(exact, nullptr, structure, numbers, options)) {
            std::printf("  %-52s %8.1e  (bound %.0e %s) %s\n", check.what.c_str(), check.error, check.bound, check.unit.c_str(),
                        check.passed() ? "ok" : "FAILED");
            passed = passed && check.passed();
        }
        return passed ? 0 : 1;
    } catch (const Error& error) {
        std::printf("%s: %s\n", model.name.c_str(), error.what());
        return 2;
    }
}

}  // namespace layers
