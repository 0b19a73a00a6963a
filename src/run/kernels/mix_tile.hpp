#pragma once
// The tile of a matrix product whose results stay in registers.
#include "run/kernels/mix_parts.hpp"

namespace clebsch::CLEBSCH_ISA {

/// The first `columns` numbers of the vector, none if that is negative; stored or added.
template <class T>
CLEBSCH_INLINE void write(T* to, Vector<T> value, int columns, bool store_it) {
    if (columns >= lanes_of<T>) {
        store<T>(to, store_it ? value : load<T>(to) + value);
    } else if (columns > 0) {
        store_first<T>(to, store_it ? value : load_first<T>(to, columns) + value, columns);
    }
}

/// c[r][column + n] (+)= scale * sum_k a[r][k] b[k * stride + n] for r < Rows, n < columns; columns are at most Vectors vectors, all of
/// which b has.
template <class T, int Rows, int Vectors>
CLEBSCH_INLINE void product_tile(const T* const* a, T* const* c, std::int64_t inner, const T* b, std::int64_t stride, std::int64_t column,
                                 int columns, T scale, bool store_it) {
    constexpr int lanes = lanes_of<T>;
    Vector<T> sum[Rows][Vectors] = {};
    const T* row[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) row[r] = a[r];
    for (std::int64_t k = 0; k < inner; ++k, b += stride) {
        Vector<T> right[Vectors];
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) right[v] = load<T>(b + v * lanes);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
            const Vector<T> left = broadcast<T>(row[r][k]);
#pragma GCC unroll 2
            for (int v = 0; v < Vectors; ++v) sum[r][v] += left * right[v];
        }
    }
    const Vector<T> factor = broadcast<T>(scale);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) write<T>(c[r] + column + v * lanes, factor * sum[r][v], columns - v * lanes, store_it);
}

}  // namespace clebsch::CLEBSCH_ISA
