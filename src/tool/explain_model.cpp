#include "tool/explain_model.hpp"

#include "io/elements.hpp"
#include "io/nequix.hpp"
#include "model/nequix.hpp"
#include "model/potential.hpp"
#include "tool/program_picture.hpp"

namespace clebsch::tool {
namespace {

std::int64_t count(const std::vector<WeightArray>& arrays) {
    std::int64_t sum = 0;
    for (const WeightArray& array : arrays) sum += static_cast<std::int64_t>(array.values.size());
    return sum;
}

void add_hyperparameters(Report& report, const NequixCheckpoint& checkpoint) {
    std::vector<std::string> symbols;
    for (const int z : checkpoint.atomic_numbers) symbols.emplace_back(chemical_symbol(z));
    report.fact("parameters", "parameters", checkpoint.parameters());
    report.fact("elements", "elements", {joined(symbols, " "), std::to_string(symbols.size()) + ": " + joined(symbols, " ")});
    report.fact("hidden_irreps", "hidden irreps", to_text(checkpoint.hidden));
    report.fact("lmax", "harmonics up to degree", checkpoint.lmax);
    report.fact("cutoff", "cutoff (A)", plain(checkpoint.cutoff));
    report.fact("radial_basis_size", "radial basis", checkpoint.radial_basis_size);
    report.fact("radial_polynomial_p", "power of the cutoff polynomial", plain(checkpoint.radial_polynomial_p));
    report.fact("radial_mlp_size", "radial network, width", checkpoint.radial_mlp_size);
    report.fact("radial_mlp_layers", "radial network, hidden layers", checkpoint.radial_mlp_layers);
    report.fact("avg_n_neighbors", "average number of neighbours", number(checkpoint.avg_n_neighbors, 8));
    report.fact("scale", "scale of energies (eV)", number(checkpoint.scale, 8));
    report.fact("shift", "shift of energies (eV)", number(checkpoint.shift, 8));
    report.fact("layer_norm", "layer norm", checkpoint.layer_norm);
    report.fact("index_weights", "skip weights per species", checkpoint.index_weights);
    report.fact("unused_keys", "keys the model does not use",
                checkpoint.unused_keys.empty() ? Cell() : Cell(joined(checkpoint.unused_keys, " ")));
    report.fact("unused_scalars", "unused numbers after the arrays", checkpoint.unused_scalars);
}

void add_layers(Report& report, const NequixCheckpoint& checkpoint) {
    Table& layers = report.table("layers", "layers",
                                 {{"layer", "layer"},
                                  {"input", "node features", false},
                                  {"paths", "paths"},
                                  {"weights", "weights per edge"},
                                  {"message", "message", false},
                                  {"mixed", "before the gate", false},
                                  {"output", "after", false},
                                  {"radial", "radial network"},
                                  {"linear", "linear maps"},
                                  {"skip", "skip"},
                                  {"norm", "norm scales"}});
    for (std::size_t l = 0; l < checkpoint.layers.size(); ++l) {
        const NequixLayer& layer = checkpoint.layers[l];
        layers.row({std::int64_t(l + 1), to_text(layer.input), std::int64_t(layer.paths.size()), layer.radial.back().shape.back(),
                    to_text(layer.message), to_text(layer.mixed), to_text(layer.output), count(layer.radial),
                    count(layer.linear_1) + count(layer.linear_2), count(layer.skip), count(layer.norm_scales)});
    }
}

}  // namespace

bool is_checkpoint(const std::string& name) { return name.ends_with(".nqx"); }

void explain_model(Report& report, const std::string& file, const MachineOptions& machine, const ModelOptions& model,
                   const SizeOptions& sizes, const std::string& picture) {
    const NequixCheckpoint checkpoint = read_nequix(file);
    report.fact("model", "model", file);
    add_hyperparameters(report, checkpoint);
    add_layers(report, checkpoint);

    const Potential potential(nequix_model(checkpoint), potential_options(machine, model));
    report_tables(report, potential);
    const std::int64_t atoms = sizes.nodes > 0 ? sizes.nodes : 1000, edges = atoms * sizes.neighbours;
    const auto memory = static_cast<double>(potential.workspace_bytes(atoms, edges));
    report.fact("nodes_of_program", "nodes of the program of energies", std::int64_t(potential.model().program.nodes.size()));
    report.fact("nodes_with_gradient", "with the gradient derived", std::int64_t(potential.plan().program().nodes.size()));
    report.fact("workspace_bytes", "memory for intermediates",
                {memory, bytes(memory).text + " for " + std::to_string(atoms) + " atoms with " + std::to_string(sizes.neighbours) +
                             " neighbours (--nodes, --neighbours)"});
    report.fact("workspace_bytes_per_atom", "per atom", bytes(memory / static_cast<double>(atoms)));
    report.note("\nsteps for energies and forces");
    report.text("schedule", potential.plan().explain());
    if (!picture.empty()) draw_program(report, picture, file + ": energies and forces", potential.plan());
}

}  // namespace clebsch::tool
