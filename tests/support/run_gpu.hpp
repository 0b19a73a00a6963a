#pragma once
// Runs GPU plans on the reference's inputs, as run_plan.hpp does on the CPU.
#include <vector>

#include "run/gpu/plan.hpp"
#include "support/run_plan.hpp"

namespace clebsch::testing {

inline gpu::Memory on_device(const gpu::Device& device, const void* data, std::size_t bytes) {
    gpu::Memory memory(device, std::max<std::size_t>(bytes, 16));
    device.to_device(memory.data(), data, bytes);
    return memory;
}

/// `padding`: numbers between rows; `offset`: numbers before the first (so that rows are not aligned).
inline RunResult run_gpu(const gpu::PolynomialPlan& plan, const ReferenceInputs& inputs, std::int64_t padding = 0, std::int64_t offset = 0,
                         IndexType index_type = IndexType::int64) {
    const Polynomial& polynomial = plan.polynomial();
    const gpu::Device& device = plan.device();
    std::vector<std::vector<std::byte>> hosts;
    std::vector<gpu::Memory> memory;
    std::vector<Buffer> buffers;
    const auto place = [&](std::size_t o, std::int64_t row, std::int64_t column) {
        return static_cast<std::size_t>(offset + row * (polynomial.operands[o].size() + padding) + column) * size_of(plan.dtypes()[o]);
    };
    std::vector<std::int64_t> counts;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        const std::string space = polynomial.space_of(operand);
        counts.push_back(space.empty() ? 1 : inputs.rows.at(space));
        hosts.emplace_back(place(o, counts[o], 0) + 64, std::byte{0x5a});
        if (operand.role == Role::input) {
            const ReferenceArray& numbers = inputs.arrays.at(operand.name);
            for (std::int64_t r = 0; r < counts[o]; ++r)
                for (std::int64_t i = 0; i < operand.size(); ++i)
                    store_number(hosts[o].data() + place(o, r, i), plan.dtypes()[o],
                                 numbers[static_cast<std::size_t>(r * operand.size() + i)]);
        }
        memory.push_back(on_device(device, hosts[o].data(), hosts[o].size()));
        buffers.push_back({static_cast<std::byte*>(memory[o].data()) + place(o, 0, 0), plan.dtypes()[o], counts[o],
                           padding == 0 ? 0 : operand.size() + padding});
    }
    std::vector<gpu::Memory> index_memory;
    std::vector<IndexBuffer> indices;
    for (const Index& index : polynomial.indices) {
        const std::vector<std::int64_t>& wide = inputs.indices.at(index.name);
        const std::vector<std::int32_t> narrow(wide.begin(), wide.end());
        const bool is_wide = index_type == IndexType::int64;
        index_memory.push_back(is_wide ? on_device(device, wide.data(), wide.size() * 8)
                                       : on_device(device, narrow.data(), narrow.size() * 4));
        indices.push_back({index_memory.back().data(), index_type, static_cast<std::int64_t>(wide.size())});
    }
    std::vector<std::int64_t> rows;
    for (const std::string& space : plan.spaces()) rows.push_back(space.empty() ? 1 : inputs.rows.at(space));
    const std::size_t bytes = plan.workspace_bytes(rows);
    const std::vector<std::byte> garbage(bytes, std::byte{0x7f});
    const gpu::Memory workspace = on_device(device, garbage.data(), bytes);
    plan.launch({.buffers = buffers, .indices = indices, .rows = rows}, {workspace.data(), bytes}, nullptr);
    RunResult result;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        if (polynomial.operands[o].role != Role::output) continue;
        std::vector<std::byte> host(hosts[o].size());
        device.from_device(host.data(), memory[o].data(), host.size());
        ReferenceArray& numbers = result.outputs[polynomial.operands[o].name];
        for (std::int64_t r = 0; r < counts[o]; ++r)
            for (std::int64_t i = 0; i < polynomial.operands[o].size(); ++i) {
                numbers.push_back(load_number(host.data() + place(o, r, i), plan.dtypes()[o]));
                std::fill_n(host.data() + place(o, r, i), size_of(plan.dtypes()[o]), std::byte{0x5a});
            }
        result.surroundings_intact = result.surroundings_intact && host == hosts[o];
    }
    return result;
}

}  // namespace clebsch::testing
