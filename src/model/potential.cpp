#include "model/potential.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "graph/neighbours.hpp"
#include "io/elements.hpp"
#include "io/nequix.hpp"
#include "model/nequix.hpp"

namespace clebsch {
namespace {

/// Memory that grows and is never given back; a larger request loses what it held.
class Scratch {
 public:
    std::byte* of(std::size_t bytes) {
        if (bytes > size_) {
            memory_.reset();
            size_ = 0;
            memory_.reset(new std::byte[bytes]);  // not initialised: pages nobody touches cost nothing
            size_ = bytes;
        }
        return memory_.get();
    }
    std::size_t size() const { return size_; }

 private:
    std::unique_ptr<std::byte[]> memory_;
    std::size_t size_ = 0;
};

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

/// Arrays of a program's call, found by name.
class Arguments {
 public:
    explicit Arguments(const ProgramPlan& plan)
        : plan_(plan), buffers_(plan.dtypes().size()), indices_(plan.program().indices.size()), rows_(plan.spaces().size()) {}

    void rows(const char* space, std::int64_t count) {
        const auto found = std::ranges::find(plan_.spaces(), space);
        if (found != plan_.spaces().end()) rows_[static_cast<std::size_t>(found - plan_.spaces().begin())] = count;
    }
    void index(const char* name, std::span<const std::int64_t> values) {
        const auto& known = plan_.program().indices;
        const auto found = std::ranges::find(known, name, &Index::name);
        if (found != known.end())
            indices_[static_cast<std::size_t>(found - known.begin())] = {values.data(), IndexType::int64, std::int64_t(values.size())};
    }
    /// Arrays the program does not take are ignored.
    void array(const std::string& name, const void* data, std::int64_t count) {
        const Program& program = plan_.program();
        const std::size_t inputs = program.inputs.size();
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            const int number = i < inputs ? program.inputs[i] : program.outputs[i - inputs];
            const Value& value = program.values[static_cast<std::size_t>(number)];
            if (value.name == name) buffers_[i] = {const_cast<void*>(data), plan_.dtypes()[i], count, 0};
        }
    }
    std::size_t workspace_bytes(int threads) const { return plan_.workspace_bytes(rows_, threads); }
    /// Arranges the shared arrays for all launches to come.
    void prepare() {
        constexpr std::size_t line = 64;
        const std::size_t bytes = plan_.prepared_bytes();
        memory_.reset(new std::byte[bytes + line]);
        prepared_ = memory_.get() + (line - reinterpret_cast<std::uintptr_t>(memory_.get()) % line) % line;
        plan_.prepare(buffers_, prepared_, bytes);
    }
    void launch(Workspace workspace, const ParallelFor& parallel_for) const {
        plan_.launch({.buffers = buffers_, .indices = indices_, .rows = rows_}, workspace, parallel_for, prepared_);
    }

 private:
    const ProgramPlan& plan_;
    std::unique_ptr<std::byte[]> memory_;
    std::byte* prepared_ = nullptr;
    std::vector<Buffer> buffers_;
    std::vector<IndexBuffer> indices_;
    std::vector<std::int64_t> rows_;
};

ProgramPlan gradient_plan(const Model& model, const PotentialOptions& options) {
    if (options.dtype != DType::float32 && options.dtype != DType::float64)
        fail(std::string("potential: expected float32 or float64, got ") + to_text(options.dtype));
    const Program program = with_gradient(model);
    ProgramOptions plan;
    plan.dtypes.assign(program.inputs.size() + program.outputs.size(), options.dtype);
    for (std::size_t i = 0; i < program.inputs.size(); ++i)
        if (program.values[static_cast<std::size_t>(program.inputs[i])].name == "vectors") plan.dtypes[i] = DType::float64;
    plan.compute = options.dtype;
    plan.instruction_set = options.instruction_set;
    return ProgramPlan(program, plan);
}

ProgramPlan totals_plan(const PotentialOptions& options) {
    const Program program = totals();
    ProgramOptions plan;
    plan.dtypes.assign(program.inputs.size() + program.outputs.size(), DType::float64);
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
        const std::string& name = program.values[static_cast<std::size_t>(program.inputs[i])].name;
        if (name == "atom_energy" || name == "vectors_gradient") plan.dtypes[i] = options.dtype;
    }
    plan.compute = DType::float64;
    plan.instruction_set = options.instruction_set;
    return ProgramPlan(program, plan);
}

}  // namespace

struct Potential::Data {
    Data(Model given, const PotentialOptions& options)
        : model(std::move(given)),
          dtype(options.dtype),
          gradient(gradient_plan(model, options)),
          sums(totals_plan(options)),
          gradient_arguments(gradient),
          sums_arguments(sums),
          species_of(species_table(model)) {
        if (options.threads != 0) pool = std::make_unique<ThreadPool>(options.threads);
        const auto elements = static_cast<std::int64_t>(model.atomic_numbers.size()),
                   pieces = static_cast<std::int64_t>(model.piece_ends.size());
        for (Arguments* arguments : {&gradient_arguments, &sums_arguments}) {
            arguments->rows("element", elements);
            arguments->rows("piece", pieces);
        }
        sums_arguments.array("element_energies", model.element_energies.data(), elements);
        weights.reserve(model.weights.size());
        for (ModelWeights& given_weights : model.weights) {
            const Value& value = model.program.values[static_cast<std::size_t>(model.program.find_value(given_weights.name))];
            weights.push_back(stored(given_weights.values));
            const std::int64_t rows = value.space.empty() ? 1 : value.space == "piece" ? pieces : elements;
            gradient_arguments.array(given_weights.name, weights.back().data(), rows);
        }
        gradient_arguments.prepare();
    }

    /// As numbers of the compute type.
    std::vector<std::byte> stored(const std::vector<double>& values) const {
        std::vector<std::byte> bytes(values.size() * size_of(dtype));
        if (dtype == DType::float64) {
            std::memcpy(bytes.data(), values.data(), bytes.size());
        } else {
            const std::vector<float> rounded(values.begin(), values.end());
            std::memcpy(bytes.data(), rounded.data(), bytes.size());
        }
        return bytes;
    }

    ParallelFor parallel_for() const {
        if (given_parallel_for) return *given_parallel_for;
        return pool ? pool->parallel_for() : default_pool().parallel_for();
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

    /// The piece of the tables that every edge is in.
    void find_pieces(const Graph& graph) {
        if (model.piece_ends.empty()) return;
        piece.resize(graph.sender.size());
        for (std::size_t e = 0; e < piece.size(); ++e) {
            const double* r = graph.vectors.data() + 3 * e;
            const double length = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
            const auto found = std::ranges::upper_bound(model.piece_ends, length);
            piece[e] = found == model.piece_ends.end() ? -1 : found - model.piece_ends.begin();
        }
    }

    std::string known_elements() const {
        std::string text;
        for (const int z : model.atomic_numbers) text += (text.empty() ? "" : " ") + std::string(chemical_symbol(z));
        return text;
    }

    Model model;
    DType dtype;
    ProgramPlan gradient, sums;
    Arguments gradient_arguments, sums_arguments;
    std::vector<std::int64_t> species_of, species, piece;
    std::optional<TableReport> tables;
    std::vector<std::vector<std::byte>> weights;
    std::unique_ptr<ThreadPool> pool;
    std::optional<ParallelFor> given_parallel_for;
    std::vector<std::byte> atom_energy, cotangent, edge_gradient;
    Scratch workspace;
};

Potential::Potential(Model model, const PotentialOptions& options) {
    validate(model);
    std::optional<TableReport> tables;
    if (options.table_tolerance) {
        TabulatedModel made = tabulated(model, {.dtype = options.dtype, .tolerance = *options.table_tolerance, .coefficients = 0});
        model = std::move(made.model);
        tables = made.report;
    }
    data_ = std::make_unique<Data>(std::move(model), options);
    data_->tables = tables;
}

Potential Potential::load(const std::filesystem::path& path, const PotentialOptions& options) {
    return Potential(nequix_model(read_nequix(path)), options);
}

Potential::~Potential() = default;
Potential::Potential(Potential&&) noexcept = default;
Potential& Potential::operator=(Potential&&) noexcept = default;

void Potential::set_parallel_for(const ParallelFor& parallel_for) { data_->given_parallel_for = parallel_for; }
double Potential::cutoff() const { return data_->model.cutoff; }
const Model& Potential::model() const { return data_->model; }
const std::optional<TableReport>& Potential::tables() const { return data_->tables; }
const ProgramPlan& Potential::plan() const { return data_->gradient; }
std::size_t Potential::workspace_bytes() const { return data_->workspace.size(); }

std::size_t Potential::workspace_bytes(std::int64_t atoms, std::int64_t edges) const {
    Arguments arguments(data_->gradient);
    arguments.rows("element", static_cast<std::int64_t>(data_->model.atomic_numbers.size()));
    arguments.rows("piece", static_cast<std::int64_t>(data_->model.piece_ends.size()));
    arguments.rows("node", atoms);
    arguments.rows("edge", edges);
    return arguments.workspace_bytes(data_->parallel_for().threads);
}

void Potential::evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers, const Graph& graph, Energies& result) {
    Data& data = *data_;
    data.check(structures, atomic_numbers, graph);
    data.find_pieces(graph);
    const auto atoms = static_cast<std::int64_t>(atomic_numbers.size()), edges = graph.edges(),
               graphs = static_cast<std::int64_t>(structures.size());
    const std::size_t number = size_of(data.dtype);
    result.energy.resize(structures.size());
    result.atom_energy.resize(atomic_numbers.size());
    result.forces.resize(3 * atomic_numbers.size());
    result.virial.resize(9 * structures.size());
    data.atom_energy.resize(atomic_numbers.size() * number);
    data.edge_gradient.resize(3 * static_cast<std::size_t>(edges) * number);
    if (data.cotangent.size() < atomic_numbers.size() * number) data.cotangent = data.stored(std::vector<double>(atomic_numbers.size(), 1));

    for (Arguments* arguments : {&data.gradient_arguments, &data.sums_arguments}) {
        arguments->rows("edge", edges);
        arguments->rows("node", atoms);
        arguments->rows("graph", graphs);
        arguments->index("sender", graph.sender);
        arguments->index("receiver", graph.receiver);
        arguments->index("species", data.species);
        arguments->index("piece", data.piece);
        arguments->index("graph", graph.structure);
        arguments->array("vectors", graph.vectors.data(), edges);
        arguments->array("atom_energy", data.atom_energy.data(), atoms);
        arguments->array("atom_energy_cotangent", data.cotangent.data(), atoms);
        arguments->array("vectors_gradient", data.edge_gradient.data(), edges);
    }
    data.sums_arguments.array("total_atom_energy", result.atom_energy.data(), atoms);
    data.sums_arguments.array("energy", result.energy.data(), graphs);
    data.sums_arguments.array("forces", result.forces.data(), atoms);
    data.sums_arguments.array("virial", result.virial.data(), graphs);

    const ParallelFor parallel_for = data.parallel_for();
    for (const Arguments* arguments : {&data.gradient_arguments, &data.sums_arguments}) {
        const std::size_t bytes = arguments->workspace_bytes(parallel_for.threads);
        std::byte* const memory = data.workspace.of(bytes);
        arguments->launch({memory, bytes}, parallel_for);
    }
}

Energies Potential::evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers) {
    Energies result;
    evaluate(structures, atomic_numbers, build_graph(structures, {.cutoff = cutoff()}), result);
    return result;
}

}  // namespace clebsch
