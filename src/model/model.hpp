#pragma once
// What a potential is before it runs: one program from edge vectors to atoms' energies, its weights, and what belongs to the elements.
#include <string>
#include <vector>

#include "describe/program.hpp"

namespace clebsch {

/// Numbers for one input of a model's program, in the order of its rows.
struct ModelWeights {
    std::string name;
    std::vector<double> values;
};

/// The energy of a structure is the sum over atoms of `atom_energy` and the element's `element_energies`. The program has the
/// - inputs `vectors` (1o per edge, x_sender - x_receiver in Angstrom), then the weights: shared, or one row per `element`;
/// - output `atom_energy` (one number per node, in eV);
/// - indices `sender` and `receiver` (sorted), edge -> node, and `species`, node -> element.
/// A pair at `cutoff` or beyond contributes nothing. Everything else about an architecture is inside the program.
/// A model that reads tables (model/tables.hpp) has an index `piece`, edge -> piece, too, and weights with a row per `piece`.
struct Model {
    std::string name;
    Program program;
    std::vector<ModelWeights> weights;     ///< of every input but `vectors`, by name
    std::vector<int> atomic_numbers;       ///< of every element, in the order of the program's rows of `element`
    std::vector<double> element_energies;  ///< [elements], in eV
    double cutoff = 0;                     ///< in Angstrom
    /// Where the pieces of tables end, ascending, in Angstrom. A pair is in the first piece whose end is above its distance; in none (-1)
    /// beyond the last. Empty: no tables.
    std::vector<double> piece_ends = {};
};

/// Throws Error naming what does not fit the description above.
void validate(const Model& model);

/// Energies and forces from the model's program: outputs `atom_energy` and `vectors_gradient`, whose cotangent is one number per node
/// (`atom_energy_cotangent`, all 1 for forces). Derived, not written.
Program with_gradient(const Model& model);

/// What follows in float64, also a program. Inputs `atom_energy` (node), `vectors_gradient` and `vectors` (edge), `element_energies`
/// (element); outputs `total_atom_energy` (node), `energy` (graph), `forces` (node), `virial` (graph, 3 x 3). Index `graph` (sorted): node
/// -> graph. An edge pulls its receiver along the gradient and its sender against it; the virial is the symmetric part of r (x) dE/dr.
Program totals();

}  // namespace clebsch
