#pragma once
// A workload's plan on a GPU: arrays are copied there for every run, and outputs back.
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "run/gpu/plan.hpp"
#include "run/gpu/program_plan.hpp"

namespace clebsch::tool {

class GpuWorkload {
 public:
    /// All arrays in one dtype, which is that of the arithmetic.
    GpuWorkload(const std::variant<Polynomial, Program>& description, DType dtype, int device, bool deterministic);

    /// A call with arrays of the host. `roles`: of its buffers.
    void run(const Call& call, std::span<const Role> roles) const;
    std::string schedule() const;  ///< "stream", "general", "17 steps"
    std::string explain() const;
    Work work(std::span<const std::int64_t> rows) const;

 private:
    std::variant<gpu::PolynomialPlan, gpu::ProgramPlan> plan_;
};

}  // namespace clebsch::tool
