#pragma once
// Kernels compiled beforehand, without a GPU, for machines that have no compiler.
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "run/gpu/kernels.hpp"
#include "run/gpu/plan.hpp"
#include "run/gpu/program_plan.hpp"

namespace clebsch::gpu {

/// A folder of kernels for one architecture.
class PrebuiltFolder {
 public:
    /// Made if it is not there. Throws Error when it cannot be.
    PrebuiltFolder(std::filesystem::path folder, const GpuTarget& target);

    /// Compiles what the folder lacks of what a plan with these options loads. `device` of the options means nothing. Throws Error: as
    /// plans do for the polynomial or program, without the compiler, when the folder cannot be written.
    void add(const Polynomial& polynomial, const PlanOptions& options);
    void add(const Program& program, const ProgramOptions& options);
    void add(const std::vector<KernelSource>& sources) { fill(sources); }

    int kernels() const { return kernels_; }    ///< asked for so far, each once
    int compiled() const { return compiled_; }  ///< of those, what was not there

 private:
    struct Known {
        std::once_flag once;
        int spilled_bytes = 0;
    };
    std::shared_ptr<Known> known(const Hash& key);
    std::vector<int> fill(const std::vector<KernelSource>& sources);  ///< the bytes that each of them spills
    void add_polynomial(const Polynomial& polynomial, const PlanOptions& options, DType compute);

    std::filesystem::path folder_;
    GpuTarget target_;
    std::mutex mutex_;
    std::map<Hash, std::shared_ptr<Known>> known_;
    std::atomic<int> kernels_{0}, compiled_{0};
};

}  // namespace clebsch::gpu
