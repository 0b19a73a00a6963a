#pragma once
// The GPU schedule of polynomials whose rows have weight matrices of their own: fully connected tensor products with weights per row, and
// all their derivatives. Every path has one matrix (an operand of every row, as input or as output), one factor along its columns (right)
// and others along its rows (left). Each matrix is read or written once a row.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// Paths of one matrix that share the factor along its columns.
struct RowsUse {
    int operand = 0, segment = 0;   ///< the factor along columns
    int first = 0, components = 0;  ///< its components among those of the product
    std::vector<int> paths;
};

/// What happens to one matrix: it is multiplied by numbers of its rows or of its columns, or is written as their product.
struct RowsProduct {
    enum class Kind : std::uint8_t { into_right, into_left, written };
    Kind kind = Kind::into_right;
    int operand = 0, segment = 0;      ///< the matrix
    std::string rows;                  ///< letters, outermost first; the column's letter follows
    std::int64_t left = 1, right = 1;  ///< rows and columns
    int components = 0;                ///< of all uses
    std::int64_t left_place = 0;       ///< of the numbers of its rows in a warp's memory
    int vector = 1, lanes = 32;        ///< numbers a lane takes at once; lanes that share a row of the matrix
    std::vector<RowsUse> uses;
};

/// The first numbers of a row of matrices.
struct RowsAsked {
    int operand = 0;
    std::int64_t numbers = 0;
};

struct RowsSchedule {
    std::vector<RowsProduct> products;
    std::vector<bool> matrix;                   ///< of every operand
    std::vector<std::int64_t> place;            ///< of every other operand's row in a warp's memory, in numbers of the compute type
    std::int64_t right_place = 0, numbers = 0;  ///< numbers of several factors along columns; all
    bool ahead = false;                         ///< the numbers of all matrices' rows are made before the first product
    std::vector<std::pair<int, int>> zero;      ///< segments of matrices that no path writes
    std::vector<RowsAsked> asked;               ///< what a row asks the second-level cache for before it looks at anything else
    int shared_bytes = 0;
    int blocks = 1;                  ///< on a multiprocessor at once: what registers a thread may have
    int spare_registers = 0;         ///< that a thread has beyond those of as many blocks as usual
    static constexpr int warps = 4;  ///< of a block, a row each
};

/// Nothing, and why, when some path is of another kind.
std::optional<RowsSchedule> schedule_rows(const GpuProblem& problem, std::string& why_not);

/// Throws Error(unsupported) when the grid would be too large.
LaunchShape rows_shape(const RowsSchedule& schedule, std::int64_t rows);

std::string explain(const RowsSchedule& schedule, const GpuProblem& problem);

}  // namespace clebsch
