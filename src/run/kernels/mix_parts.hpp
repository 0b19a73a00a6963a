#pragma once
// What the loops of the mix family share: matrix products over rows given by pointers.
#include "run/kernels/ahead.hpp"
#include "run/kernels/mix.hpp"
#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {

inline constexpr int mix_tile_rows = vector_registers == 32 ? 8 : 6;
template <class T>
inline constexpr int mix_tile_columns = 2 * lanes_of<T>;

/// c[m][n] (+)= scale * sum_k a[m][k] B[k][n] for m < rows, n < columns; `packed`: B in panels (pack_panels). Pointers c[m] differ from one
/// another. Arrays a and c have room up to the next multiple of mix_tile_rows, which is overwritten; `absorb` takes what the padding rows
/// give (mix_tile_columns). A turn for every row.
template <class T>
void multiply_rows(const T** a, T** c, std::int64_t rows, std::int64_t inner, std::int64_t columns, const T* packed, T scale, bool store,
                   T* absorb, Pace& pace);

/// B[k][n] = w[k * row_stride + n * column_stride] in panels of mix_tile_columns, zero-padded.
template <class T>
void pack_panels(const T* w, std::int64_t inner, std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride, T* packed);

/// c[m][n] (+)= scale * sum_k a[m][k] w[k][n]; w row-major; m < components.
template <class T>
void multiply_row(const T* const* a, T* const* c, int components, std::int64_t inner, std::int64_t columns, const T* w, T scale,
                  bool store);

/// c[m][n] (+)= scale * sum_k w[n][k] a[m][k]; w row-major.
template <class T>
void multiply_row_transposed(const T* const* a, T* const* c, int components, std::int64_t inner, std::int64_t columns, const T* w, T scale,
                             bool store);

/// The same two with one matrix for several rows, each with one component or more: it passes through the caches once.
template <class T>
void multiply_group(const T* const* a, T* const* c, std::int64_t rows, std::int64_t inner, std::int64_t columns, const T* w, T scale,
                    bool store);
template <class T>
void multiply_group_transposed(const T* const* a, T* const* c, std::int64_t rows, std::int64_t inner, std::int64_t columns, const T* w,
                               T scale, bool store);

/// Rows of a block by the matrix that they gather: lists in the order of their first rows, which does not depend on addresses.
struct RowGroups {
    static constexpr int buckets = 64;
    const void** matrix;  ///< [rows]
    int* bucket;          ///< [buckets]: a group, or -1
    int *first, *last;    ///< [groups]: rows
    int* next_group;      ///< [groups]: of the same bucket, or -1
    int* next;            ///< [rows]: of the same group, or -1
    int count;            ///< groups
};
/// Fills everything but `matrix`.
void group_rows(int rows, RowGroups& groups);

/// w[p][s] (+)= scale * sum_m left[m][p] right[m][s]; w row-major rows x columns.
template <class T>
void add_outer(const T* const* left, const T* const* right, std::int64_t count, std::int64_t rows, std::int64_t columns, T* w, T scale,
               bool store);

}  // namespace clebsch::CLEBSCH_ISA
