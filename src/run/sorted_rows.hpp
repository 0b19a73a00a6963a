#pragma once
// Rows in the order of where an index leads: what operations in the order of an index (describe/ordered) take.
#include <cstdint>
#include <vector>

#include "run/buffers.hpp"

namespace clebsch {

struct SortedRows {
    std::vector<std::int64_t> rows;     ///< which row is at each place; equal targets as they come
    std::vector<std::int64_t> targets;  ///< where it leads, not decreasing; masked rows (-1) last
};

/// Of an array in the processor's memory. Throws Error as check_index does, for values outside [-1, target_rows), too.
SortedRows sorted_rows(const IndexBuffer& index, std::int64_t target_rows);

}  // namespace clebsch
