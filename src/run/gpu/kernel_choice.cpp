#include "run/gpu/kernel_choice.hpp"

#include <algorithm>
#include <limits>

#include "run/gpu/compiler.hpp"
#include "run/gpu/kernels.hpp"

namespace clebsch::gpu {
namespace {

class KernelChoice {
 public:
    KernelChoice(GpuProblem& problem, const std::string& schedule, const UseKernels& use)
        : problem_(problem), schedule_(schedule), use_(use) {}

    GpuKernels choose() {
        constexpr int most_tries = 6;
        const bool measured = problem_.blocks != 0 || problem_.team_warps != 0 || problem_.consumers != 0;  // may ask for what spills
        for (int tries = 1; spills() && !measured && tries < most_tries; ++tries) ask_for_more();
        if (std::ranges::any_of(tried_, [](const Tried& one) { return one.best != one.spare; })) {
            for (Tried& one : tried_) one.spare = one.best;
            spills();
        }
        return std::move(kernels_);
    }

 private:
    /// Of a stream kernel, or one of rows: what was asked for and what was spilled then, of the last try and the best.
    struct Tried {
        SpareRegisters spare = {}, best = {};
        int spilled = 0, least_spilled = std::numeric_limits<int>::max();
    };
    GpuProblem& problem_;
    const std::string& schedule_;
    const UseKernels& use_;
    GpuKernels kernels_;
    std::vector<StreamKernel> chosen_;  // those of the first try
    std::vector<Tried> tried_;
    std::string why_fixed_;  // why all warps have the same number of registers; empty: they need not

    /// Uses the kernels with what was asked for so far: whether one of those spills.
    bool spills() {
        make();
        std::vector<int> spilled;
        try {
            spilled = use_(kernels_);
        } catch (const RegistersRefused&) {
            if (!moves_registers()) throw;
            spilled = use_fixed("the compiler refused to move them from producers to consumers");
        } catch (const KernelMissing&) {
            if (!moves_registers()) throw;
            spilled = use_fixed("kernels that move them are not among the prebuilt ones");
        }
        tried_.resize(kernels_.rows ? 1 : kernels_.streams.size());
        for (std::size_t s = 0; s < spilled.size(); ++s) {
            const GpuStage& stage = kernels_.stages[s];
            if (stage.kind != GpuStageKind::stream && stage.kind != GpuStageKind::rows) continue;
            Tried& one = tried_[stage.kind == GpuStageKind::rows ? 0 : static_cast<std::size_t>(stage.stream)];
            one.spilled = spilled[s];
            if (one.spilled >= one.least_spilled) continue;
            one.least_spilled = one.spilled;
            one.best = one.spare;
        }
        return std::ranges::any_of(tried_, [](const Tried& one) { return one.spilled > 0; });
    }
    void make() {
        std::vector<SpareRegisters> spare;
        for (const Tried& one : tried_) spare.push_back(one.spare);
        kernels_ = gpu_kernels(problem_, schedule_, spare, chosen_);
        if (spare.empty()) chosen_ = kernels_.streams;
        if (!why_fixed_.empty()) kernels_.explain += "all warps have the same number of registers: " + why_fixed_ + "\n";
        for (std::size_t k = 0; k < spare.size(); ++k)
            if (spare[k].least == 0 && spare[k].frugal)
                kernels_.explain +=
                    "stream kernel " + std::to_string(k) + ": the compiler spilled, so consumers find out again what they could keep\n";
            else if (spare[k].least > 0)
                kernels_.explain +=
                    (kernels_.rows ? "the compiler spilled with " : "stream kernel " + std::to_string(k) + ": the compiler spilled with ") +
                    std::to_string(spare[k].least - 1) + " registers more than were thought to be needed\n";
    }
    bool moves_registers() const {
        return std::ranges::any_of(kernels_.streams, [](const StreamKernel& kernel) { return kernel.schedule.consumer_registers != 0; });
    }
    std::vector<int> use_fixed(const char* reason) {
        problem_.fixed_registers = true;
        why_fixed_ = reason;
        tried_.clear();
        chosen_.clear();
        make();
        return use_(kernels_);
    }
    /// Where little was spilled, that consumers are frugal, which leaves the schedule as it is; then what makes it another one, and what
    /// would hold all that was spilled: a number is stored and loaded. Some more, as a try takes seconds.
    void ask_for_more() {
        constexpr int bytes_of_a_register = 8, some_more = 4, frugal_bytes = 72;  // what being frugal is good for
        for (std::size_t k = 0; k < tried_.size(); ++k) {
            Tried& one = tried_[k];
            if (one.spilled == 0) continue;
            const bool first = !one.spare.frugal && !kernels_.rows;
            one.spare.frugal = true;
            if (first && one.spilled <= frugal_bytes) continue;
            const int spilled = std::max(0, one.spilled - (first ? frugal_bytes : 0));
            const int spare = kernels_.rows ? kernels_.rows->spare_registers : kernels_.streams[k].schedule.spare_registers;
            one.spare.least = std::max(one.spare.least, spare) + 1;
            one.spare.wanted = one.spare.least + some_more + spilled / bytes_of_a_register;
        }
    }
};

}  // namespace

GpuKernels gpu_kernels_for(GpuProblem& problem, const std::string& schedule, const UseKernels& use) {
    return KernelChoice(problem, schedule, use).choose();
}

}  // namespace clebsch::gpu
