// Matrix products of the mix family with matrices that rows gather: rows of a block that meet in one matrix share its way through the
// caches.
#include "run/kernels/mix_tile.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

/// Rows of one matrix, columns in whole vectors.
template <class T, int Rows, int Vectors>
CLEBSCH_INLINE void group_tile(const T* const* a, T* const* c, std::int64_t inner, std::int64_t stride, const T* w, std::int64_t column,
                               T scale, bool store_it) {
    product_tile<T, Rows, Vectors>(a, c, inner, w + column, stride, column, Vectors * lanes_of<T>, scale, store_it);
}

template <class T, int Vectors>
void group_tiles(const T* const* a, T* const* c, std::int64_t rows, std::int64_t inner, std::int64_t stride, const T* w,
                 std::int64_t column, T scale, bool store_it) {
    for (std::int64_t r = 0; r < rows;) {
        const std::int64_t left = rows - r;
        if (left >= 6) group_tile<T, 6, Vectors>(a + r, c + r, inner, stride, w, column, scale, store_it), r += 6;
        else if (left >= 4) group_tile<T, 4, Vectors>(a + r, c + r, inner, stride, w, column, scale, store_it), r += 4;
        else if (left == 3) group_tile<T, 3, Vectors>(a + r, c + r, inner, stride, w, column, scale, store_it), r += 3;
        else if (left == 2) group_tile<T, 2, Vectors>(a + r, c + r, inner, stride, w, column, scale, store_it), r += 2;
        else group_tile<T, 1, Vectors>(a + r, c + r, inner, stride, w, column, scale, store_it), r += 1;
    }
}

inline constexpr int dot_targets = 4;
/// Rows at once: with the targets a multiple of the lanes, and enough sums in flight.
template <class T>
inline constexpr int dot_rows = lanes_of<T> / dot_targets < 2 ? 2 : lanes_of<T> / dot_targets;

/// c[r][target + n] for dot_rows rows and dot_targets rows of w; what is beyond `rows` and `targets` repeats the last one and is not
/// written.
template <class T>
CLEBSCH_INLINE void dot_tile(const T* const* a, T* const* c, int rows, std::int64_t inner, const T* w, std::int64_t target, int targets,
                             T scale, bool store_it) {
    constexpr int lanes = lanes_of<T>, count = dot_rows<T> * dot_targets;
    const T *left[dot_rows<T>], *right[dot_targets];
    for (int r = 0; r < dot_rows<T>; ++r) left[r] = a[r < rows ? r : rows - 1];
    for (int n = 0; n < dot_targets; ++n) right[n] = w + (target + (n < targets ? n : targets - 1)) * inner;
    Vector<T> sum[count] = {};
    const auto add = [&](auto&& number) {
        Vector<T> b[dot_targets];
#pragma GCC unroll 4
        for (int n = 0; n < dot_targets; ++n) b[n] = number(right[n]);
#pragma GCC unroll 4
        for (int r = 0; r < dot_rows<T>; ++r) {
            const Vector<T> value = number(left[r]);
#pragma GCC unroll 4
            for (int n = 0; n < dot_targets; ++n) sum[r * dot_targets + n] += value * b[n];
        }
    };
    std::int64_t k = 0;
    for (; k + lanes <= inner; k += lanes) add([&](const T* p) { return load<T>(p + k); });
    if (k < inner) add([&](const T* p) { return load_first<T>(p + k, int(inner - k)); });
    T result[count];
#pragma GCC unroll 16
    for (int s = 0; s < count; s += lanes) store<T>(result + s, broadcast<T>(scale) * sum_lanes<T>(sum + s));
    for (int r = 0; r < rows; ++r)
        for (int n = 0; n < targets; ++n) {
            T& to = c[r][target + n];
            to = store_it ? result[r * dot_targets + n] : to + result[r * dot_targets + n];
        }
}

}  // namespace

template <class T>
void multiply_group(const T* const* a, T* const* c, std::int64_t rows, std::int64_t inner, std::int64_t columns, const T* w, T scale,
                    bool store_it) {
    constexpr int lanes = lanes_of<T>;
    std::int64_t column = 0;
    for (; column + 2 * lanes <= columns; column += 2 * lanes) group_tiles<T, 2>(a, c, rows, inner, columns, w, column, scale, store_it);
    for (; column + lanes <= columns; column += lanes) group_tiles<T, 1>(a, c, rows, inner, columns, w, column, scale, store_it);
    const int left = int(columns - column);
    for (std::int64_t r = 0; r < rows && left > 0; ++r) {
        Vector<T> sum{};
        for (std::int64_t k = 0; k < inner; ++k) sum += broadcast<T>(a[r][k]) * load_first<T>(w + k * columns + column, left);
        sum = broadcast<T>(scale) * sum;
        store_first<T>(c[r] + column, store_it ? sum : load_first<T>(c[r] + column, left) + sum, left);
    }
}

template <class T>
void multiply_group_transposed(const T* const* a, T* const* c, std::int64_t rows, std::int64_t inner, std::int64_t columns, const T* w,
                               T scale, bool store_it) {
    for (std::int64_t column = 0; column < columns; column += dot_targets) {
        const int targets = columns - column < dot_targets ? int(columns - column) : dot_targets;
        for (std::int64_t r = 0; r < rows; r += dot_rows<T>) {
            const int now = rows - r < dot_rows<T> ? int(rows - r) : dot_rows<T>;
            dot_tile<T>(a + r, c + r, now, inner, w, column, targets, scale, store_it);
        }
    }
}

void group_rows(int rows, RowGroups& groups) {
    constexpr int buckets = RowGroups::buckets;
    for (int b = 0; b < buckets; ++b) groups.bucket[b] = -1;
    groups.count = 0;
    for (int r = 0; r < rows; ++r) {
        const auto number = reinterpret_cast<std::uintptr_t>(groups.matrix[r]);
        int& first = groups.bucket[((number >> 6) * 0x9E3779B97F4A7C15U >> 32) % buckets];
        int g = first;
        while (g >= 0 && groups.matrix[groups.first[g]] != groups.matrix[r]) g = groups.next_group[g];
        groups.next[r] = -1;
        if (g < 0) {
            g = groups.count++;
            groups.first[g] = r;
            groups.next_group[g] = first;
            first = g;
        } else {
            groups.next[groups.last[g]] = r;
        }
        groups.last[g] = r;
    }
}

#define CLEBSCH_INSTANTIATE(T)                                                                                                \
    template void multiply_group<T>(const T* const*, T* const*, std::int64_t, std::int64_t, std::int64_t, const T*, T, bool); \
    template void multiply_group_transposed<T>(const T* const*, T* const*, std::int64_t, std::int64_t, std::int64_t, const T*, T, bool);
CLEBSCH_INSTANTIATE(float)
CLEBSCH_INSTANTIATE(double)

}  // namespace clebsch::CLEBSCH_ISA
