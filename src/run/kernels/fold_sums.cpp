// z = M v of rows whose products all go into one sum, such as a receiver's: the sums stay in registers while the rows pass by. This is what
// a convolution does forward, so that its loop over rows is as short as it can be: a row costs two pointers, one prefetch and its
// arithmetic.
#include "run/kernels/fold_parts.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

/// Where the weight of a row enters: nowhere, in v, or in z.
enum class Weighting { none, before, after };

/// The same vector. Compilers load one again for every use that may lie in memory; loads are what short products have most of.
template <class V>
CLEBSCH_INLINE V in_register(V v) {
#if defined(CLEBSCH_ISA_AVX512)
    asm("" : "+v"(v));
#elif defined(CLEBSCH_ISA_AVX2)
    asm("" : "+x"(v));
#endif
    return v;
}

/// Entries of a matrix, or of some of its outputs, that are multiplied, and how many outputs the matrix has, as far as it is known.
struct Entries {
    std::uint64_t bits = ~std::uint64_t{0};  ///< bit i * outputs + k
    int matrix_outputs = 0;                  ///< 0: any number
    constexpr std::uint64_t of_column(int i, int outputs) const { return matrix_outputs == 0 ? bits : bits >> i * outputs; }
};
inline constexpr Entries all_entries = {};

/// z += the entries of one column of M times f * v, or v; bit k of `entries`.
template <class T, bool Weighted, bool Keep, int Outputs, int Width, bool Part>
CLEBSCH_INLINE void add_column(Vector<T> (&z)[Outputs][Width], Tile<T, Width, Part> tile, const T* m, const T* v,
                               const Vector<T> (&f)[Width], std::uint64_t entries, T* kept) {
    Vector<T> x[Width];
#pragma GCC unroll 8
    for (int t = 0; t < Width; ++t) {
        if constexpr (Weighted) x[t] = f[t] * tile.get(v, t);
        else x[t] = in_register(tile.get(v, t));
        if constexpr (Keep) store(kept + t * lanes_of<T>, x[t]);
    }
#pragma GCC unroll 8
    for (int k = 0; k < Outputs; ++k) {
        if ((entries >> k & 1) == 0) continue;
        const Vector<T> mk = broadcast(m[k * fold_rows]);
#pragma GCC unroll 8
        for (int t = 0; t < Width; ++t) z[k][t] += mk * x[t];
    }
}

/// z += M v. `v` points to the row's first channel of the tile.
template <class T, bool Weighted, bool Keep, int Outputs, int Inputs, Entries E, int Width, bool Part>
CLEBSCH_INLINE void add_columns(Vector<T> (&z)[Outputs][Width], Tile<T, Width, Part> tile, const T* m, const T* v,
                                const Vector<T> (&f)[Width], const Sum<T>& task, T* kept) {
    if constexpr (Inputs > 0) {
        const std::int64_t column = E.matrix_outputs > 0 ? E.matrix_outputs * fold_rows : task.column;
#pragma GCC unroll 8
        for (int i = 0; i < Inputs; ++i, m += column, v += task.channels, kept += Keep ? Width * lanes_of<T> : 0)
            add_column<T, Weighted, Keep, Outputs, Width, Part>(z, tile, m, v, f, E.of_column(i, Outputs), kept);
    } else {
        for (int i = 0; i < task.inputs; ++i, m += task.column, v += task.channels)
            add_column<T, Weighted, false, Outputs, Width, Part>(z, tile, m, v, f, all_entries.bits, kept);
    }
}

/// sums += one row's product. `v` and `w` point to the row's first channel of the tile.
template <class T, Weighting W, bool Keep, bool Diagonal, int Outputs, int Inputs, Entries E, int Width, bool Part>
CLEBSCH_INLINE void add_row(Vector<T> (&sums)[Outputs][Width], Tile<T, Width, Part> tile, const T* m, const T* v, const T* w,
                            const Sum<T>& task, T* kept) {
    Vector<T> f[Width]{};
    const auto get_weight = [&] {
#pragma GCC unroll 8
        for (int t = 0; t < Width; ++t) f[t] = tile.get(w, t);
    };
    if constexpr (Diagonal) {
        const Vector<T> mk = broadcast(*m);
#pragma GCC unroll 8
        for (int t = 0; t < Width; ++t) {
            f[t] = mk;
            if constexpr (W != Weighting::none) f[t] *= tile.get(w, t);
        }
#pragma GCC unroll 8
        for (int k = 0; k < Outputs; ++k, v += task.channels)
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) sums[k][t] += f[t] * tile.get(v, t);
    } else if constexpr (W == Weighting::after) {
        Vector<T> z[Outputs][Width]{};
        add_columns<T, false, false, Outputs, Inputs, E, Width, Part>(z, tile, m, v, f, task, kept);
        get_weight();
#pragma GCC unroll 8
        for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) sums[k][t] += f[t] * z[k][t];
    } else {
        if constexpr (W == Weighting::before) get_weight();
        add_columns<T, W == Weighting::before, Keep, Outputs, Inputs, E, Width, Part>(sums, tile, m, v, f, task, kept);
    }
}

template <class T, Weighting W, bool Diagonal, int Outputs, int Inputs, Entries E, int Width, bool Part, bool Keep = false>
CLEBSCH_INLINE void sum_tile(const Sum<T>& task, Tile<T, Width, Part> tile, std::int64_t c, T* kept = nullptr) {
    // Each row asks for as much of the next rows' weights as it uses of its own, and for its own of the next tile into the first cache.
    constexpr int bytes = Width * vector_bytes;
    const bool asks = W != Weighting::none && task.stream != nullptr && task.stream->end - task.stream->at >= task.rows * bytes;
    const char* ahead = asks ? task.stream->at : reinterpret_cast<const char*>(task.matrix);
    const std::int64_t step = asks ? bytes : 0;
    if (asks) task.stream->at += task.rows * bytes;
    for (int r = 0; r < task.rows;) {
        const int end = task.run_end[r];
        T* out = task.out[r] + task.out_offset + c;
        Vector<T> sums[Outputs][Width]{};
        if (task.begins[r] == 0)
#pragma GCC unroll 8
            for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
                for (int t = 0; t < Width; ++t) sums[k][t] = tile.get(out + k * task.channels, t);
        while (r < end) {
            const T* m = task.matrix + (r & (fold_rows - 1)) + (r < fold_rows ? 0 : task.half);
            const int stop = r < fold_rows && end > fold_rows ? fold_rows : end;
            for (; r < stop; ++r, ++m) {
                const T* w = nullptr;
                if constexpr (W != Weighting::none) {
                    w = task.weight[r] + task.weight_offset + c;
#pragma GCC unroll 8
                    for (int b = 0; b < bytes; b += 64) {
                        __builtin_prefetch(ahead + b, 0, 2);
                        if constexpr (bytes >= 64) __builtin_prefetch(reinterpret_cast<const char*>(w) + bytes + b, 0, 3);
                    }
                    ahead += step;
                }
                add_row<T, W, Keep, Diagonal, Outputs, Inputs, E, Width, Part>(sums, tile, m, task.in[r] + task.in_offset + c, w, task,
                                                                               kept);
                if constexpr (Keep) kept += Inputs * Width * lanes_of<T>;
            }
        }
#pragma GCC unroll 8
        for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) tile.put(out + k * task.channels, t, sums[k][t]);
    }
}

/// Some outputs' sums of a tile with weighted v of all rows, [rows][inputs][channels of the tile].
template <class T, int Outputs, int Inputs, Entries E, int Width>
CLEBSCH_INLINE void sum_kept(const Sum<T>& task, const T* kept, std::int64_t c) {
    constexpr int channels = Width * lanes_of<T>;
    constexpr Tile<T, Width> tile;
    const std::int64_t column = E.matrix_outputs > 0 ? E.matrix_outputs * fold_rows : task.column;
    for (int r = 0; r < task.rows;) {
        const int end = task.run_end[r];
        T* out = task.out[r] + task.out_offset + c;
        // Those of even and of odd columns, as few chains of additions would not hide their latency.
        Vector<T> sums[2][Outputs][Width]{};
        if (task.begins[r] == 0)
#pragma GCC unroll 8
            for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
                for (int t = 0; t < Width; ++t) sums[0][k][t] = tile.get(out + k * task.channels, t);
        while (r < end) {
            const T* m = task.matrix + (r & (fold_rows - 1)) + (r < fold_rows ? 0 : task.half);
            const int stop = r < fold_rows && end > fold_rows ? fold_rows : end;
            for (; r < stop; ++r, ++m, kept += Inputs * channels) {
#pragma GCC unroll 8
                for (int i = 0; i < Inputs; ++i)
                    add_column<T, false, false, Outputs, Width, false>(sums[i % 2], tile, m + i * column, kept + i * channels, {},
                                                                       E.of_column(i, Outputs), nullptr);
            }
        }
#pragma GCC unroll 8
        for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) tile.put(out + k * task.channels, t, sums[0][k][t] + sums[1][k][t]);
    }
}

/// Two chunks of outputs, of which the second one finds v weighted. Full tiles only: returns where they end.
template <class T, int First, int Second, int Inputs, Entries FirstEntries, Entries SecondEntries, int Width>
[[gnu::noinline]] std::int64_t sum_tiles_twice(const Sum<T>& first, const Sum<T>& second) {
    constexpr int channels = Width * lanes_of<T>;
    alignas(64) T kept[sum_rows * Inputs * channels];
    std::int64_t c = 0;
    for (; c + channels <= first.channels; c += channels) {
        sum_tile<T, Weighting::before, false, First, Inputs, FirstEntries, Width, false, true>(first, {}, c, kept);
        sum_kept<T, Second, Inputs, SecondEntries, Width>(second, kept, c);
    }
    return c;
}

/// Vectors of channels per tile: enough independent sums to hide the latency of a multiply-add, few enough to stay in registers.
constexpr int tile_width(int outputs) { return outputs == 1 ? 4 : 2; }

template <class T, Weighting W, bool Diagonal, int Outputs, int Inputs, Entries E, int Width>
[[gnu::noinline]] std::int64_t sum_tiles(const Sum<T>& task, std::int64_t c) {
    constexpr int channels = Width * lanes_of<T>;
    for (; c + channels <= task.channels; c += channels) sum_tile<T, W, Diagonal, Outputs, Inputs, E, Width, false>(task, {}, c);
    return c;
}
template <class T, Weighting W, bool Diagonal, int Outputs>
[[gnu::noinline]] void sum_rest(const Sum<T>& task, std::int64_t c) {
    for (; c < task.channels; c += lanes_of<T>) {
        const std::int64_t left = task.channels - c;
        sum_tile<T, W, Diagonal, Outputs, 0, all_entries, 1, true>(task, {left < lanes_of<T> ? int(left) : lanes_of<T>}, c);
    }
}

/// What full tiles leave.
template <class T, Weighting W, bool Diagonal, int Outputs>
void sum_end(const Sum<T>& task, std::int64_t c) {
    if (c == task.channels) return;
    if constexpr (tile_width(Outputs) > 2) c = sum_tiles<T, W, Diagonal, Outputs, 0, all_entries, 2>(task, c);
    // One whole vector is 2 to 7 % faster without a mask, which is worth code of its own for weighted sums in the usual dtype only.
    if constexpr (vector_bytes < 32 || (sizeof(T) == 4 && W != Weighting::none))
        c = sum_tiles<T, W, Diagonal, Outputs, 0, all_entries, 1>(task, c);
    if (c < task.channels) sum_rest<T, W, Diagonal, Outputs>(task, c);
}

template <class T, Weighting W, bool Diagonal, int Outputs, int Inputs, Entries E = all_entries>
void sum_chunk(const Sum<T>& task) {
    sum_end<T, W, Diagonal, Outputs>(task, sum_tiles<T, W, Diagonal, Outputs, Inputs, E, tile_width(Outputs)>(task, 0));
}

/// The numbers of components that irreps to l = 3 have are worth loops of known length where vectors are wide.
template <class T, Weighting W, int Outputs>
void sum_inputs(const Sum<T>& task) {
    if constexpr (vector_bytes < 32) sum_chunk<T, W, false, Outputs, 0>(task);
    else if (task.inputs == 1) sum_chunk<T, W, false, Outputs, Outputs == 3 ? 0 : 1>(task);
    else if (task.inputs == 3) sum_chunk<T, W, false, Outputs, 3>(task);
    else if (task.inputs == 5) sum_chunk<T, W, false, Outputs, 5>(task);
    else if (task.inputs == 7) sum_chunk<T, W, false, Outputs, 7>(task);
    else sum_chunk<T, W, false, Outputs, 0>(task);
}

/// The weight enters where that costs less; where it makes no difference in z, which keeps the chain of additions to a sum short, if z and
/// the sums fit into registers together.
template <class T, int Outputs>
void sum_outputs(const Sum<T>& task) {
    if (task.diagonal && task.weight != nullptr) sum_chunk<T, Weighting::before, true, Outputs, 0>(task);
    else if (task.diagonal) sum_chunk<T, Weighting::none, true, Outputs, 0>(task);
    else if (task.weight == nullptr) sum_chunk<T, Weighting::none, false, Outputs, 0>(task);
    else if constexpr (Outputs > 3) sum_inputs<T, Weighting::before, Outputs>(task);
    else if (task.inputs == 1) sum_chunk<T, Weighting::before, false, Outputs, 1>(task);
    else sum_inputs<T, Weighting::after, Outputs>(task);
}

/// From the chunk of outputs just done to the next one.
template <class T>
CLEBSCH_INLINE void advance(Sum<T>& task, int outputs) {
    task.stream = nullptr;  // the next rows' weights are asked for once
    task.out_offset += outputs * task.channels;
    if (task.diagonal) task.in_offset += outputs * task.channels;
    else task.matrix += outputs * fold_rows;
}

/// Of outputs first .. first + outputs - 1.
[[maybe_unused]] consteval Entries entries_of(FoldPattern pattern, int first, int outputs) {
    Entries result{0, pattern.outputs};
    for (int i = 0; i < pattern.inputs; ++i)
        result.bits |= (pattern.entries >> (i * pattern.outputs + first) & ((std::uint64_t{1} << outputs) - 1)) << i * outputs;
    return result;
}

/// All outputs in two chunks.
template <class T, int First, int Second, int Inputs, Entries FirstEntries, Entries SecondEntries>
void sum_twice(const Sum<T>& task) {
    Sum<T> second = task;
    advance(second, First);
    const std::int64_t c = sum_tiles_twice<T, First, Second, Inputs, FirstEntries, SecondEntries, 2>(task, second);
    sum_end<T, Weighting::before, false, First>(task, c);
    sum_end<T, Weighting::after, false, Second>(second, c);
}

/// Skips the zeros of a pattern, where tiles of channels are full.
template <class T, int P>
void sum_pattern(const Sum<T>& task) {
    constexpr FoldPattern pattern = fold_patterns[P];
    constexpr int first = next_outputs(pattern.outputs), second = pattern.outputs - first;
    static_assert(second <= most_outputs);
    if constexpr (second > 0)
        sum_twice<T, first, second, pattern.inputs, entries_of(pattern, 0, first), entries_of(pattern, first, second)>(task);
    else
        sum_chunk<T, (first > 3 ? Weighting::before : Weighting::after), false, first, pattern.inputs, entries_of(pattern, 0, first)>(task);
}
template <class T, int... P>
CLEBSCH_INLINE void sum_patterns(const Sum<T>& task, Lanes<P...>) {
    static constexpr void (*of_pattern[])(const Sum<T>&) = {sum_pattern<T, P>...};
    of_pattern[task.pattern](task);
}
/// It is worth the size of its code where vectors are wide, and in the usual dtype.
constexpr bool worth_patterns(int element_size) { return vector_bytes >= 32 && element_size == 4; }

template <class T>
void multiply_any(const Sum<T>& sum) {
    if constexpr (worth_patterns(sizeof(T)))
        if (sum.pattern >= 0 && sum.weight != nullptr) return sum_patterns<T>(sum, typename LanesUpTo<fold_pattern_count>::type{});
    if constexpr (worth_patterns(sizeof(T)) && most_outputs < 7)
        if (sum.outputs == 7 && sum.inputs == 1 && !sum.diagonal && sum.weight != nullptr)
            return sum_twice<T, 4, 3, 1, all_entries, all_entries>(sum);
    Sum<T> rest;
    const Sum<T>* task = &sum;
    for (int left = sum.outputs; left > 0;) {
        const int outputs = next_outputs(left);
        if (outputs == 1) sum_outputs<T, 1>(*task);
        else if (outputs == 3) sum_outputs<T, 3>(*task);
        else if (outputs == 4) sum_outputs<T, 4>(*task);
        else if (outputs == 5) sum_outputs<T, 5>(*task);
        else if constexpr (most_outputs == 7) sum_outputs<T, 7>(*task);
        left -= outputs;
        if (left == 0) break;
        if (task == &sum) rest = sum;
        advance(rest, outputs);
        task = &rest;
    }
}

}  // namespace

bool skips_zeros(int element_size) { return worth_patterns(element_size); }
void multiply_sum(const Sum<float>& sum) { multiply_any(sum); }
void multiply_sum(const Sum<double>& sum) { multiply_any(sum); }

}  // namespace clebsch::CLEBSCH_ISA
