#pragma once
// What one launch of a polynomial gets: arrays, index arrays and the number of rows of every space.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"
#include "run/buffers.hpp"

namespace clebsch {

/// Row spaces of a polynomial: its iteration space, then the `from` and `to` of its indices, each when first met, in the order of the
/// indices. This is the order of `Call::rows`. An iteration space without a name ("") has one row.
std::vector<std::string> row_spaces(const Polynomial& polynomial);

/// Borrowed, alive during the launch. Outputs are overwritten, every row of them. An output may share no memory with any other buffer.
struct Call {
    std::span<const Buffer> buffers;       ///< one per operand, in their order; `rows` of its space (1 if shared)
    std::span<const IndexBuffer> indices;  ///< one per index, in their order; one entry per row of `from`
    std::span<const std::int64_t> rows;    ///< one per space, in the order of row_spaces()
    bool indices_checked = false;          ///< the caller has checked the values (check_index), so that many launches share one look
};

/// Memory for a launch, any alignment; nothing in it survives the launch.
struct Workspace {
    void* data = nullptr;
    std::size_t bytes = 0;
};

/// Throws Error naming the index: size other than `from_rows`, null data, a value outside [-1, to_rows), a decreasing value if it is
/// sorted. `values`: whether to look at them.
void check_index(const Index& index, const IndexBuffer& buffer, std::int64_t from_rows, std::int64_t to_rows, bool values = true);

/// Throws Error naming the operand: dtype other than planned, rows other than its space has, null data, a row stride shorter than a row, an
/// address that is no multiple of required_alignment, an extent beyond 2^63 bytes. `size`: numbers of a row, for which the operand would
/// have to add up its segments.
void check_buffer(const Operand& operand, std::int64_t size, const Buffer& buffer, DType dtype, std::int64_t rows);

/// Throws Error when the workspace is null or smaller than the `needed` bytes of a launch by so many threads.
void check_workspace(const Workspace& workspace, std::size_t needed, int threads);

/// Where the rows of a buffer lie: the first byte and one past the last, bytes from row to row and of a row.
struct Extent {
    std::uintptr_t begin = 0, end = 0, stride = 0, row = 0;
};
/// `size`: numbers of a row.
Extent extent_of(std::int64_t size, const Buffer& buffer);

/// Whether the rows of two buffers have a byte in common. Columns of one array (the same stride, apart within a row) have none.
bool share_memory(const Extent& a, const Extent& b);

/// Bytes from one row to the next.
std::int64_t row_bytes(const Operand& operand, const Buffer& buffer);

}  // namespace clebsch
