#pragma once
// Runs programs' plans on a GPU on the reference's inputs, as run_program.hpp does on the CPU.
#include "run/gpu/program_plan.hpp"
#include "support/device_arrays.hpp"
#include "support/run_program.hpp"

namespace clebsch::testing {

inline DeviceArrays arrays_of(const gpu::ProgramPlan& plan, const ReferenceInputs& inputs, const DeviceRun& options = {}) {
    const Program& program = plan.program();
    std::vector<DeviceOperand> operands;
    for (const std::vector<int>* list : {&program.inputs, &program.outputs})
        for (const int number : *list) {
            const Value& value = program.values[static_cast<std::size_t>(number)];
            operands.push_back({value.name, value.space, value.size(), list == &program.inputs ? Role::input : Role::output,
                                plan.dtypes()[operands.size()]});
        }
    return {plan.device(), std::move(operands), program.indices, plan.spaces(), inputs, options};
}

inline RunResult run_gpu(const gpu::ProgramPlan& plan, const ReferenceInputs& inputs, const DeviceRun& options = {}) {
    return run_on(plan, arrays_of(plan, inputs, options), options);
}

}  // namespace clebsch::testing
