#pragma once
// From a model's file to something that gives forces, and what the calls of it cost.
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "model/potential.hpp"
#include "tool/machine_options.hpp"

namespace clebsch::tool {

/// How a model is to run, beside the machine.
struct ModelOptions {
    bool tables = false;         ///< radial networks are read from tables
    double table_tolerance = 0;  ///< 0: the default of the dtype
    std::optional<std::int64_t> keep_megabytes = {};
};
void add_model_options(CLI::App& command, ModelOptions& options);
PotentialOptions potential_options(const MachineOptions& machine, const ModelOptions& model);

/// "25 pieces of 12 coefficients ..."; nothing without tables.
void report_tables(Report& report, const Potential& potential);

/// Throws Error naming the file, or the option that does not fit.
std::unique_ptr<ForceField> load_force_field(const std::string& file, const MachineOptions& machine, const ModelOptions& model = {});

/// Another force field with a watch beside it. `inner` must outlive it.
class TimedForceField final : public ForceField {
 public:
    explicit TimedForceField(ForceField& inner) : inner_(inner) {}
    double cutoff() const override { return inner_.cutoff(); }
    void evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers, const Graph& graph,
                  Energies& result) override {
        const auto start = Clock::now();
        inner_.evaluate(structures, atomic_numbers, graph, result);
        seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
    }
    double seconds() const { return seconds_; }

 private:
    using Clock = std::chrono::steady_clock;
    ForceField& inner_;
    double seconds_ = 0;
};

}  // namespace clebsch::tool
