#include "run/call.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace clebsch {
namespace {

/// `data` may lie at any address.
template <class Number>
void check_values(const Index& index, const std::byte* data, std::int64_t size, std::int64_t to_rows) {
    const auto value_at = [&](std::int64_t i) {
        Number value;
        std::memcpy(&value, data + i * static_cast<std::int64_t>(sizeof value), sizeof value);
        return std::int64_t{value};
    };
    // One pass without branches tells whether anything is wrong; a second one, only then, tells where. value + 1 as an unsigned number is
    // at most to_rows exactly for -1 <= value < to_rows.
    std::uint64_t bad = 0;
    const auto limit = static_cast<std::uint64_t>(to_rows);
    for (std::int64_t i = 0; i < size; ++i) bad |= static_cast<std::uint64_t>(static_cast<std::uint64_t>(value_at(i)) + 1 > limit);
    if (bad != 0)
        for (std::int64_t i = 0; i < size; ++i)
            if (const std::int64_t value = value_at(i); value < -1 || value >= to_rows)
                fail("index '" + index.name + "': entry " + std::to_string(i) + " is " + std::to_string(value) +
                     ", expected -1 or a row of '" + index.to + "', which has " + std::to_string(to_rows));
    if (!index.sorted) return;
    std::int64_t last = -1;
    for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t value = value_at(i);
        if (value < 0) continue;
        if (value < last)
            fail("index '" + index.name + "': declared as sorted, but entry " + std::to_string(i) + " is " + std::to_string(value) +
                 " after " + std::to_string(last));
        last = value;
    }
}

}  // namespace

Extent extent_of(std::int64_t size, const Buffer& buffer) {
    const std::size_t element = size_of(buffer.dtype);
    Extent extent;
    extent.begin = reinterpret_cast<std::uintptr_t>(buffer.data);
    extent.end = extent.begin;
    extent.row = static_cast<std::uintptr_t>(size) * element;
    extent.stride = static_cast<std::uintptr_t>(buffer.row_stride == 0 ? size : buffer.row_stride) * element;
    if (buffer.rows > 0 && size > 0) extent.end += static_cast<std::uintptr_t>(buffer.rows - 1) * extent.stride + extent.row;
    return extent;
}

bool share_memory(const Extent& a, const Extent& b) {
    if (a.begin == a.end || b.begin == b.end || a.end <= b.begin || b.end <= a.begin) return false;
    if (a.stride != b.stride) return true;
    const std::uintptr_t shift = a.begin <= b.begin ? (b.begin - a.begin) % a.stride : a.stride - (a.begin - b.begin) % a.stride;
    return shift < a.row || shift + b.row > a.stride;
}

std::vector<std::string> row_spaces(const Polynomial& polynomial) {
    std::vector<std::string> spaces{polynomial.rows};
    const auto meet = [&](const std::string& space) {
        if (std::ranges::find(spaces, space) == spaces.end()) spaces.push_back(space);
    };
    for (const Index& index : polynomial.indices) {
        meet(index.from);
        meet(index.to);
    }
    return spaces;
}

void check_index(const Index& index, const IndexBuffer& buffer, std::int64_t from_rows, std::int64_t to_rows, bool values) {
    if (buffer.size != from_rows)
        fail("index '" + index.name + "': expected " + std::to_string(from_rows) + " entries, one per row of '" + index.from + "', got " +
             std::to_string(buffer.size));
    if (buffer.type != IndexType::int32 && buffer.type != IndexType::int64)
        fail("index '" + index.name + "': expected int32 or int64, got type number " + std::to_string(static_cast<int>(buffer.type)));
    if (from_rows == 0) return;
    if (buffer.data == nullptr)
        fail("index '" + index.name + "': the data pointer is null, expected " + std::to_string(from_rows) + " entries");
    const std::size_t alignment = required_alignment(size_of(buffer.type));
    if (reinterpret_cast<std::uintptr_t>(buffer.data) % alignment != 0)
        fail("index '" + index.name + "': the address is not a multiple of " + std::to_string(alignment) + " bytes");
    if (!values) return;
    if (buffer.type == IndexType::int32)
        check_values<std::int32_t>(index, static_cast<const std::byte*>(buffer.data), buffer.size, to_rows);
    else check_values<std::int64_t>(index, static_cast<const std::byte*>(buffer.data), buffer.size, to_rows);
}

void check_buffer(const Operand& operand, std::int64_t size, const Buffer& buffer, DType dtype, std::int64_t rows) {
    const auto where = [&] { return "operand '" + operand.name + "': "; };  // made only for a message: a launch allocates nothing
    if (buffer.dtype != dtype) fail(where() + "expected " + to_text(dtype) + ", got " + to_text(buffer.dtype));
    if (buffer.rows != rows) fail(where() + "expected " + std::to_string(rows) + " rows, got " + std::to_string(buffer.rows));
    const std::int64_t stride = buffer.row_stride;
    if (stride != 0 && stride < size)
        fail(where() + "a row has " + std::to_string(size) + " numbers, got a row stride of " + std::to_string(stride) +
             (stride < 0 ? " (negative)" : ""));
    const auto element = static_cast<std::int64_t>(size_of(dtype));
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(stride == 0 ? size : stride, element, &bytes) || __builtin_mul_overflow(bytes, rows, &bytes))
        fail(where() + std::to_string(rows) + " rows with a stride of " + std::to_string(stride == 0 ? size : stride) +
             " exceed 2^63 bytes");
    if (rows == 0 || size == 0) return;
    if (buffer.data == nullptr)
        fail(where() + "the data pointer is null, expected " + std::to_string(rows) + " rows of " + std::to_string(size) + " numbers");
    const std::size_t alignment = required_alignment(size_of(dtype));
    if (reinterpret_cast<std::uintptr_t>(buffer.data) % alignment != 0)
        fail(where() + "the address is not a multiple of " + std::to_string(alignment) + " bytes");
}

void check_workspace(const Workspace& workspace, std::size_t needed, int threads) {
    if (workspace.data != nullptr && workspace.bytes >= needed) return;
    fail("workspace: expected at least " + std::to_string(needed) + " bytes for " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads") + ", got " +
         (workspace.data == nullptr ? "a null pointer" : std::to_string(workspace.bytes)));
}

std::int64_t row_bytes(const Operand& operand, const Buffer& buffer) {
    return (buffer.row_stride == 0 ? operand.size() : buffer.row_stride) * static_cast<std::int64_t>(size_of(buffer.dtype));
}

}  // namespace clebsch
