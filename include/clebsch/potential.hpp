#pragma once
/// Graphs of structures, and pretrained potentials.
#include <clebsch/library.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace clebsch {

/// Atoms of one structure or of a batch, seen where they lie.
struct Structures {
    std::span<const double> positions;             ///< atoms x 3
    std::span<const double> cells = {};            ///< structures x 9 (rows are lattice vectors); empty: no periodicity
    std::span<const int> periodic = {};            ///< structures x 3 flags; empty: all periodic if there are cells
    std::span<const std::int64_t> structure = {};  ///< structure of each atom, non-decreasing from 0; empty: one structure
    std::int64_t count = 1;                        ///< structures

    std::int64_t atoms() const { return static_cast<std::int64_t>(positions.size() / 3); }
    /// As the C interface takes it. Throws std::invalid_argument naming the array that does not fit.
    clebsch_graph_options options(double cutoff = 0) const {
        const auto require = [](const char* name, std::size_t size, std::int64_t rows, std::int64_t row_size) {
            const auto got = static_cast<std::int64_t>(size);
            if (got % row_size != 0 || got / row_size != rows)
                throw std::invalid_argument("clebsch: " + std::string(name) + ": expected " + std::to_string(rows) + " x " +
                                            std::to_string(row_size) + " numbers, got " + std::to_string(size));
        };
        if (count < 1) throw std::invalid_argument("clebsch: count: expected at least 1 structure, got " + std::to_string(count));
        require("positions", positions.size(), atoms(), 3);
        if (!cells.empty()) require("cells", cells.size(), count, 9);
        if (!periodic.empty()) require("periodic", periodic.size(), count, 3);
        if (!structure.empty()) require("structure", structure.size(), atoms(), 1);
        clebsch_graph_options result = CLEBSCH_GRAPH_OPTIONS_DEFAULTS;
        result.positions = positions.data();
        result.atoms = atoms();
        result.cells = cells.empty() ? nullptr : cells.data();
        result.periodic = periodic.empty() ? nullptr : periodic.data();
        result.structure = structure.empty() ? nullptr : structure.data();
        result.structures = count;
        result.cutoff = cutoff;
        return result;
    }
};

/// A neighbour list as a receiver-sorted graph: an edge for every pair closer than the cutoff, from sender j to receiver i, with vector
/// x_j - x_i + shift . cell. Needs the vesin library. What it shows lives as long as the graph or a copy of it.
class Graph {
 public:
    Graph(const Structures& structures, double cutoff) {
        const clebsch_graph_options options = structures.options(cutoff);
        handle_ = detail::created(clebsch_graph_destroy, [&](clebsch_graph** handle) { return clebsch_graph_build(&options, handle); });
    }
    std::int64_t nodes() const { return clebsch_graph_node_count(handle()); }
    std::int64_t edges() const { return clebsch_graph_edge_count(handle()); }
    std::span<const std::int64_t> sender() const { return view(clebsch_graph_sender(handle()), edges()); }
    std::span<const std::int64_t> receiver() const { return view(clebsch_graph_receiver(handle()), edges()); }
    /// nodes + 1: first edge of each receiver.
    std::span<const std::int64_t> offsets() const { return view(clebsch_graph_offsets(handle()), nodes() + 1); }
    /// Edges ordered by sender.
    std::span<const std::int64_t> transposed() const { return view(clebsch_graph_transposed(handle()), edges()); }
    std::span<const double> vectors() const { return view(clebsch_graph_vectors(handle()), 3 * edges()); }
    /// In lattice vectors.
    std::span<const std::int32_t> shifts() const { return view(clebsch_graph_shifts(handle()), 3 * edges()); }
    /// Structure of each node.
    std::span<const std::int64_t> structure() const { return view(clebsch_graph_structure(handle()), nodes()); }
    const clebsch_graph* handle() const { return handle_.get(); }

 private:
    template <class T>
    static std::span<const T> view(const T* data, std::int64_t size) {
        return {data, static_cast<std::size_t>(size)};
    }

    std::shared_ptr<const clebsch_graph> handle_;
};

struct PotentialOptions {
    clebsch_dtype dtype = CLEBSCH_FLOAT32;  ///< of the model's arithmetic; sums over atoms and edges are float64
    std::string instruction_set = {};       ///< "": the default one
    double skin = 0;          ///< Angstrom: neighbours this far beyond the cutoff are remembered between evaluations; 0: search every time
    std::string device = {};  ///< "": the processor; "cuda", "cuda:1": a GPU
    bool deterministic = false;  ///< on a GPU: every sum has one order, so that results are the same bits every time
};

/// In eV and Angstrom.
struct Energies {
    std::vector<double> energy;       ///< structures
    std::vector<double> atom_energy;  ///< atoms
    std::vector<double> forces;       ///< atoms x 3
    std::vector<double> virial;       ///< structures x 9: dE/d(symmetric strain); over the volume it is the stress, positive: tension
};

/// A pretrained potential. One evaluation runs at a time: further threads wait.
class Potential {
 public:
    /// From a checkpoint: a Nequix .nqx file.
    explicit Potential(const std::string& path, const PotentialOptions& options = {}) {
        clebsch_potential_options given = CLEBSCH_POTENTIAL_OPTIONS_DEFAULTS;
        given.dtype = options.dtype;
        given.skin = options.skin;
        if (!options.instruction_set.empty()) given.instruction_set = detail::pass(options.instruction_set);
        if (!options.device.empty()) given.device = detail::pass(options.device);
        given.deterministic = options.deterministic ? 1 : 0;
        handle_ = detail::created(clebsch_potential_destroy,
                                  [&](clebsch_potential** handle) { return clebsch_potential_load(detail::pass(path), &given, handle); });
    }
    /// Pairs at this distance and beyond have no effect.
    double cutoff() const { return clebsch_potential_cutoff(handle()); }
    /// Atomic numbers that the model knows; they live as long as the potential or a copy of it.
    std::span<const int> elements() const {
        std::size_t count = 0;
        const int* numbers = clebsch_potential_elements(handle(), &count);
        return {numbers, count};
    }
    std::string explain() const {
        return detail::text_from([&](char** text) { return clebsch_potential_explain(handle(), text); });
    }
    /// `atomic_numbers`: one per atom. Needs the vesin library.
    Energies evaluate(const Structures& structures, std::span<const int> atomic_numbers) const {
        const clebsch_graph_options options = structures.options();
        if (static_cast<std::int64_t>(atomic_numbers.size()) != options.atoms)
            throw std::invalid_argument("clebsch: atomic_numbers: expected " + std::to_string(options.atoms) + " numbers, got " +
                                        std::to_string(atomic_numbers.size()));
        const auto atoms = static_cast<std::size_t>(options.atoms), count = static_cast<std::size_t>(options.structures);
        Energies energies{std::vector<double>(count), std::vector<double>(atoms), std::vector<double>(3 * atoms),
                          std::vector<double>(9 * count)};
        clebsch_potential_result result = CLEBSCH_POTENTIAL_RESULT_DEFAULTS;
        result.energy = energies.energy.data();
        result.atom_energy = energies.atom_energy.data();
        result.forces = energies.forces.data();
        result.virial = energies.virial.data();
        check(clebsch_potential_evaluate(handle(), &options, atomic_numbers.data(), &result));
        return energies;
    }
    clebsch_potential* handle() const { return handle_.get(); }

 private:
    std::shared_ptr<clebsch_potential> handle_;
};

}  // namespace clebsch
