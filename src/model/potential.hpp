#pragma once
// A model made ready to run: energies, forces and virials of structures.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/force_field.hpp"
#include "model/model.hpp"
#include "model/tables.hpp"
#include "run/program_plan.hpp"

namespace clebsch::gpu {
class PrebuiltFolder;
}

namespace clebsch {

struct PotentialOptions {
    DType dtype = DType::float32;  ///< of features and arithmetic, float32 or float64; sums over atoms and edges are float64 always
    int threads = 0;               ///< 0: the process's pool (default_pool), else a pool of its own
    std::optional<InstructionSet> instruction_set = {};  ///< default: default_instruction_set()
    /// Radial networks are read from tables of this tolerance (TableOptions; 0: its default) instead of computed.
    std::optional<double> table_tolerance = {};
    std::optional<std::int64_t> keep_bytes = {};  ///< ProgramOptions::keep_bytes; default: its own
    /// The number of the GPU that computes; absent: the processor does. On a GPU the last bits differ from call to call,
    std::optional<int> gpu = {};
    bool deterministic = false;  ///< unless every sum is to have one order
};

/// Compiles the kernels that a potential with these options would load, for machines without the compiler. Throws Error.
void prebuild(gpu::PrebuiltFolder& folder, const std::filesystem::path& path, const PotentialOptions& options);

/// What one step of a model's programs took.
struct StepTime {
    std::string step;
    double milliseconds = 0;
};

constexpr double least_distance = 1e-3;  ///< Angstrom, of two atoms that a potential evaluates

/// A model of any architecture, its program and that of its derivative planned once. Memory grows with the largest call and is kept.
class Potential final : public ForceField {
 public:
    explicit Potential(Model model, const PotentialOptions& options = {});
    /// From a checkpoint: a Nequix .nqx file. Throws Error naming the file. On a GPU, kernels in a folder beside it, FILE.kernels, are used
    /// (prebuild). `when_read` is handed the model before its programs are planned, which takes most of the time.
    static Potential load(const std::filesystem::path& path, const PotentialOptions& options = {},
                          const std::function<void(const Model&)>& when_read = {});
    ~Potential() override;
    Potential(Potential&&) noexcept;
    Potential& operator=(Potential&&) noexcept;

    /// Later evaluations run on it, which is to outlive them, instead of what the options say.
    void set_parallel_for(const ParallelFor& parallel_for);

    /// Makes ready now what the first call of about this size would make beside its work, most of it for all others, too.
    void prepare(std::int64_t atoms, std::int64_t edges);

    double cutoff() const override;
    void evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers, const Graph& graph,
                  Energies& result) override;
    /// The same with a neighbour list of its own making, of exactly the pairs within the cutoff.
    Energies evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers);

    const Model& model() const;  ///< as it runs: with tables where it has some
    const std::optional<TableReport>& tables() const;
    const ProgramPlan& plan() const;      ///< of with_gradient(model()); throws Error(unsupported) on a GPU
    std::string explain() const;          ///< of the same, wherever it runs
    std::vector<StepTime> time_steps();   ///< the last evaluation again, step by step; empty where the processor runs it
    std::size_t workspace_bytes() const;  ///< memory kept for intermediates (on a GPU: for all arrays)
    std::size_t workspace_bytes(std::int64_t atoms, std::int64_t edges) const;  ///< what a call of this size needs

 private:
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace clebsch
