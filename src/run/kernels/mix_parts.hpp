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

/// Where the rows of an operand are: wherever pointers say, or one after another in a buffer.
template <class T>
struct RowSource {
    const T* const* pointers = nullptr;
    const T* base = nullptr;
    std::int64_t stride = 0, offset = 0;
    CLEBSCH_INLINE const T* start(int row) const { return pointers != nullptr ? pointers[row] : base + row * stride; }  ///< without offset
    CLEBSCH_INLINE const T* operator()(int row) const { return start(row) + offset; }
};
/// Matrices of a narrow product and what they multiply: P[k] = sum over v < vectors of coefficient[v] number(row)[number_offset[v]]
/// from(row)[offset[v] + k], or, `interleaved`, from(row)[offset[0] + k * vectors + v].
template <class T>
struct NarrowPart {
    RowSource<T> from, number, weight;
    std::int64_t offset[mix_narrow_vectors], number_offset[mix_narrow_vectors];  ///< in bytes; those of `from` and `number` are zero
    T coefficient[mix_narrow_vectors];
    std::int64_t whole;  ///< sources in whole vectors
    int left;            ///< the others
    int vectors;
    bool interleaved;
};
inline constexpr int narrow_parts = 16;

/// to(row)[n] (+)= sum over parts and k of P(row)[k] W(row)[k][n] for n < targets, at most mix_narrow_targets; in the order of rows. W lies
/// sources x targets, or, `packed`, as pack_narrow left it, or has one target. Changes the parts.
template <class T>
void multiply_narrow(NarrowPart<T>* part, int parts, bool packed, const RowSource<T>& to, int rows, int targets, bool store, Pace& pace);

/// W[k][n] = w[k * row_stride + n * column_stride] as vectors along k, zero-padded: of as many targets as a vector has lanes at a time
/// those of one vector of sources after another.
template <class T>
void pack_narrow(const T* w, std::int64_t sources, std::int64_t targets, std::int64_t row_stride, std::int64_t column_stride, T* packed);

/// Rows by pointers, `offset` further on.
template <class T>
struct RowTable {
    const T* const* pointers;
    std::int64_t offset;
    CLEBSCH_INLINE const T* operator()(int row) const { return pointers[row] + offset; }
};
/// Of sums over channels k of t(row)[k] (x(row)[i][k] y(row)[i], summed over i), t = coefficient * factor(row)[0] * weights: the gradients
///     x_gradient(row)[i][k] = y(row)[i] t[k],    weights_gradient(row)[k] (+)= coefficient * factor(row)[0] * sum_i x(row)[i][k] y(row)[i]
/// x and its gradient have component i at i * channels, or, `interleaved`, at i of a channel's components.
template <class T>
struct GradientPart {
    RowTable<T> x, x_gradient, y, factor;  ///< factor: without pointers one
    RowSource<T> weights, weights_gradient;
    T coefficient;
    std::int64_t channels;  ///< as many as a vector has lanes, or more
    int components;         ///< 1, 3 or 5
    bool interleaved;
    bool store;  ///< the gradient of the weights
};

inline constexpr int gradient_parts = 8, gradient_rows = 8;  ///< at a time
inline constexpr int gradient_sums = 8 * gradient_rows;      ///< vectors
/// Vectors per row of sums.
constexpr int gradient_width(int components) { return components == 1 ? 1 : components == 3 ? 4 : 8; }

/// Gradients for rows [first, first + count), at most gradient_rows, and sums[(row - first) * gradient_width + i] (+)= x(row)[i][k]
/// t(row)[k] for all k, spread over the lanes. A turn for every row.
template <class T>
void gradients_of_part(const GradientPart<T>& part, int first, int count, Vector<T>* sums, bool store, Pace& pace);

/// to(row)[i] (+)= the lanes of those sums.
template <class T>
void add_sums(const Vector<T>* sums, int components, const RowTable<T>& to, int first, int count, bool store);

/// w[p][s] (+)= scale * sum_m left[m][p] right[m][s]; w row-major rows x columns.
template <class T>
void add_outer(const T* const* left, const T* const* right, std::int64_t count, std::int64_t rows, std::int64_t columns, T* w, T scale,
               bool store);

}  // namespace clebsch::CLEBSCH_ISA
