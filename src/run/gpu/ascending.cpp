#include "run/gpu/ascending.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "emit/order.hpp"
#include "emit/text.hpp"
#include "run/gpu/table_kernel.hpp"

namespace clebsch::gpu {
namespace {

/// AscendingArguments of skeletons/ascending.cuh.
enum Word : std::size_t { address, wide, entries, index_rows, outputs, first_output };

std::uint64_t word(const void* pointer) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)); }

/// And whether it was compiled for this very architecture.
std::pair<std::shared_ptr<const Module>, bool> loaded(const Device& device) {
    try {
        return {load_kernels(device, {AscendingCheck::source()}).front(), true};
    } catch (const KernelMissing&) {
        if (!table_image_missing().empty()) throw;
        return {table_module(device, AscendingCheck::source().name), false};
    }
}

}  // namespace

AscendingCheck::AscendingCheck(const Device& device, std::vector<Output> outputs, std::vector<Sorted> sorted)
    : outputs_(std::move(outputs)), sorted_(std::move(sorted)) {
    std::tie(module_, early_) = loaded(device);
}

KernelSource AscendingCheck::source() { return source_of(emit_ascending()); }

void AscendingCheck::launch(const Call& call, Stream stream) const {
    // Few, so that those that wait take little from a kernel still running; of 1,024 threads: each that meets a row below an earlier one
    // writes all outputs.
    constexpr std::int64_t most_blocks = 33;
    std::uint64_t words[first_output + 4 * ascending_outputs] = {};
    for (const auto& [i, space] : sorted_) {
        const IndexBuffer& index = call.indices[i];
        if (index.size == 0) continue;
        words[address] = word(index.data);
        words[wide] = index.type == IndexType::int64 ? 1 : 0;
        words[entries] = static_cast<std::uint64_t>(index.size);
        words[index_rows] = static_cast<std::uint64_t>(call.rows[space]);
        for (std::size_t begin = 0; begin < outputs_.size(); begin += ascending_outputs) {
            words[outputs] = std::min<std::uint64_t>(outputs_.size() - begin, ascending_outputs);
            for (std::size_t o = 0; o < words[outputs]; ++o) {
                const auto& [operand, row_size] = outputs_[begin + o];
                const Buffer& buffer = call.buffers[operand];
                const auto pairs = static_cast<std::int64_t>(size_of(buffer.dtype) / 2);  // of bytes
                std::uint64_t* const own = words + first_output + 4 * o;
                own[0] = word(buffer.data);
                own[1] = static_cast<std::uint64_t>((buffer.row_stride != 0 ? buffer.row_stride : row_size) * pairs);
                own[2] = static_cast<std::uint64_t>(row_size * pairs);
                own[3] = static_cast<std::uint64_t>(buffer.rows);
            }
            const std::array<std::int64_t, 2> grid = {std::min((index.size + ascending_threads - 1) / ascending_threads, most_blocks), 1};
            if (early_) module_->launch_early(grid, ascending_threads, 0, stream, words);
            else module_->launch(grid, ascending_threads, 0, stream, words);
        }
    }
}

}  // namespace clebsch::gpu
