// Matrix products of the mix family. The tile of results stays in registers: mix_tile_rows x 2 vectors.
#include "run/kernels/mix_tile.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

/// Components of one row at once, a strip of Vectors vectors of columns; the first strip of a short row may read past it but never past the
/// matrix.
template <class T, int Components, int Vectors>
void strip(const T* const* a, T* const* c, std::int64_t inner, std::int64_t stride, const T* w, int columns, std::int64_t column, T scale,
           bool store_it) {
    constexpr int lanes = lanes_of<T>;
    constexpr int unroll = Components * Vectors >= 4 ? 1 : 4;  // enough sums in flight to hide the latency of an addition
    Vector<T> sum[unroll][Components][Vectors] = {};
    const std::int64_t whole = columns >= Vectors * lanes ? inner : inner - (Vectors * lanes - columns + stride - 1) / stride;
    const auto add = [&](Vector<T>(&to)[Components][Vectors], std::int64_t k) __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
            const Vector<T> weight = load<T>(w + k * stride + column + v * lanes);
#pragma GCC unroll 8
            for (int m = 0; m < Components; ++m) to[m][v] += broadcast<T>(a[m][k]) * weight;
        }
    };
    std::int64_t k = 0;
    for (; k + unroll <= whole; k += unroll)
#pragma GCC unroll 4
        for (int u = 0; u < unroll; ++u) add(sum[u], k + u);
    if constexpr (unroll > 1)
        for (; k < whole; ++k) add(sum[0], k);
    for (; k < inner; ++k)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
            const int left = columns - v * lanes;
            const T* at = w + k * stride + column + v * lanes;
            const Vector<T> weight = left >= lanes ? load<T>(at) : left > 0 ? load_first<T>(at, left) : Vector<T>{};
#pragma GCC unroll 8
            for (int m = 0; m < Components; ++m) sum[0][m][v] += broadcast<T>(a[m][k]) * weight;
        }
    const Vector<T> factor = broadcast<T>(scale);
#pragma GCC unroll 8
    for (int m = 0; m < Components; ++m)
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
            Vector<T> total = sum[0][m][v];
            for (int u = 1; u < unroll; ++u) total += sum[u][m][v];
            write<T>(c[m] + column + v * lanes, factor * total, columns - v * lanes, store_it);
        }
}

template <class T, int Components>
void strips(const T* const* a, T* const* c, std::int64_t inner, std::int64_t columns, const T* w, T scale, bool store_it) {
    constexpr int lanes = lanes_of<T>;
    std::int64_t column = 0;
    for (; columns - column > lanes; column += 2 * lanes) {
        const std::int64_t left = columns - column;
        strip<T, Components, 2>(a, c, inner, columns, w, left < 2 * lanes ? int(left) : 2 * lanes, column, scale, store_it);
    }
    if (column < columns) strip<T, Components, 1>(a, c, inner, columns, w, int(columns - column), column, scale, store_it);
}

/// sum_m left[m][p + i] right[m][s + n] for i < rows and n < columns (at most Vectors vectors; all of them if `whole`).
template <class T, int Vectors>
struct OuterSums {
    Vector<T> sum[mix_tile_rows][Vectors] = {};

    template <bool Whole>
    CLEBSCH_INLINE void add(const T* const* left, const T* const* right, std::int64_t count, std::int64_t p, std::int64_t s, int rows,
                            int columns) {
        constexpr int lanes = lanes_of<T>;
        for (std::int64_t m = 0; m < count; ++m) {
            const T* r = right[m] + s;
            Vector<T> b[Vectors];
#pragma GCC unroll 2
            for (int v = 0; v < Vectors; ++v)
                b[v] = Whole || v + 1 < Vectors ? load<T>(r + v * lanes) : load_first<T>(r + v * lanes, columns - v * lanes);
            const T* l = left[m] + p;
#pragma GCC unroll 8
            for (int i = 0; i < mix_tile_rows; ++i) {
                const Vector<T> value = broadcast<T>(Whole || i < rows ? l[i] : T(0));
#pragma GCC unroll 2
                for (int v = 0; v < Vectors; ++v) sum[i][v] += value * b[v];
            }
        }
    }
};

/// One tile of the result, `to`: w[p][s], or w[s][p] if Turned: then `left` and `right` have changed places.
template <class T, int Vectors, bool Turned>
void outer_tile(const T* const* left, const T* const* right, std::int64_t count, std::int64_t p, std::int64_t s, int rows, int columns,
                T* to, std::int64_t stride, T scale, bool store_it) {
    constexpr int lanes = lanes_of<T>;
    OuterSums<T, Vectors> tile;
    if (rows == mix_tile_rows && columns == Vectors * lanes) tile.template add<true>(left, right, count, p, s, rows, columns);
    else tile.template add<false>(left, right, count, p, s, rows, columns);
    const Vector<T> factor = broadcast<T>(scale);
    if constexpr (Turned) {
        T turned[mix_tile_rows][Vectors * lanes];
#pragma GCC unroll 8
        for (int i = 0; i < mix_tile_rows; ++i)
#pragma GCC unroll 2
            for (int v = 0; v < Vectors; ++v) store<T>(turned[i] + v * lanes, factor * tile.sum[i][v]);
        for (int n = 0; n < columns; ++n)
            for (int i = 0; i < rows; ++i) {
                T& number = to[n * stride + i];
                number = store_it ? turned[i][n] : number + turned[i][n];
            }
    } else {
#pragma GCC unroll 8
        for (int i = 0; i < mix_tile_rows; ++i) {
            if (i >= rows) break;
#pragma GCC unroll 2
            for (int v = 0; v < Vectors; ++v) write<T>(to + i * stride + v * lanes, factor * tile.sum[i][v], columns - v * lanes, store_it);
        }
    }
}

/// All tiles of a result of `rows` x `columns`.
template <class T, bool Turned>
void outer_tiles(const T* const* left, const T* const* right, std::int64_t count, std::int64_t rows, std::int64_t columns, T* w,
                 std::int64_t stride, T scale, bool store_it) {
    constexpr int lanes = lanes_of<T>;
    for (std::int64_t p = 0; p < rows; p += mix_tile_rows) {
        const int now = rows - p < mix_tile_rows ? int(rows - p) : mix_tile_rows;
        for (std::int64_t s = 0; s < columns; s += 2 * lanes) {
            const std::int64_t left_over = columns - s;
            const int here = left_over < 2 * lanes ? int(left_over) : 2 * lanes;
            T* to = Turned ? w + s * stride + p : w + p * stride + s;
            if (here > lanes) outer_tile<T, 2, Turned>(left, right, count, p, s, now, here, to, stride, scale, store_it);
            else outer_tile<T, 1, Turned>(left, right, count, p, s, now, here, to, stride, scale, store_it);
        }
    }
}

/// The same for rows of w shorter than a vector, stored, and few summands: a vector reaches into the row after, which comes next.
template <class T, int Count>
void store_short_outer(const T* const* left, const T* const* right, std::int64_t rows, int columns, T* w, T scale) {
    Vector<T> b[Count];
    const T* l[Count];
#pragma GCC unroll 4
    for (int m = 0; m < Count; ++m) {
        b[m] = broadcast<T>(scale) * load_first<T>(right[m], columns);
        l[m] = left[m];
    }
    const auto row = [&](std::int64_t p) __attribute__((always_inline)) {
        Vector<T> sum = broadcast<T>(l[0][p]) * b[0];
#pragma GCC unroll 4
        for (int m = 1; m < Count; ++m) sum += broadcast<T>(l[m][p]) * b[m];
        return sum;
    };
    const std::int64_t beyond = (lanes_of<T> - columns + columns - 1) / columns;  // rows after this one that a vector reaches
    std::int64_t p = 0;
#pragma GCC unroll 4
    for (; p < rows - beyond; ++p) store<T>(w + p * columns, row(p));
    for (; p < rows; ++p) store_first<T>(w + p * columns, row(p), columns);
}

/// c[m][n] (+)= scale * sum_k w[n][k] a[m][k] for rows of w no longer than a vector, as many at a time as a vector has lanes.
template <class T>
void multiply_short_rows(const T* const* a, T* const* c, int components, int inner, std::int64_t columns, const T* w, T scale,
                         bool store_it) {
    constexpr int lanes = lanes_of<T>;
    for (int m = 0; m < components; ++m) {
        const Vector<T> by = broadcast<T>(scale) * load_first<T>(a[m], inner);
        for (std::int64_t column = 0; column < columns; column += lanes) {
            const int now = columns - column < lanes ? int(columns - column) : lanes;
            const T* row = w + column * inner;
            Vector<T> sum[lanes];
            if (now == lanes) {
#pragma GCC unroll 16
                for (int n = 0; n < lanes; ++n) sum[n] = load_first<T>(row + n * inner, inner) * by;
            } else {
#pragma GCC unroll 16
                for (int n = 0; n < lanes; ++n) sum[n] = n < now ? load_first<T>(row + n * inner, inner) * by : Vector<T>{};
            }
            write<T>(c[m] + column, sum_lanes<T>(sum), now, store_it);
        }
    }
}

}  // namespace

template <class T>
void multiply_rows(const T** a, T** c, std::int64_t rows, std::int64_t inner, std::int64_t columns, const T* packed, T scale, bool store,
                   T* absorb, Pace& pace) {
    constexpr int lanes = lanes_of<T>, width = mix_tile_columns<T>;
    const std::int64_t padded = (rows + mix_tile_rows - 1) / mix_tile_rows * mix_tile_rows;
    for (std::int64_t m = rows; m < padded; ++m) a[m] = a[rows - 1];
    for (std::int64_t column = 0; column < columns; column += width, packed += inner * width) {
        const int left = columns - column < width ? int(columns - column) : width;
        for (std::int64_t m = 0; m < padded; m += mix_tile_rows) {
            if (m + mix_tile_rows > rows)
                for (std::int64_t p = rows; p < padded; ++p) c[p] = absorb - column;
            if (column == 0) pace.turn(mix_tile_rows);
            if (left > lanes) product_tile<T, mix_tile_rows, 2>(a + m, c + m, inner, packed, width, column, left, scale, store);
            else product_tile<T, mix_tile_rows, 1>(a + m, c + m, inner, packed, width, column, left, scale, store);
        }
    }
}

template <class T>
void pack_panels(const T* w, std::int64_t inner, std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride, T* packed) {
    constexpr int width = mix_tile_columns<T>, lanes = lanes_of<T>;
    for (std::int64_t column = 0; column < columns; column += width, packed += inner * width) {
        const T* from = w + column * column_stride;
        const int here = columns - column < width ? int(columns - column) : width;
        std::int64_t k = 0;
        if (here == width && column_stride == 1) {
            for (; k < inner; ++k)
                for (int n = 0; n < width; n += lanes) store<T>(packed + k * width + n, load<T>(from + k * row_stride + n));
        } else if (here == width && row_stride == 1) {
            for (; k + lanes <= inner; k += lanes)
                for (int n = 0; n < width; n += lanes) {
                    Vector<T> square[lanes];
#pragma GCC unroll 16
                    for (int l = 0; l < lanes; ++l) square[l] = load<T>(from + (n + l) * column_stride + k);
                    transpose_square<T>(square);
#pragma GCC unroll 16
                    for (int l = 0; l < lanes; ++l) store<T>(packed + (k + l) * width + n, square[l]);
                }
        }
        for (; k < inner; ++k)
            for (int n = 0; n < width; ++n) packed[k * width + n] = n < here ? from[k * row_stride + n * column_stride] : T(0);
    }
}

template <class T>
void multiply_row(const T* const* a, T* const* c, int components, std::int64_t inner, std::int64_t columns, const T* w, T scale,
                  bool store_it) {
    for (; components > 0;) {
        const int now = components < 5 ? components : components == 5 ? 3 : 4;
        if (now == 1) strips<T, 1>(a, c, inner, columns, w, scale, store_it);
        else if (now == 2) strips<T, 2>(a, c, inner, columns, w, scale, store_it);
        else if (now == 3) strips<T, 3>(a, c, inner, columns, w, scale, store_it);
        else strips<T, 4>(a, c, inner, columns, w, scale, store_it);
        a += now, c += now, components -= now;
    }
}

template <class T>
void multiply_row_transposed(const T* const* a, T* const* c, int components, std::int64_t inner, std::int64_t columns, const T* w, T scale,
                             bool store_it) {
    constexpr int lanes = lanes_of<T>;
    if (inner <= lanes) return multiply_short_rows<T>(a, c, components, int(inner), columns, w, scale, store_it);
    for (std::int64_t column = 0; column < columns; column += lanes) {
        const int now = columns - column < lanes ? int(columns - column) : lanes;
        for (int m = 0; m < components; ++m) {
            Vector<T> sum[lanes] = {};
            for (int n = 0; n < now; ++n) {
                const T* row = w + (column + n) * inner;
                std::int64_t k = 0;
                for (; k + lanes <= inner; k += lanes) sum[n] += load<T>(row + k) * load<T>(a[m] + k);
                if (k < inner) sum[n] += load_first<T>(row + k, int(inner - k)) * load_first<T>(a[m] + k, int(inner - k));
            }
            write<T>(c[m] + column, broadcast<T>(scale) * sum_lanes<T>(sum), now, store_it);
        }
    }
}

template <class T>
void add_outer(const T* const* left, const T* const* right, std::int64_t count, std::int64_t rows, std::int64_t columns, T* w, T scale,
               bool store_it) {
    if (columns < lanes_of<T> && store_it && count <= 4) {
        if (count == 1) return store_short_outer<T, 1>(left, right, rows, int(columns), w, scale);
        if (count == 2) return store_short_outer<T, 2>(left, right, rows, int(columns), w, scale);
        if (count == 3) return store_short_outer<T, 3>(left, right, rows, int(columns), w, scale);
        return store_short_outer<T, 4>(left, right, rows, int(columns), w, scale);
    }
    // Vectors go along the longer side.
    if (columns < lanes_of<T> && rows > columns) outer_tiles<T, true>(right, left, count, columns, rows, w, columns, scale, store_it);
    else outer_tiles<T, false>(left, right, count, rows, columns, w, columns, scale, store_it);
}

#define CLEBSCH_INSTANTIATE(T)                                                                                                \
    template void multiply_rows<T>(const T**, T**, std::int64_t, std::int64_t, std::int64_t, const T*, T, bool, T*, Pace&);   \
    template void pack_panels<T>(const T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*);                       \
    template void multiply_row<T>(const T* const*, T* const*, int, std::int64_t, std::int64_t, const T*, T, bool);            \
    template void multiply_row_transposed<T>(const T* const*, T* const*, int, std::int64_t, std::int64_t, const T*, T, bool); \
    template void add_outer<T>(const T* const*, const T* const*, std::int64_t, std::int64_t, std::int64_t, T*, T, bool);
CLEBSCH_INSTANTIATE(float)
CLEBSCH_INSTANTIATE(double)

}  // namespace clebsch::CLEBSCH_ISA
