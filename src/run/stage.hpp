#pragma once
// Rows as they are stored and rows as kernels want them (ir_mul, compute type), and the way from one to the other.
#include <cstdint>
#include <vector>

#include "describe/polynomial.hpp"
#include "run/buffers.hpp"
#include "schedule/cpu_target.hpp"

namespace clebsch {

/// Transposes a segment, see run/kernels/transpose.hpp.
template <class T>
using TransposeFunction = void (*)(const T* from, T* to, std::int64_t channels, int components);
template <class T>
struct TransposeFunctions {
    TransposeFunction<T> apart = nullptr, together = nullptr;
};

/// How a row is stored. Neighbouring segments that need no transposition are one piece.
struct RowForm {
    struct Piece {
        std::int64_t offset = 0, channels = 0;
        int components = 1;  ///< more than one: stored channel by channel, to be transposed
    };
    DType dtype = DType::float32;
    std::int64_t size = 0;  ///< numbers
    std::vector<Piece> pieces;
    bool transposed = false;  ///< whether any piece is
    TransposeFunctions<float> of_float;
    TransposeFunctions<double> of_double;

    /// Whether kernels of this compute type can work on the stored row itself.
    bool plain(DType compute) const { return dtype == compute && !transposed; }
};
RowForm row_form(const Operand& operand, DType dtype, InstructionSet isa);

/// T is float or double. `stored` is aligned to its dtype.
template <class T>
void load_row(const RowForm& form, const void* stored, T* row);
template <class T>
void store_row(const RowForm& form, const T* row, void* stored);

}  // namespace clebsch
