#pragma once
// Runs GPU plans on the reference's inputs, as run_plan.hpp does on the CPU.
#include "run/gpu/plan.hpp"
#include "support/device_arrays.hpp"

namespace clebsch::testing {

inline DeviceArrays arrays_of(const gpu::PolynomialPlan& plan, const ReferenceInputs& inputs, const DeviceRun& options = {}) {
    const Polynomial& polynomial = plan.polynomial();
    std::vector<DeviceOperand> operands;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        operands.push_back({operand.name, polynomial.space_of(operand), operand.size(), operand.role, plan.dtypes()[o]});
    }
    return {plan.device(), std::move(operands), polynomial.indices, plan.spaces(), inputs, options};
}

inline RunResult run_gpu(const gpu::PolynomialPlan& plan, const ReferenceInputs& inputs, const DeviceRun& options = {}) {
    return run_on(plan, arrays_of(plan, inputs, options), options);
}

}  // namespace clebsch::testing
