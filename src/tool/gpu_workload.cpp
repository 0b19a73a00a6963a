#include "tool/gpu_workload.hpp"

#include <algorithm>
#include <type_traits>

#include "base/error.hpp"

namespace clebsch::tool {
namespace {

std::variant<gpu::PolynomialPlan, gpu::ProgramPlan> planned(const std::variant<Polynomial, Program>& description, DType dtype, int device,
                                                            bool deterministic) {
    if (const auto* polynomial = std::get_if<Polynomial>(&description))
        return gpu::PolynomialPlan(
            *polynomial,
            {.dtypes = std::vector<DType>(polynomial->operands.size(), dtype), .device = device, .deterministic = deterministic});
    const auto& program = std::get<Program>(description);
    return gpu::ProgramPlan(program, {.dtypes = std::vector<DType>(program.inputs.size() + program.outputs.size(), dtype),
                                      .device = device,
                                      .deterministic = deterministic});
}

gpu::Memory copied(const gpu::Device& device, const void* data, std::size_t bytes) {
    constexpr std::size_t least = 16;
    gpu::Memory memory(device, std::max(bytes, least));
    device.to_device(memory.data(), data, bytes);
    return memory;
}

}  // namespace

GpuWorkload::GpuWorkload(const std::variant<Polynomial, Program>& description, DType dtype, int device, bool deterministic)
    : plan_(planned(description, dtype, device, deterministic)) {}

void GpuWorkload::run(const Call& call, std::span<const Role> roles) const {
    const gpu::Device& device = std::visit([](const auto& plan) -> const gpu::Device& { return plan.device(); }, plan_);
    const auto bytes_of = [&](std::size_t i, std::int64_t row_size) {
        return static_cast<std::size_t>(call.buffers[i].rows * row_size) * size_of(call.buffers[i].dtype);
    };
    std::vector<std::int64_t> sizes;
    std::visit(
        [&](const auto& plan) {
            if constexpr (std::is_same_v<std::decay_t<decltype(plan)>, gpu::PolynomialPlan>) {
                for (const Operand& operand : plan.polynomial().operands) sizes.push_back(operand.size());
            } else {
                for (const std::vector<int>* list : {&plan.program().inputs, &plan.program().outputs})
                    for (const int value : *list) sizes.push_back(plan.program().values[static_cast<std::size_t>(value)].size());
            }
        },
        plan_);
    std::vector<gpu::Memory> memory;
    std::vector<Buffer> buffers(call.buffers.begin(), call.buffers.end());
    std::vector<IndexBuffer> indices(call.indices.begin(), call.indices.end());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        memory.push_back(copied(device, buffers[i].data, bytes_of(i, sizes[i])));
        buffers[i].data = memory.back().data();
    }
    for (IndexBuffer& index : indices) {
        memory.push_back(copied(device, index.data, static_cast<std::size_t>(index.size) * size_of(index.type)));
        index.data = memory.back().data();
    }
    std::visit(
        [&](const auto& plan) {
            const gpu::Memory workspace(device, std::max<std::size_t>(plan.workspace_bytes(call.rows), 16));
            plan.launch({.buffers = buffers, .indices = indices, .rows = call.rows}, {workspace.data(), workspace.bytes()}, nullptr);
            if (plan.index_error()) fail("an index is out of range, or a sorted one decreases");
        },
        plan_);
    for (std::size_t i = 0; i < buffers.size(); ++i)
        if (roles[i] == Role::output) device.from_device(call.buffers[i].data, buffers[i].data, bytes_of(i, sizes[i]));
}

std::string GpuWorkload::schedule() const {
    if (const auto* plan = std::get_if<gpu::PolynomialPlan>(&plan_)) return plan->schedule();
    return std::to_string(std::get<gpu::ProgramPlan>(plan_).steps()) + " steps";
}

std::string GpuWorkload::explain() const {
    return std::visit([](const auto& plan) { return plan.explain(); }, plan_);
}

Work GpuWorkload::work(std::span<const std::int64_t> rows) const {
    return std::visit([&](const auto& plan) { return plan.work(rows); }, plan_);
}

}  // namespace clebsch::tool
