#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/memory.hpp"
#include "describe/pairs.hpp"
#include "graph/edge_pairs.hpp"
#include "model/evaluation.hpp"
#include "run/flush_to_zero.hpp"

namespace clebsch {
namespace {

/// Memory that grows and is never given back; a larger request loses what it held. Not initialised: pages nobody touches cost nothing.
class Scratch {
 public:
    std::byte* of(std::size_t bytes) {
        if (bytes > memory_.size()) {
            memory_ = {};
            memory_ = Memory(bytes, "the workspace of a model");
        }
        return memory_.data();
    }
    std::size_t size() const { return memory_.size(); }

 private:
    Memory memory_;
};

ProgramPlan planned(const Program& program, std::optional<Program> for_more_rows, std::vector<DType> dtypes, DType compute,
                    const PotentialOptions& options) {
    ProgramOptions plan;
    plan.for_more_rows = std::move(for_more_rows);
    plan.dtypes = std::move(dtypes);
    plan.compute = compute;
    plan.instruction_set = options.instruction_set;
    if (options.keep_bytes) plan.keep_bytes = *options.keep_bytes;
    constexpr int most_planning = 8;  // a thread takes longer to start than most nodes take to plan
    plan.threads = std::min(most_planning, options.threads != 0 ? options.threads : default_threads());
    plan.checked = true;  // derived from a model that is valid
    return ProgramPlan(program, plan);
}

/// A program with its arrays.
struct Planned {
    Planned(const Program& program, std::optional<Program> for_more_rows, std::vector<DType> dtypes, DType compute,
            const PotentialOptions& options)
        : plan(planned(program, std::move(for_more_rows), std::move(dtypes), compute, options)),
          arrays(plan.program(), plan.spaces(), plan.dtypes()) {}

    /// The shared arrays, arranged when the first launch of its way needs them so.
    const Memory& weights(std::span<const std::int64_t> rows) {
        Memory& made = prepared[plan.way(rows)];
        if (made.size() == 0) {
            Memory memory(plan.prepared_bytes(rows), "the prepared weights of a model");
            plan.prepare(rows, arrays.buffers(), memory.data(), memory.size());
            made = std::move(memory);
        }
        return made;
    }
    void launch(Scratch& workspace, const ParallelFor& parallel_for) {
        const std::size_t bytes = plan.workspace_bytes(arrays.rows(), parallel_for.threads);
        plan.launch(arrays.call(), {workspace.of(bytes), bytes}, parallel_for, weights(arrays.rows()).data());
    }

    ProgramPlan plan;
    CallArrays arrays;
    std::array<Memory, 2> prepared;  ///< shared arrays, by the way to run
};

/// For any graph.
Planned gradient_of_edges(const Model& model, const PotentialOptions& options) {
    const Program program = with_gradient(model);
    return Planned(program, std::nullopt, gradient_dtypes(program, options.dtype), options.dtype, options);
}

/// For graphs in which every edge has its reverse, if the model is one for which that means less work.
std::optional<Planned> gradient_of_pairs(const Model& model, const PotentialOptions& options) {
    std::optional<PairedGradient> programs = gradient_in_pairs(model.program);
    if (!programs) return std::nullopt;
    return Planned(programs->of_pairs, std::move(programs->made_again), gradient_dtypes(programs->of_pairs, options.dtype), options.dtype,
                   options);
}

Planned totals_of(const PotentialOptions& options) {
    const Program program = totals();
    return Planned(program, std::nullopt, totals_dtypes(program, options.dtype), DType::float64, options);
}

class CpuEvaluation final : public Evaluation {
 public:
    CpuEvaluation(const Model& model, const PotentialOptions& options)
        : model_(model),
          options_(options),
          elements_(std::ssize(model.atomic_numbers)),
          pieces_(std::ssize(model.piece_ends)),
          of_pairs_(gradient_of_pairs(model, options)),
          sums_(totals_of(options)) {
        if (options.threads != 0) pool_ = std::make_unique<ThreadPool>(options.threads);
        sums_.arrays.rows("element", elements_);
        sums_.arrays.array("element_energies", model.element_energies.data(), elements_);
        for (const ModelWeights& given : model.weights) weights_.push_back(as_stored(given.values, options.dtype));
        if (of_pairs_) bind_weights(*of_pairs_);
        else of_edges();
    }

    void set_parallel_for(const ParallelFor& parallel_for) override { given_parallel_for_ = parallel_for; }
    const ProgramPlan* plan() const override { return &usual().plan; }
    std::string explain() const override { return usual().plan.explain(); }
    std::size_t workspace_bytes() const override { return workspace_.size(); }

    std::size_t workspace_bytes(std::int64_t atoms, std::int64_t edges) const override {
        return usual().plan.workspace_bytes(usual_rows(atoms, edges), parallel_for().threads);
    }

    void prepare(std::int64_t atoms, std::int64_t edges) override { usual().weights(usual_rows(atoms, edges)); }

    void run(const EvaluationCall& call, Energies& result) override {
        const Graph& graph = *call.graph;
        const auto atoms = static_cast<std::int64_t>(call.species.size()), edges = graph.edges();
        const std::size_t number = size_of(options_.dtype);
        const bool in_pairs = of_pairs_ && find_pairs(graph, pairs_);
        Planned& gradient = in_pairs ? *of_pairs_ : of_edges();
        atom_energy_.resize(call.species.size() * number);
        edge_gradient_.resize(3 * static_cast<std::size_t>(edges) * number);
        if (cotangent_.size() < call.species.size() * number)
            cotangent_ = as_stored(std::vector<double>(call.species.size(), 1), options_.dtype);
        if (in_pairs) {
            gradient.arrays.rows("pair", pairs_.count());
            gradient.arrays.index("pair", pairs_.pair.data(), edges);
            gradient.arrays.index("first_edge", pairs_.first_edge.data(), pairs_.count());
        }
        for (Planned* planned : {&gradient, &sums_}) {
            CallArrays& arrays = planned->arrays;
            arrays.rows("edge", edges);
            arrays.rows("node", atoms);
            arrays.rows("graph", call.structures);
            arrays.index("sender", graph.sender.data(), edges);
            arrays.index("receiver", graph.receiver.data(), edges);
            arrays.index("species", call.species.data(), atoms);
            arrays.index("piece", call.piece.data(), std::ssize(call.piece));
            arrays.index("graph", graph.structure.data(), atoms);
            arrays.array("vectors", graph.vectors.data(), edges);
            arrays.array("atom_energy", atom_energy_.data(), atoms);
            arrays.array("atom_energy_cotangent", cotangent_.data(), atoms);
            arrays.array("vectors_gradient", edge_gradient_.data(), edges);
        }
        sums_.arrays.array("total_atom_energy", result.atom_energy.data(), atoms);
        sums_.arrays.array("energy", result.energy.data(), call.structures);
        sums_.arrays.array("forces", result.forces.data(), atoms);
        sums_.arrays.array("virial", result.virial.data(), call.structures);
        for (Planned* planned : {&gradient, &sums_}) planned->weights(planned->arrays.rows());
        const FlushToZero flush;  // weights of channels that training gave up are denormal
        const FlushedTasks tasks(parallel_for());
        for (Planned* planned : {&gradient, &sums_}) planned->launch(workspace_, tasks.parallel_for());
    }

 private:
    ParallelFor parallel_for() const {
        if (given_parallel_for_) return *given_parallel_for_;
        return pool_ ? pool_->parallel_for() : default_pool().parallel_for();
    }

    /// Of a call of this size in which every edge has its reverse.
    std::vector<std::int64_t> usual_rows(std::int64_t atoms, std::int64_t edges) const {
        const ProgramPlan& plan = usual().plan;
        CallArrays arrays(plan.program(), plan.spaces(), plan.dtypes());
        arrays.rows("element", elements_);
        arrays.rows("piece", pieces_);
        arrays.rows("node", atoms);
        arrays.rows("edge", edges);
        arrays.rows("pair", (edges + 1) / 2);
        return {arrays.rows().begin(), arrays.rows().end()};
    }

    void bind_weights(Planned& gradient) {
        gradient.arrays.rows("element", elements_);
        gradient.arrays.rows("piece", pieces_);
        for (std::size_t w = 0; w < weights_.size(); ++w) {
            const std::string& name = model_.weights[w].name;
            const Value& value = model_.program.values[static_cast<std::size_t>(model_.program.find_value(name))];
            gradient.arrays.array(name, weights_[w].data(), rows_of_weights(model_, value.space));
        }
    }

    /// Made when it is first needed.
    Planned& of_edges() {
        if (!of_edges_) bind_weights(of_edges_.emplace(gradient_of_edges(model_, options_)));
        return *of_edges_;
    }
    Planned& usual() { return of_pairs_ ? *of_pairs_ : *of_edges_; }
    const Planned& usual() const { return of_pairs_ ? *of_pairs_ : *of_edges_; }

    const Model& model_;
    PotentialOptions options_;
    std::int64_t elements_, pieces_;
    std::optional<Planned> of_pairs_, of_edges_;  ///< the gradient; of_edges_ where a graph or the model has no pairs
    Planned sums_;
    EdgePairs pairs_;                              ///< of the last graph
    std::vector<std::vector<std::byte>> weights_;  ///< those of the model, as they are stored
    std::unique_ptr<ThreadPool> pool_;
    std::optional<ParallelFor> given_parallel_for_;
    std::vector<std::byte> atom_energy_, cotangent_, edge_gradient_;
    Scratch workspace_;
};

}  // namespace

std::unique_ptr<Evaluation> evaluation_on_cpu(const Model& model, const PotentialOptions& options) {
    return std::make_unique<CpuEvaluation>(model, options);
}

}  // namespace clebsch
