#include "run/gpu/row_order.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.hpp"
#include "emit/order.hpp"
#include "emit/text.hpp"
#include "run/gpu/pass.hpp"

namespace clebsch::gpu {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::int64_t values_of_digit = 256;
constexpr std::size_t most_indices = 64;

std::uint64_t address(const void* pointer) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)); }
std::int64_t tiles(std::int64_t rows) { return (rows + order_tile - 1) / order_tile; }
/// One of the four arrays, which take turns: targets and rows, sorted by an even and by an odd number of digits.
std::size_t array_bytes(std::int64_t rows) { return (static_cast<std::size_t>(rows) * 8 + alignment - 1) / alignment * alignment; }
std::byte* array(void* memory, std::int64_t rows, std::size_t number) {
    return static_cast<std::byte*>(memory) + number * array_bytes(rows);
}

}  // namespace

RowOrder::RowOrder(const Device& device, std::size_t indices) : modules_(load_kernels(device, sources(indices))) {}

std::vector<KernelSource> RowOrder::sources(std::size_t indices) {
    if (indices > most_indices)
        throw Error(ErrorKind::unsupported, "sums through a chain of " + std::to_string(indices) + " indices in a fixed order on a GPU");
    std::vector<KernelSource> list = {source_of(emit_order_targets(static_cast<int>(indices)))};
    for (const char* step : {"count", "scan", "place"}) list.push_back(source_of(emit_order_step(step), order_preamble()));
    return list;
}

std::size_t RowOrder::bytes(std::int64_t rows) {
    std::size_t bytes = 0;
    for (int sorted = 0; sorted < 4; ++sorted) add_workspace(bytes, rows, 1, 8);
    add_workspace(bytes, tiles(rows) + 1, values_of_digit, 8);
    return bytes;
}

RowOrder::Result RowOrder::result(void* memory, std::int64_t rows) {
    return {.rows = {array(memory, rows, 1), IndexType::int64, rows}, .targets = {array(memory, rows, 0), IndexType::int64, rows}};
}

void RowOrder::launch(std::span<const IndexBuffer> chain, std::span<const std::int64_t> targets, std::int64_t rows, void* memory,
                      void* error, Stream stream) const {
    if (rows == 0) return;
    const auto masked = static_cast<std::uint64_t>(targets.back());
    const int digits = std::max(1, (static_cast<int>(std::bit_width(masked)) + 7) / 8);
    std::size_t from = digits % 2 == 0 ? 0 : 2;  // so that the last digit leaves the result in the first two arrays
    std::array<std::uint64_t, 3 * most_indices + 4> words;
    std::size_t count = 0;
    for (std::size_t i = 0; i < chain.size(); ++i)
        for (const std::uint64_t word : {address(chain[i].data), static_cast<std::uint64_t>(targets[i]),
                                         chain[i].type == IndexType::int64 ? std::uint64_t{1} : std::uint64_t{0}})
            words[count++] = word;
    for (const std::uint64_t word :
         {static_cast<std::uint64_t>(rows), address(error), address(array(memory, rows, from)), address(array(memory, rows, from + 1))})
        words[count++] = word;
    constexpr std::int64_t most_blocks = 4096;
    modules_[0]->launch({std::min((rows + order_threads - 1) / order_threads, most_blocks), 1}, order_threads, 0, stream,
                        {words.data(), count});
    const auto blocks = static_cast<std::uint64_t>(tiles(rows));
    for (int digit = 0; digit < digits; ++digit, from = 2 - from) {
        const std::uint64_t arguments[] = {address(array(memory, rows, from)),
                                           address(array(memory, rows, from + 1)),
                                           address(array(memory, rows, 2 - from)),
                                           address(array(memory, rows, 3 - from)),
                                           address(array(memory, rows, 4)),
                                           static_cast<std::uint64_t>(rows),
                                           blocks,
                                           static_cast<std::uint64_t>(8 * digit),
                                           masked,
                                           digit + 1 == digits ? std::uint64_t{1} : std::uint64_t{0}};
        const auto grid = static_cast<std::int64_t>(blocks);
        modules_[1]->launch({grid, 1}, order_threads, 0, stream, arguments);
        modules_[2]->launch({values_of_digit, 1}, order_threads, 0, stream, arguments);
        modules_[3]->launch({grid, 1}, order_threads, 0, stream, arguments);
    }
}

}  // namespace clebsch::gpu
