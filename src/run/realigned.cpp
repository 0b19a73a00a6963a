#include "run/realigned.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace clebsch {
namespace {

bool at_multiple(const void* data, std::size_t size) { return reinterpret_cast<std::uintptr_t>(data) % size == 0; }
bool is_aligned(const Buffer& buffer) { return at_multiple(buffer.data, size_of(buffer.dtype)); }
bool is_aligned(const IndexBuffer& buffer) { return at_multiple(buffer.data, size_of(buffer.type)); }

/// Copies rows of `bytes` bytes between arrays whose rows are so many bytes apart.
void copy_rows(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride, std::int64_t rows,
               std::int64_t bytes) {
    for (std::int64_t row = 0; row < rows && bytes > 0; ++row)
        std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<std::size_t>(bytes));
}

std::int64_t packed_bytes(const Operand& operand, const Buffer& buffer) {
    return operand.size() * static_cast<std::int64_t>(size_of(buffer.dtype));
}

}  // namespace

bool is_aligned(const Call& call) {
    return std::ranges::all_of(call.buffers, [](const Buffer& buffer) { return is_aligned(buffer); }) &&
           std::ranges::all_of(call.indices, [](const IndexBuffer& buffer) { return is_aligned(buffer); });
}

RealignedCall::RealignedCall(std::span<const Operand> operands, const Call& call)
    : operands_(operands),
      given_(call),
      buffers_(call.buffers.begin(), call.buffers.end()),
      indices_(call.indices.begin(), call.indices.end()) {
    for (std::size_t o = 0; o < buffers_.size(); ++o) {
        const Buffer& given = given_.buffers[o];
        if (is_aligned(given)) continue;
        const std::int64_t bytes = packed_bytes(operands_[o], given);
        buffers_[o].data = allocate(static_cast<std::size_t>(given.rows * bytes));
        buffers_[o].row_stride = 0;
        if (operands_[o].role == Role::input)
            copy_rows(static_cast<std::byte*>(buffers_[o].data), bytes, static_cast<const std::byte*>(given.data),
                      row_bytes(operands_[o], given), given.rows, bytes);
    }
    for (IndexBuffer& index : indices_) {
        if (is_aligned(index)) continue;
        const std::size_t bytes = static_cast<std::size_t>(index.size) * size_of(index.type);
        std::byte* copy = allocate(bytes);
        if (bytes > 0) std::memcpy(copy, index.data, bytes);
        index.data = copy;
    }
}

std::byte* RealignedCall::allocate(std::size_t bytes) {
    // As new[] of bytes: memory for any number starts where any number may.
    memory_.push_back(std::make_unique<std::byte[]>(std::max<std::size_t>(1, bytes)));
    return memory_.back().get();
}

Call RealignedCall::call() const {
    Call result = given_;
    result.buffers = buffers_;
    result.indices = indices_;
    return result;
}

void RealignedCall::store_outputs() const {
    for (std::size_t o = 0; o < buffers_.size(); ++o) {
        const Buffer &given = given_.buffers[o], &copy = buffers_[o];
        if (copy.data == given.data || operands_[o].role != Role::output) continue;
        const std::int64_t bytes = packed_bytes(operands_[o], given);
        copy_rows(static_cast<std::byte*>(given.data), row_bytes(operands_[o], given), static_cast<const std::byte*>(copy.data), bytes,
                  given.rows, bytes);
    }
}

}  // namespace clebsch
