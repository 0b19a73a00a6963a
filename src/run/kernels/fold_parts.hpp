#pragma once
// What the files of the fold kernels share: operands of a step with their row pointers looked up.
#include "run/kernels/fold.hpp"
#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {

/// What the next fold_rows rows of an operand occupy, where row follows row in memory. Each use of the present rows prefetches as many
/// bytes from here: a sequential read, although the rows themselves are used piece by piece. (Pieces of the next rows instead took a
/// quarter longer where pages are small.)
struct Stream {
    const char *at = nullptr, *end = nullptr;

    CLEBSCH_INLINE void advance(int bytes) {
        if (at >= end) return;
        for (int b = 0; b < bytes; b += 64) __builtin_prefetch(at + b, 0, 2);
        at += bytes;
    }
};

template <class T>
struct RowsIn {
    const T* const* row;
    std::int64_t offset;
    Stream* stream;

    CLEBSCH_INLINE const T* at(unsigned r) const { return row[r] + offset; }
};
template <class T>
struct RowsOut {
    T* const* row;
    std::int64_t offset;
    Stream* stream;

    CLEBSCH_INLINE T* at(unsigned r) const { return row[r] + offset; }
};
template <class T>
struct Factor {
    int weights;
    T scale;
    RowsIn<T> weight[fold_weights];
};

template <class T>
struct Sink {
    bool dot, overwrite;
    Factor<T> factor;
    RowsOut<T> out;
    RowsIn<T> with;
    const int* run_end;  ///< [rows]: first row after r whose output pointer differs
};

inline constexpr int most_sinks = 8;  ///< handled in one pass over z (or terms over a blend); more take several passes

template <class T>
struct Multiply {
    int rows, inputs, outputs;
    bool diagonal;
    std::int64_t channels;
    RowsIn<T> in;
    const T* matrix;  ///< [inputs][outputs][fold_rows]
    int sinks;
    Sink<T> sink[most_sinks];
};
void multiply(const Multiply<float>& task);
void multiply(const Multiply<double>& task);

/// A multiplication whose one plain sink, with at most one weight and a scale of 1, takes z.
template <class T>
struct Sum {
    const T* const* in;          ///< [rows]
    const T* const* weight;      ///< [rows]; null: none
    T* const* out;               ///< [rows]
    const int* run_end;          ///< [rows]
    const std::uint8_t* begins;  ///< [rows]: 1 where a sum begins, whatever `out` holds
    const T* matrix;             ///< [inputs][outputs][fold_rows]
    std::int64_t half;           ///< to the matrices of the second fold_rows rows
    std::int64_t column;         ///< of the matrix, in elements
    std::int64_t in_offset, weight_offset, out_offset, channels;
    int rows, inputs, outputs;
    bool diagonal;
    int pattern;     ///< of fold_patterns, -1: none
    Stream* stream;  ///< of the weights; null: nothing to ask for
};
void multiply_sum(const Sum<float>& sum);
void multiply_sum(const Sum<double>& sum);

/// Components of z that one pass computes, of `left`: few enough for registers, in sizes that irreps to l = 4 need.
inline constexpr int most_outputs = vector_registers == 32 ? 7 : 5;
constexpr int next_outputs(int left) {
    const int chunks = (left + most_outputs - 1) / most_outputs, outputs = (left + chunks - 1) / chunks;  // 9 as 5 + 4
    return outputs == 2 ? 1 : outputs == 6 ? (left == 6 ? 3 : 5) : outputs;
}

template <class T>
struct Reduce {
    int rows, left_components, right_components;
    bool diagonal;
    std::int64_t channels;
    RowsIn<T> left, right;
    Factor<T> factor;
    T* product;  ///< scratch: the product of weights where there are several, [channels]
    T* reduced;  ///< [rows][reduced_size]
};
void reduce(const Reduce<float>& task);
void reduce(const Reduce<double>& task);

/// A run of channels: `Width` whole vectors, or the first `count` lanes of one.
template <class T, int Width, bool Part = false>
struct Tile {
    static_assert(!Part || Width == 1);
    int count = 0;

    CLEBSCH_INLINE Vector<T> get(const T* p, int t) const {
        if constexpr (Part) return load_first(p, count);
        else return load(p + t * lanes_of<T>);
    }
    CLEBSCH_INLINE void put(T* p, int t, Vector<T> v) const {
        if constexpr (Part) store_first(p, v, count);
        else store(p + t * lanes_of<T>, v);
    }
};

}  // namespace clebsch::CLEBSCH_ISA
