#pragma once
// Runs programs' plans on a GPU on the reference's inputs, as run_program.hpp does on the CPU.
#include "run/gpu/program_plan.hpp"
#include "support/run_gpu.hpp"
#include "support/run_program.hpp"

namespace clebsch::testing {

struct GpuProgramRun {
    IndexType index_type = IndexType::int64;
    std::int64_t padding = 0, offset = 0;  ///< numbers between rows, before the first
    int launches = 1;                      ///< one after the other on the same arrays
};

inline RunResult run_gpu(const gpu::ProgramPlan& plan, const ReferenceInputs& inputs, const GpuProgramRun& options = {}) {
    const Program& program = plan.program();
    const gpu::Device& device = plan.device();
    const std::size_t count = program.inputs.size() + program.outputs.size();
    const auto value = [&](std::size_t i) -> const Value& {
        return program
            .values[static_cast<std::size_t>(i < program.inputs.size() ? program.inputs[i] : program.outputs[i - program.inputs.size()])];
    };
    const auto place = [&](std::size_t i, std::int64_t row, std::int64_t column) {
        return static_cast<std::size_t>(options.offset + row * (value(i).size() + options.padding) + column) * size_of(plan.dtypes()[i]);
    };
    std::vector<std::vector<std::byte>> hosts;
    std::vector<gpu::Memory> memory;
    std::vector<Buffer> buffers;
    std::vector<std::int64_t> counts;
    for (std::size_t i = 0; i < count; ++i) {
        counts.push_back(value(i).space.empty() ? 1 : inputs.rows.at(value(i).space));
        hosts.emplace_back(place(i, counts[i], 0) + 64, std::byte{0x5a});
        if (i < program.inputs.size()) {
            const ReferenceArray& numbers = inputs.arrays.at(value(i).name);
            for (std::int64_t r = 0; r < counts[i]; ++r)
                for (std::int64_t k = 0; k < value(i).size(); ++k)
                    store_number(hosts[i].data() + place(i, r, k), plan.dtypes()[i],
                                 numbers[static_cast<std::size_t>(r * value(i).size() + k)]);
        }
        memory.push_back(on_device(device, hosts[i].data(), hosts[i].size()));
        buffers.push_back({static_cast<std::byte*>(memory[i].data()) + place(i, 0, 0), plan.dtypes()[i], counts[i],
                           options.padding == 0 ? 0 : value(i).size() + options.padding});
    }
    std::vector<gpu::Memory> index_memory;
    std::vector<IndexBuffer> indices;
    for (const Index& index : program.indices) {
        const std::vector<std::int64_t>& wide = inputs.indices.at(index.name);
        const std::vector<std::int32_t> narrow(wide.begin(), wide.end());
        const bool is_wide = options.index_type == IndexType::int64;
        index_memory.push_back(is_wide ? on_device(device, wide.data(), wide.size() * 8)
                                       : on_device(device, narrow.data(), narrow.size() * 4));
        indices.push_back({index_memory.back().data(), options.index_type, static_cast<std::int64_t>(wide.size())});
    }
    std::vector<std::int64_t> rows;
    for (const std::string& space : plan.spaces()) rows.push_back(inputs.rows.at(space));
    const std::size_t bytes = plan.workspace_bytes(rows);
    const std::vector<std::byte> garbage(bytes, std::byte{0x7f});
    const gpu::Memory workspace = on_device(device, garbage.data(), bytes);
    for (int launch = 0; launch < options.launches; ++launch)
        plan.launch({.buffers = buffers, .indices = indices, .rows = rows}, {workspace.data(), bytes}, nullptr);
    RunResult result;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::byte> host(hosts[i].size());
        device.from_device(host.data(), memory[i].data(), host.size());
        if (i >= program.inputs.size()) {
            ReferenceArray& numbers = result.outputs[value(i).name];
            for (std::int64_t r = 0; r < counts[i]; ++r)
                for (std::int64_t k = 0; k < value(i).size(); ++k) {
                    numbers.push_back(load_number(host.data() + place(i, r, k), plan.dtypes()[i]));
                    std::fill_n(host.data() + place(i, r, k), size_of(plan.dtypes()[i]), std::byte{0x5a});
                }
        }
        result.surroundings_intact = result.surroundings_intact && host == hosts[i];
    }
    return result;
}

}  // namespace clebsch::testing
