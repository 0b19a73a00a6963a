#pragma once
// A potential's two programs, planned for a processor or a GPU: what a model's energies and forces are computed by. Internal to model/.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/force_field.hpp"
#include "model/potential.hpp"
#include "run/call.hpp"
#include "run/gpu/kernels.hpp"
#include "run/gpu/program_plan.hpp"

namespace clebsch {

/// Structures that have been checked.
struct EvaluationCall {
    const Graph* graph = nullptr;
    std::span<const std::int64_t> species;  ///< of every atom
    std::span<const std::int64_t> piece;    ///< of the tables, for every edge; empty without tables
    std::int64_t structures = 0;
};

class Evaluation {
 public:
    virtual ~Evaluation() = default;
    /// Writes all of `result`, whose arrays have their sizes.
    virtual void run(const EvaluationCall& call, Energies& result) = 0;
    virtual std::size_t workspace_bytes() const = 0;                                        ///< kept at present
    virtual std::size_t workspace_bytes(std::int64_t atoms, std::int64_t edges) const = 0;  ///< a call of this size needs
    /// Does now what the first call of this size would do beside its work.
    virtual void prepare(std::int64_t /*atoms*/, std::int64_t /*edges*/) {}
    virtual void set_parallel_for(const ParallelFor& /*parallel_for*/) {}
    virtual const ProgramPlan* plan() const { return nullptr; }  ///< of the gradient, where the processor runs it
    virtual std::string explain() const = 0;
    virtual std::vector<StepTime> time_steps() { return {}; }
};

/// `model` outlives what is made of it.
std::unique_ptr<Evaluation> evaluation_on_cpu(const Model& model, const PotentialOptions& options);
std::unique_ptr<Evaluation> evaluation_on_gpu(const Model& model, const PotentialOptions& options);

/// What a GPU runs: the gradient, then the sums over atoms.
struct GpuModelProgram {
    Program program;
    gpu::ProgramOptions options;
};
std::vector<GpuModelProgram> gpu_programs(const Model& model, const PotentialOptions& options);
/// The kernel that copies inputs and results of small systems.
gpu::KernelSource gpu_copy_kernel();

/// Rows of a space of the model's weights: shared (""), element or piece.
std::int64_t rows_of_weights(const Model& model, const std::string& space);

/// Storage of the arrays of with_gradient(model) and totals(), which runs in float64.
std::vector<DType> gradient_dtypes(const Program& program, DType dtype);
std::vector<DType> totals_dtypes(const Program& program, DType dtype);

/// Numbers as they are stored.
std::vector<std::byte> as_stored(std::span<const double> values, DType dtype);

/// Arrays of a program's call, found by name. What the program does not take is ignored.
class CallArrays {
 public:
    CallArrays(const Program& program, const std::vector<std::string>& spaces, const std::vector<DType>& dtypes);

    void rows(const char* space, std::int64_t count);
    void index(const char* name, const std::int64_t* values, std::int64_t count);
    void array(const std::string& name, const void* data, std::int64_t count);

    std::span<const std::int64_t> rows() const { return rows_; }
    std::span<const Buffer> buffers() const { return buffers_; }
    Call call() const { return {.buffers = buffers_, .indices = indices_, .rows = rows_}; }

 private:
    const Program& program_;
    const std::vector<std::string>& spaces_;
    const std::vector<DType>& dtypes_;
    std::vector<Buffer> buffers_;
    std::vector<IndexBuffer> indices_;
    std::vector<std::int64_t> rows_;
};

}  // namespace clebsch
