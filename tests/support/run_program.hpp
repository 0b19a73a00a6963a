#pragma once
// Runs a program's plan on the reference's inputs, as run_plan.hpp does for polynomials.
#include "run/program_plan.hpp"
#include "support/run_plan.hpp"

namespace clebsch::testing {

inline ReferenceInputs rounded_inputs(const Program& program, ReferenceInputs inputs, const std::vector<DType>& dtypes) {
    for (std::size_t i = 0; i < program.inputs.size(); ++i)
        for (long double& number : inputs.arrays.at(program.values[static_cast<std::size_t>(program.inputs[i])].name))
            number = rounded(number, dtypes[i]);
    return inputs;
}

inline RunResult run_program(const ProgramPlan& plan, const ReferenceInputs& inputs, const RunOptions& options = {}) {
    const Program& program = plan.program();
    std::vector<StoredArray> arrays;
    std::vector<Buffer> buffers;
    const std::size_t count = program.inputs.size() + program.outputs.size();
    const auto value = [&](std::size_t i) -> const Value& {
        return program
            .values[static_cast<std::size_t>(i < program.inputs.size() ? program.inputs[i] : program.outputs[i - program.inputs.size()])];
    };
    for (std::size_t i = 0; i < count; ++i) {
        arrays.emplace_back(plan.dtypes()[i], value(i).space.empty() ? 1 : inputs.rows.at(value(i).space), value(i).size(),
                            value(i).size() + options.padding, options.shift);
        if (i < program.inputs.size()) arrays.back().fill(inputs.arrays.at(value(i).name));
    }
    for (StoredArray& array : arrays) buffers.push_back(array.buffer(options.padding == 0));
    std::vector<StoredIndex> stored;
    std::vector<IndexBuffer> indices;
    for (const Index& index : program.indices) stored.emplace_back(inputs.indices.at(index.name), options.index_type, options.shift);
    for (const StoredIndex& index : stored) indices.push_back(index.buffer());
    std::vector<std::int64_t> rows;
    for (const std::string& space : plan.spaces()) rows.push_back(inputs.rows.at(space));
    const int threads = options.parallel_for.run == nullptr ? 1 : options.parallel_for.threads;
    std::vector<unsigned char> workspace(plan.workspace_bytes(rows, threads) + 1, 0xff);
    std::vector<std::int64_t> prepared_rows;
    for (const std::string& space : plan.spaces())
        prepared_rows.push_back((options.prepared_rows == nullptr ? inputs.rows : *options.prepared_rows).at(space));
    std::vector<std::byte> memory(options.prepare ? plan.prepared_bytes(prepared_rows) + 64 : 0);
    std::byte* prepared = nullptr;
    if (options.prepare) {
        prepared = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
        plan.prepare(prepared_rows, buffers, prepared, memory.size() - 64);
    }
    plan.launch({.buffers = buffers, .indices = indices, .rows = rows}, {.data = workspace.data() + 1, .bytes = workspace.size() - 1},
                options.parallel_for, prepared);
    RunResult result;
    for (std::size_t i = 0; i < count; ++i) {
        if (i >= program.inputs.size()) result.outputs[value(i).name] = arrays[i].numbers();
        result.surroundings_intact = result.surroundings_intact && arrays[i].surroundings_intact();
    }
    return result;
}

}  // namespace clebsch::testing
