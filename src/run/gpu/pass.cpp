#include "run/gpu/pass.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "base/error.hpp"
#include "run/gpu/kernel_choice.hpp"
#include "run/gpu/kernels.hpp"
#include "run/gpu/plan.hpp"
#include "run/gpu/table_kernel.hpp"

namespace clebsch::gpu {
namespace {

constexpr std::size_t alignment = 256;
std::size_t at(int position) { return static_cast<std::size_t>(position); }
std::size_t padded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
std::uint64_t address(const void* pointer) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)); }

constexpr std::size_t most_arguments = 512;  // 64-bit words: CUDA takes 4 kB

}  // namespace

void add_workspace(std::size_t& bytes, std::int64_t rows, std::int64_t numbers, std::size_t element) {
    constexpr std::size_t most = std::size_t{1} << 62;
    std::size_t size = 0;
    if (__builtin_mul_overflow(static_cast<std::size_t>(rows), static_cast<std::size_t>(numbers), &size) ||
        __builtin_mul_overflow(size, element, &size) || size > most || bytes + padded(size) > most)
        fail("the workspace would exceed 2^62 bytes");
    bytes += padded(size);
}

Pass::Pass(const Device& device, GpuProblem problem, std::vector<DType> dtypes, DType compute, const std::string& schedule)
    : problem_(std::move(problem)),
      dtypes_(std::move(dtypes)),
      compute_(compute),
      device_(&device),
      spaces_(row_spaces(problem_.polynomial)) {
    const auto space = [&](const std::string& name) { return static_cast<int>(std::ranges::find(spaces_, name) - spaces_.begin()); };
    for (std::size_t o = 0; o < polynomial().operands.size(); ++o) {
        const Operand& operand = polynomial().operands[o];
        sizes_.push_back(operand.size());
        operand_space_.push_back(problem_.is_message(o)                          ? 0
                                 : operand.rows.kind == Addressing::Kind::shared ? -1
                                                                                 : space(polynomial().space_of(operand)));
    }
    for (const Index& index : polynomial().indices) index_to_.push_back(space(index.to));
    const auto load = [&](const GpuKernels& kernels) {
        std::vector<KernelSource> sources;
        for (const GpuStage& stage : kernels.stages) {
            if (const std::size_t count = stage.kernel.arguments.size(); count > most_arguments)
                throw Error(ErrorKind::unsupported, "a kernel of " + std::to_string(polynomial().operands.size()) + " operands takes " +
                                                        std::to_string(count) + " arguments, at most " + std::to_string(most_arguments));
            sources.push_back({stage.kernel.name, full_text(stage)});
        }
        modules_ = load_kernels(device, sources);
        std::vector<int> spilled;
        for (const auto& module : modules_) spilled.push_back(module->spilled_bytes());
        return spilled;
    };
    try {
        if (schedule == "table") load_table();
        else kernels_ = gpu_kernels_for(problem_, schedule, load);
    } catch (const KernelMissing& missing) {
        if (!schedule.empty()) throw;
        load_table_without(missing);
    }
    stream_blocks_.assign(modules_.size(), 0);
    for (std::size_t s = 0; s < modules_.size(); ++s) {
        if (kernels_.stages[s].kind == GpuStageKind::rows) modules_[s]->allow_shared(kernels_.rows->shared_bytes);
        if (kernels_.stages[s].kind != GpuStageKind::stream) continue;
        const StreamSchedule& stream = kernels_.streams[at(kernels_.stages[s].stream)].schedule;
        if (!stream.stationary.empty()) stationary_space_ = index_to_[at(polynomial().find_index(stream.stationary.back()))];
        modules_[s]->allow_shared(stream.shared_bytes());
        const int blocks = modules_[s]->blocks_per_multiprocessor(stream.threads(), stream.shared_bytes());
        if (blocks == 0) throw Error(ErrorKind::unsupported, "the stream kernel does not fit onto " + device.name());
        // Claiming more registers than the block was launched with would wait for ever.
        const int claimed =
            32 * (stream.producer_warps * stream.producer_registers + stream.teams * stream.consumer_warps() * stream.consumer_registers);
        if (stream.consumer_registers > 0 && modules_[s]->registers() * stream.threads() < claimed)
            throw Error(ErrorKind::unsupported, "the stream kernel was compiled with too few registers to move");
        stream_blocks_[s] = std::int64_t{blocks} * device.multiprocessors();
    }
}

void Pass::load_table() {
    kernels_ = gpu_kernels(problem_, "table");
    modules_.clear();
    for (const GpuStage& stage : kernels_.stages) modules_.push_back(table_module(*device_, stage.kernel.name));
    const std::vector<std::int64_t>& words = kernels_.table->words;
    tables_ = std::make_unique<Memory>(*device_, words.size() * sizeof(std::int64_t));
    device_->to_device(tables_->data(), words.data(), tables_->bytes());
}

void Pass::load_table_without(const KernelMissing& missing) {
    std::string why = table_image_missing();
    if (why.empty() && !schedule_table(problem_, why)) why = "The kernel that was compiled with the library does not take it: " + why;
    if (!why.empty()) throw KernelMissing(missing.kind(), std::string(missing.what()) + "\n" + why);
    load_table();
    constexpr const char* reason = "there is neither CUDA's run-time compiler (NVRTC) nor a prebuilt kernel";
    kernels_.explain += std::string("not a kernel of its own: ") + reason + "\n";
    static std::once_flag said;
    std::call_once(said, [] {
        std::fprintf(
            stderr,
            "clebsch: %s: operations run on the kernel that was compiled with the library, which is slower (docs/gpu.md, Without the "
            "compiler)\n",
            reason);
    });
}

std::int64_t Pass::rows_of(std::size_t o, std::span<const std::int64_t> rows) const {
    return operand_space_[o] < 0 ? 1 : rows[at(operand_space_[o])];
}

GpuChunks Pass::chunks(std::span<const std::int64_t> rows) const {
    return gpu_chunks(kernels_, rows[0], stationary_space_ < 0 ? 0 : rows[at(stationary_space_)], device_->multiprocessors());
}

std::size_t Pass::offset(std::size_t o, std::span<const std::int64_t> rows) const {
    std::size_t bytes = 0;
    const auto add = [&](std::int64_t count, std::int64_t numbers, std::size_t element) { add_workspace(bytes, count, numbers, element); };
    const std::size_t operands = polynomial().operands.size();
    for (std::size_t other = 0; other < std::min(o, operands); ++other) {
        if (kernels_.has_parts[other]) add(chunks(rows).parts(), sizes_[other], size_of(compute_));
        else if (kernels_.needs_sums[other]) add(rows_of(other, rows), sizes_[other], size_of(compute_));
    }
    if (o > operands && std::ranges::find(kernels_.has_parts, true) != kernels_.has_parts.end()) add(chunks(rows).parts(), 1, 8);
    return bytes;
}

std::size_t Pass::workspace_bytes(std::span<const std::int64_t> rows) const { return offset(polynomial().operands.size() + 1, rows); }

std::uint64_t Pass::argument(const KernelArgument& argument, const Call& call, void* workspace, void* error,
                             const GpuChunks& chunks) const {
    using Kind = KernelArgument::Kind;
    const auto which = static_cast<std::size_t>(argument.which);
    const auto stride = [&](std::size_t o) {
        const std::int64_t given = call.buffers[o].row_stride;
        return static_cast<std::uint64_t>(given != 0 ? given : sizes_[o]);
    };
    switch (argument.kind) {
        case Kind::data:
            return address(call.buffers[which].data);
        case Kind::stride:
            return stride(which);
        case Kind::sums:
            if (!kernels_.needs_sums[which]) return address(call.buffers[which].data);
            return address(workspace) + offset(which, call.rows);
        case Kind::sums_stride:
            return kernels_.needs_sums[which] ? static_cast<std::uint64_t>(sizes_[which]) : stride(which);
        case Kind::parts:
            return address(workspace) + offset(which, call.rows);
        case Kind::part_targets:
            return address(workspace) + offset(polynomial().operands.size(), call.rows);
        case Kind::part_count:
            return static_cast<std::uint64_t>(chunks.parts());
        case Kind::output_rows:
            return static_cast<std::uint64_t>(rows_of(which, call.rows));
        case Kind::index:
            return address(call.indices[which].data);
        case Kind::index_rows:
            return static_cast<std::uint64_t>(call.rows[at(index_to_[which])]);
        case Kind::index_wide:
            return call.indices[which].type == IndexType::int64 ? 1 : 0;
        case Kind::rows:
            return static_cast<std::uint64_t>(call.rows[0]);
        case Kind::reach:
            return static_cast<std::uint64_t>(chunks.reach);
        case Kind::chunk:
            return static_cast<std::uint64_t>(chunks.rows);
        case Kind::aligned: {
            std::uint64_t bits = 0;
            for (std::size_t o = 0; o < call.buffers.size() && o < 64; ++o) {
                const bool begins = kernels_.needs_sums[o] || address(call.buffers[o].data) % 16 == 0;  // the workspace does
                const std::uint64_t row_bytes =
                    kernels_.needs_sums[o] ? static_cast<std::uint64_t>(sizes_[o]) * size_of(compute_) : stride(o) * size_of(dtypes_[o]);
                if (begins && row_bytes % 16 == 0) bits |= std::uint64_t{1} << o;
            }
            return bits;
        }
        case Kind::error:
            return address(error);
        case Kind::table:
            return address(tables_->data());
        case Kind::constant:
            return static_cast<std::uint64_t>(argument.which);
    }
    return 0;
}

/// Outputs that are added to begin as zero, and so do those that are not written whole, and all where there are no rows.
void Pass::clear(const Call& call, void* workspace, Stream stream) const {
    for (std::size_t o = 0; o < polynomial().operands.size(); ++o) {
        const Operand& operand = polynomial().operands[o];
        const bool empty = call.rows[0] == 0 && operand.role == Role::output;
        if (!kernels_.summed[o] && !kernels_.cleared[o] && !empty) continue;
        const auto count = static_cast<std::size_t>(rows_of(o, call.rows)), size = static_cast<std::size_t>(sizes_[o]);
        if (kernels_.cleared[o] && kernels_.has_parts[o]) {
            const std::size_t bytes = size * size_of(compute_);
            device_->zero(static_cast<std::byte*>(workspace) + offset(o, call.rows), bytes, bytes,
                          static_cast<std::size_t>(chunks(call.rows).parts()), stream);
        }
        if (kernels_.needs_sums[o] && !empty) {
            const std::size_t bytes = size * size_of(compute_);
            device_->zero(static_cast<std::byte*>(workspace) + offset(o, call.rows), bytes, bytes, count, stream);
        } else {
            const auto stride = static_cast<std::size_t>(call.buffers[o].row_stride);
            const std::size_t element = size_of(dtypes_[o]);
            device_->zero(call.buffers[o].data, (stride != 0 ? stride : size) * element, size * element, count, stream);
        }
    }
}

void Pass::launch(const Call& call, void* workspace, void* error, Stream stream) const {
    clear(call, workspace, stream);
    const std::int64_t rows = call.rows[0];
    if (rows == 0) return;
    const GpuChunks all = chunks(call.rows);
    for (std::size_t s = 0; s < kernels_.stages.size(); ++s) {
        const GpuStage& stage = kernels_.stages[s];
        const auto o = static_cast<std::size_t>(std::max(0, stage.operand));
        const std::int64_t size = stage.operand < 0 ? 0 : sizes_[o];
        const LaunchShape shape =
            gpu_shape(kernels_, stage, rows, all, stream_blocks_[s], stage.operand < 0 ? 0 : rows_of(o, call.rows) * size, size);
        std::uint64_t words[most_arguments];
        const std::vector<KernelArgument>& arguments = stage.kernel.arguments;
        for (std::size_t i = 0; i < arguments.size(); ++i) words[i] = argument(arguments[i], call, workspace, error, all);
        modules_[s]->launch(shape.grid, shape.threads, shape.shared_bytes, stream, {words, arguments.size()});
    }
}

}  // namespace clebsch::gpu
