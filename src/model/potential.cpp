#include "model/potential.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "describe/text_cursor.hpp"
#include "graph/neighbours.hpp"
#include "io/elements.hpp"
#include "io/nequix.hpp"
#include "model/evaluation.hpp"
#include "model/nequix.hpp"
#include "run/gpu/prebuild.hpp"
#include "run/gpu/store.hpp"

namespace clebsch {
namespace {

std::string atom_name(std::size_t atom, std::span<const int> atomic_numbers) {
    const int z = atomic_numbers[atom];
    return "atom " + std::to_string(atom) + (z < 1 || z > 118 ? "" : " (" + std::string(chemical_symbol(z)) + ")");
}

/// Species of every atomic number; -1: the model does not know it.
std::vector<std::int64_t> species_table(const Model& model) {
    const int largest = *std::ranges::max_element(model.atomic_numbers);
    std::vector<std::int64_t> table(static_cast<std::size_t>(std::max(largest, 0)) + 1, -1);
    for (std::size_t s = 0; s < model.atomic_numbers.size(); ++s)
        table[static_cast<std::size_t>(model.atomic_numbers[s])] = static_cast<std::int64_t>(s);
    return table;
}

}  // namespace

struct Potential::Data {
    Data(Model given, const PotentialOptions& options) : model(std::move(given)), species_of(species_table(model)) {
        if (options.dtype != DType::float32 && options.dtype != DType::float64)
            fail(std::string("potential: expected float32 or float64, got ") + to_text(options.dtype));
        if (options.gpu && options.instruction_set)
            fail(std::string("potential: expected no instruction set for a GPU, got ") + to_text(*options.instruction_set));
        if (options.gpu && options.threads != 0)
            fail("potential: expected no number of threads for a GPU, got " + std::to_string(options.threads));
        if (options.gpu && options.keep_bytes)
            fail("potential: expected no limit of kept bytes for a GPU, got " + std::to_string(*options.keep_bytes));
        evaluation = options.gpu ? evaluation_on_gpu(model, options) : evaluation_on_cpu(model, options);
    }

    void check(std::span<const Structure> structures, std::span<const int> atomic_numbers, const Graph& graph) {
        std::size_t atoms = 0;
        for (const Structure& structure : structures) {
            for (std::size_t i = 0; i < structure.positions.size(); ++i)
                if (!std::isfinite(structure.positions[i]) && atoms + i / 3 < atomic_numbers.size())
                    fail("model: the position of " + atom_name(atoms + i / 3, atomic_numbers) + " is not finite");
            atoms += static_cast<std::size_t>(structure.atoms());
        }
        if (atoms != atomic_numbers.size())
            fail("model: expected an atomic number for each of " + std::to_string(atoms) + " atoms, got " +
                 std::to_string(atomic_numbers.size()));
        if (graph.nodes != static_cast<std::int64_t>(atoms) || graph.structures != static_cast<std::int64_t>(structures.size()) ||
            graph.structure.size() != atoms)
            fail("model: the graph has " + std::to_string(graph.nodes) + " nodes of " + std::to_string(graph.structures) +
                 " structures, expected " + std::to_string(atoms) + " of " + std::to_string(structures.size()));
        if (graph.vectors.size() != 3 * graph.sender.size())
            fail("model: the graph has " + std::to_string(graph.edges()) + " edges and " + std::to_string(graph.vectors.size() / 3) +
                 " edge vectors");
        species.resize(atoms);
        for (std::size_t atom = 0; atom < atoms; ++atom) {
            const int z = atomic_numbers[atom];
            species[atom] = z >= 0 && static_cast<std::size_t>(z) < species_of.size() ? species_of[static_cast<std::size_t>(z)] : -1;
            if (species[atom] < 0)
                fail("model: " + atom_name(atom, atomic_numbers) + " has atomic number " + std::to_string(z) +
                     ", which the model does not know (it knows " + known_elements() + ")");
        }
    }

    /// One walk over the edges. Atoms that are closer than least_distance are a mistake of the structure: directions and forces between
    /// them mean nothing. Where the model has tables, the piece of them that every edge is in.
    void look_at_edges(std::span<const int> atomic_numbers, const Graph& graph) {
        piece.resize(model.piece_ends.empty() ? 0 : graph.sender.size());
        for (std::size_t e = 0; e < graph.sender.size(); ++e) {
            const double* r = graph.vectors.data() + 3 * e;
            const double square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
            if (!(square >= least_distance * least_distance)) fail_close(atomic_numbers, graph, e, std::sqrt(square));
            if (piece.empty()) continue;
            const auto found = std::ranges::upper_bound(model.piece_ends, std::sqrt(square));
            piece[e] = found == model.piece_ends.end() ? -1 : found - model.piece_ends.begin();
        }
    }

    [[noreturn]] static void fail_close(std::span<const int> atomic_numbers, const Graph& graph, std::size_t edge, double distance) {
        const auto sender = static_cast<std::size_t>(graph.sender[edge]), receiver = static_cast<std::size_t>(graph.receiver[edge]);
        fail("model: " + atom_name(std::min(sender, receiver), atomic_numbers) + " and " +
             (sender == receiver ? "its image" : atom_name(std::max(sender, receiver), atomic_numbers)) + " are " + number_text(distance) +
             " A apart, expected at least " + number_text(least_distance) + " A");
    }

    std::string known_elements() const {
        std::string text;
        for (const int z : model.atomic_numbers) text += (text.empty() ? "" : " ") + std::string(chemical_symbol(z));
        return text;
    }

    Model model;
    std::vector<std::int64_t> species_of, species, piece;
    std::optional<TableReport> tables;
    std::unique_ptr<Evaluation> evaluation;
};

namespace {

/// The model as it runs.
Model as_it_runs(Model model, const PotentialOptions& options, std::optional<TableReport>& tables) {
    validate(model);
    if (!options.table_tolerance) return model;
    TabulatedModel made = tabulated(model, {.dtype = options.dtype, .tolerance = *options.table_tolerance, .coefficients = 0});
    tables = made.report;
    return std::move(made.model);
}

Model read_model(const std::filesystem::path& path) { return nequix_model(read_nequix(path)); }

}  // namespace

Potential::Potential(Model model, const PotentialOptions& options) {
    std::optional<TableReport> tables;
    model = as_it_runs(std::move(model), options, tables);
    data_ = std::make_unique<Data>(std::move(model), options);
    data_->tables = tables;
}

Potential Potential::load(const std::filesystem::path& path, const PotentialOptions& options,
                          const std::function<void(const Model&)>& when_read) {
    std::filesystem::path kernels = path;
    kernels += ".kernels";
    std::error_code error;
    if (options.gpu && std::filesystem::is_directory(kernels, error)) gpu::add_prebuilt_folder(kernels);
    Model model = read_model(path);
    if (when_read) when_read(model);
    return Potential(std::move(model), options);
}

void prebuild(gpu::PrebuiltFolder& folder, const std::filesystem::path& path, const PotentialOptions& options) {
    std::optional<TableReport> tables;
    for (const GpuModelProgram& program : gpu_programs(as_it_runs(read_model(path), options, tables), options))
        folder.add(program.program, program.options);
    folder.add({gpu_copy_kernel()});
}

Potential::~Potential() = default;
Potential::Potential(Potential&&) noexcept = default;
Potential& Potential::operator=(Potential&&) noexcept = default;

void Potential::set_parallel_for(const ParallelFor& parallel_for) { data_->evaluation->set_parallel_for(parallel_for); }
double Potential::cutoff() const { return data_->model.cutoff; }
const Model& Potential::model() const { return data_->model; }
const std::optional<TableReport>& Potential::tables() const { return data_->tables; }
std::string Potential::explain() const { return data_->evaluation->explain(); }
std::vector<StepTime> Potential::time_steps() { return data_->evaluation->time_steps(); }
std::size_t Potential::workspace_bytes() const { return data_->evaluation->workspace_bytes(); }

const ProgramPlan& Potential::plan() const {
    const ProgramPlan* plan = data_->evaluation->plan();
    if (plan == nullptr) throw Error(ErrorKind::unsupported, "a potential on a GPU has no plan for the processor");
    return *plan;
}

void Potential::prepare(std::int64_t atoms, std::int64_t edges) { data_->evaluation->prepare(atoms, edges); }

std::size_t Potential::workspace_bytes(std::int64_t atoms, std::int64_t edges) const {
    return data_->evaluation->workspace_bytes(atoms, edges);
}

void Potential::evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers, const Graph& graph, Energies& result) {
    Data& data = *data_;
    data.check(structures, atomic_numbers, graph);
    data.look_at_edges(atomic_numbers, graph);
    result.energy.resize(structures.size());
    result.atom_energy.resize(atomic_numbers.size());
    result.forces.resize(3 * atomic_numbers.size());
    result.virial.resize(9 * structures.size());
    data.evaluation->run({.graph = &graph, .species = data.species, .piece = data.piece, .structures = std::ssize(structures)}, result);
}

Energies Potential::evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers) {
    Energies result;
    evaluate(structures, atomic_numbers, build_graph(structures, {.cutoff = cutoff()}), result);
    return result;
}

}  // namespace clebsch
