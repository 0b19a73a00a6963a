#include "base/error.hpp"
#include "base/memory.hpp"
#include "model/evaluation.hpp"

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

ProgramPlan planned(const Program& program, std::vector<DType> dtypes, DType compute, const PotentialOptions& options) {
    ProgramOptions plan;
    plan.dtypes = std::move(dtypes);
    plan.compute = compute;
    plan.instruction_set = options.instruction_set;
    if (options.keep_bytes) plan.keep_bytes = *options.keep_bytes;
    return ProgramPlan(program, plan);
}

/// A program with its arrays.
struct Planned {
    Planned(const Program& program, std::vector<DType> dtypes, DType compute, const PotentialOptions& options)
        : plan(planned(program, std::move(dtypes), compute, options)), arrays(plan.program(), plan.spaces(), plan.dtypes()) {}

    /// Arranges the shared arrays for all launches to come.
    void prepare() {
        memory = Memory(plan.prepared_bytes(), "the prepared weights of a model");
        plan.prepare(arrays.buffers(), memory.data(), memory.size());
    }
    void launch(Scratch& workspace, const ParallelFor& parallel_for) const {
        const std::size_t bytes = plan.workspace_bytes(arrays.rows(), parallel_for.threads);
        plan.launch(arrays.call(), {workspace.of(bytes), bytes}, parallel_for, memory.data());
    }

    ProgramPlan plan;
    CallArrays arrays;
    Memory memory;  ///< prepared shared arrays
};

Planned gradient_of(const Model& model, const PotentialOptions& options) {
    const Program program = with_gradient(model);
    return Planned(program, gradient_dtypes(program, options.dtype), options.dtype, options);
}

Planned totals_of(const PotentialOptions& options) {
    const Program program = totals();
    return Planned(program, totals_dtypes(program, options.dtype), DType::float64, options);
}

class CpuEvaluation final : public Evaluation {
 public:
    CpuEvaluation(const Model& model, const PotentialOptions& options)
        : dtype_(options.dtype),
          elements_(std::ssize(model.atomic_numbers)),
          pieces_(std::ssize(model.piece_ends)),
          element_energies_(model.element_energies),
          gradient_(gradient_of(model, options)),
          sums_(totals_of(options)) {
        if (options.threads != 0) pool_ = std::make_unique<ThreadPool>(options.threads);
        for (Planned* planned : {&gradient_, &sums_}) {
            planned->arrays.rows("element", elements_);
            planned->arrays.rows("piece", pieces_);
        }
        sums_.arrays.array("element_energies", element_energies_.data(), elements_);
        weights_.reserve(model.weights.size());
        for (const ModelWeights& given : model.weights) {
            const Value& value = model.program.values[static_cast<std::size_t>(model.program.find_value(given.name))];
            weights_.push_back(as_stored(given.values, dtype_));
            gradient_.arrays.array(given.name, weights_.back().data(), rows_of_weights(model, value.space));
        }
        gradient_.prepare();
    }

    void set_parallel_for(const ParallelFor& parallel_for) override { given_parallel_for_ = parallel_for; }
    const ProgramPlan* plan() const override { return &gradient_.plan; }
    std::string explain() const override { return gradient_.plan.explain(); }
    std::size_t workspace_bytes() const override { return workspace_.size(); }

    std::size_t workspace_bytes(std::int64_t atoms, std::int64_t edges) const override {
        CallArrays arrays(gradient_.plan.program(), gradient_.plan.spaces(), gradient_.plan.dtypes());
        arrays.rows("element", elements_);
        arrays.rows("piece", pieces_);
        arrays.rows("node", atoms);
        arrays.rows("edge", edges);
        return gradient_.plan.workspace_bytes(arrays.rows(), parallel_for().threads);
    }

    void run(const EvaluationCall& call, Energies& result) override {
        const Graph& graph = *call.graph;
        const auto atoms = static_cast<std::int64_t>(call.species.size()), edges = graph.edges();
        const std::size_t number = size_of(dtype_);
        atom_energy_.resize(call.species.size() * number);
        edge_gradient_.resize(3 * static_cast<std::size_t>(edges) * number);
        if (cotangent_.size() < call.species.size() * number) cotangent_ = as_stored(std::vector<double>(call.species.size(), 1), dtype_);
        for (Planned* planned : {&gradient_, &sums_}) {
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
        for (const Planned* planned : {&gradient_, &sums_}) planned->launch(workspace_, parallel_for());
    }

 private:
    ParallelFor parallel_for() const {
        if (given_parallel_for_) return *given_parallel_for_;
        return pool_ ? pool_->parallel_for() : default_pool().parallel_for();
    }

    DType dtype_;
    std::int64_t elements_, pieces_;
    std::vector<double> element_energies_;
    Planned gradient_, sums_;
    std::vector<std::vector<std::byte>> weights_;
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
