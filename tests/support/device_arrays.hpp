#pragma once
// The arrays of a launch in a GPU's memory, filled with the reference's inputs, surrounded by a pattern that must survive.
#include <algorithm>
#include <string>
#include <vector>

#include "run/gpu/driver.hpp"
#include "support/run_plan.hpp"

namespace clebsch::testing {

inline gpu::Memory on_device(const gpu::Device& device, const void* data, std::size_t bytes) {
    gpu::Memory memory(device, std::max<std::size_t>(bytes, 16));
    device.to_device(memory.data(), data, bytes);
    return memory;
}

/// What a plan of either kind has as arrays.
struct DeviceOperand {
    std::string name, space;
    std::int64_t size = 0;
    Role role = Role::input;
    DType dtype = DType::float32;
};

struct DeviceRun {
    IndexType index_type = IndexType::int64;
    std::int64_t padding = 0, offset = 0;  ///< numbers between rows, before the first (so that rows are not aligned)
    int launches = 1;                      ///< one after the other on the same arrays
};

class DeviceArrays {
 public:
    DeviceArrays(const gpu::Device& device, std::vector<DeviceOperand> operands, std::vector<Index> indices,
                 const std::vector<std::string>& spaces, const ReferenceInputs& inputs, const DeviceRun& options = {})
        : device_(device), operands_(std::move(operands)), indices_(std::move(indices)), options_(options) {
        for (const std::string& space : spaces) rows_.push_back(space.empty() ? 1 : inputs.rows.at(space));
        for (std::size_t o = 0; o < operands_.size(); ++o) {
            const DeviceOperand& operand = operands_[o];
            counts_.push_back(operand.space.empty() ? 1 : inputs.rows.at(operand.space));
            hosts_.emplace_back(place(o, counts_[o], 0) + 64, std::byte{0x5a});
            memory_.emplace_back(device, hosts_[o].size());
            buffers_.push_back({static_cast<std::byte*>(memory_[o].data()) + place(o, 0, 0), operand.dtype, counts_[o],
                                options.padding == 0 ? 0 : operand.size + options.padding});
        }
        for (const Index& index : indices_) {
            const auto count = static_cast<std::int64_t>(inputs.indices.at(index.name).size());
            index_memory_.emplace_back(device, std::max<std::size_t>(16, static_cast<std::size_t>(count) * size_of(options.index_type)));
            index_buffers_.push_back({index_memory_.back().data(), options.index_type, count});
        }
        fill(inputs);
    }

    /// Other numbers and indices in the same places; outputs become the pattern.
    void fill(const ReferenceInputs& inputs) {
        for (std::size_t o = 0; o < operands_.size(); ++o) {
            std::ranges::fill(hosts_[o], std::byte{0x5a});
            if (operands_[o].role == Role::input) {
                const ReferenceArray& numbers = inputs.arrays.at(operands_[o].name);
                for (std::int64_t r = 0; r < counts_[o]; ++r)
                    for (std::int64_t i = 0; i < operands_[o].size; ++i)
                        store_number(hosts_[o].data() + place(o, r, i), operands_[o].dtype,
                                     numbers[static_cast<std::size_t>(r * operands_[o].size + i)]);
            }
            device_.to_device(memory_[o].data(), hosts_[o].data(), hosts_[o].size());
        }
        for (std::size_t i = 0; i < indices_.size(); ++i) {
            const std::vector<std::int64_t>& wide = inputs.indices.at(indices_[i].name);
            const std::vector<std::int32_t> narrow(wide.begin(), wide.end());
            if (options_.index_type == IndexType::int64) device_.to_device(index_memory_[i].data(), wide.data(), wide.size() * 8);
            else device_.to_device(index_memory_[i].data(), narrow.data(), narrow.size() * 4);
        }
    }

    Call call() const { return {.buffers = buffers_, .indices = index_buffers_, .rows = rows_}; }
    const std::vector<std::int64_t>& rows() const { return rows_; }

    /// Waits; outputs, and whether nothing else was written.
    RunResult result() const {
        RunResult result;
        for (std::size_t o = 0; o < operands_.size(); ++o) {
            std::vector<std::byte> host(hosts_[o].size());
            device_.from_device(host.data(), memory_[o].data(), host.size());
            if (operands_[o].role == Role::output) {
                ReferenceArray& numbers = result.outputs[operands_[o].name];
                for (std::int64_t r = 0; r < counts_[o]; ++r)
                    for (std::int64_t i = 0; i < operands_[o].size; ++i) {
                        numbers.push_back(load_number(host.data() + place(o, r, i), operands_[o].dtype));
                        std::fill_n(host.data() + place(o, r, i), size_of(operands_[o].dtype), std::byte{0x5a});
                    }
            }
            result.surroundings_intact = result.surroundings_intact && host == hosts_[o];
        }
        return result;
    }

 private:
    const gpu::Device& device_;
    std::vector<DeviceOperand> operands_;
    std::vector<Index> indices_;
    DeviceRun options_;
    std::vector<std::int64_t> rows_, counts_;
    std::vector<std::vector<std::byte>> hosts_;
    std::vector<gpu::Memory> memory_, index_memory_;
    std::vector<Buffer> buffers_;
    std::vector<IndexBuffer> index_buffers_;

    std::size_t place(std::size_t o, std::int64_t row, std::int64_t column) const {
        return static_cast<std::size_t>(options_.offset + row * (operands_[o].size + options_.padding) + column) *
               size_of(operands_[o].dtype);
    }
};

/// Workspace of a plan, full of garbage.
template <class Plan>
gpu::Memory workspace_of(const Plan& plan, std::span<const std::int64_t> rows) {
    const std::size_t bytes = plan.workspace_bytes(rows);
    const std::vector<std::byte> garbage(bytes, std::byte{0x7f});
    return on_device(plan.device(), garbage.data(), bytes);
}

template <class Plan>
RunResult run_on(const Plan& plan, const DeviceArrays& arrays, const DeviceRun& options) {
    const gpu::Memory workspace = workspace_of(plan, arrays.rows());
    for (int launch = 0; launch < options.launches; ++launch) plan.launch(arrays.call(), {workspace.data(), workspace.bytes()}, nullptr);
    return arrays.result();
}

}  // namespace clebsch::testing
