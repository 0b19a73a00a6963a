// z = M v and what becomes of it. A chunk of up to most_outputs rows of z times a tile of channels stays in registers; the columns of M are
// a loop. Where z only goes into sums that neighbouring rows share (a receiver's), fold_sums.cpp keeps the sums themselves there.
#include "run/kernels/fold_parts.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

/// Vectors of channels per tile: enough independent sums to hide the latency of a multiply-add, few enough to stay in registers.
constexpr int tile_width(int outputs) { return outputs == 1 ? 4 : 2; }

enum class Mode {
    pair,  ///< a sink with one weight and a dot product without, scales of 1: what gradients of a path need
    sinks,
};

/// z += M[k0..k0+Outputs, :] v for one row and tile. `v` points to the row's first channel of the tile, `m` to its M[k0, 0].
template <class T, int Outputs, int Width, bool Part, bool Diagonal>
CLEBSCH_INLINE void add_product(Vector<T> (&z)[Outputs][Width], Tile<T, Width, Part> tile, const T* m, std::int64_t column, int inputs,
                                const T* v, std::int64_t channels) {
    if constexpr (Diagonal) {
        const Vector<T> mk = broadcast(*m);
#pragma GCC unroll 8
        for (int k = 0; k < Outputs; ++k, v += channels)
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) z[k][t] += mk * tile.get(v, t);
    } else {
        for (int i = 0; i < inputs; ++i, m += column, v += channels) {
            Vector<T> x[Width];
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) x[t] = tile.get(v, t);
#pragma GCC unroll 8
            for (int k = 0; k < Outputs; ++k) {
                const Vector<T> mk = broadcast(m[k * fold_rows]);
#pragma GCC unroll 8
                for (int t = 0; t < Width; ++t) z[k][t] += mk * x[t];
            }
        }
    }
}

/// Of the same row, into the first cache.
template <class T, int Width>
CLEBSCH_INLINE void ask_for_next_tile(const T* p) {
    constexpr int bytes = Width * vector_bytes;
    if constexpr (bytes >= 64)
#pragma GCC unroll 8
        for (int b = 0; b < bytes; b += 64) __builtin_prefetch(reinterpret_cast<const char*>(p) + bytes + b, 0, 3);
}

template <class T, int Width, bool Part>
CLEBSCH_INLINE void get_factor(Vector<T> (&f)[Width], const Factor<T>& factor, Tile<T, Width, Part> tile, unsigned r, std::int64_t c) {
    const Vector<T> scale = broadcast(factor.scale);
#pragma GCC unroll 8
    for (int t = 0; t < Width; ++t) f[t] = scale;
    for (int n = 0; n < factor.weights; ++n) {
        const T* w = factor.weight[n].at(r) + c;
        factor.weight[n].stream->advance(Width * vector_bytes);
#pragma GCC unroll 8
        for (int t = 0; t < Width; ++t) f[t] *= tile.get(w, t);
    }
}

template <class T, int Outputs, int Width, bool Part>
CLEBSCH_INLINE void give(const Vector<T> (&z)[Outputs][Width], const Sink<T>& sink, Tile<T, Width, Part> tile, unsigned r, int k0,
                         std::int64_t c, std::int64_t channels) {
    Vector<T> f[Width];
    get_factor(f, sink.factor, tile, r, c);
    T* out = sink.out.at(r) + c;
    if (sink.dot) {
        const T* g = sink.with.at(r) + c + k0 * channels;
        Vector<T> d[Width]{};
#pragma GCC unroll 8
        for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) d[t] += z[k][t] * tile.get(g + k * channels, t);
        if (sink.overwrite && k0 == 0) {
            sink.out.stream->advance(Width * vector_bytes);
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) tile.put(out, t, f[t] * d[t]);
        } else {
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) tile.put(out, t, tile.get(out, t) + f[t] * d[t]);
        }
    } else if (sink.overwrite) {
#pragma GCC unroll 8
        for (int k = 0; k < Outputs; ++k) {
            sink.out.stream->advance(Width * vector_bytes);
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) tile.put(out + (k0 + k) * channels, t, f[t] * z[k][t]);
        }
    } else {
#pragma GCC unroll 8
        for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) {
                T* o = out + (k0 + k) * channels;
                tile.put(o, t, tile.get(o, t) + f[t] * z[k][t]);
            }
    }
}

template <class T, Mode M, bool Diagonal, int Outputs, int Width, bool Part>
void multiply_tile(const Multiply<T>& task, Tile<T, Width, Part> tile, int k0, std::int64_t c) {
    const T* matrix = task.matrix + (Diagonal ? 0 : k0 * fold_rows);
    const unsigned rows = unsigned(task.rows);
    const int inputs = task.inputs;
    const std::int64_t channels = task.channels, column = std::int64_t(task.outputs) * fold_rows;
    RowsIn<T> in = task.in;
    in.offset += c + (Diagonal ? k0 * channels : 0);
    if constexpr (M == Mode::sinks) {
        for (unsigned r = 0; r < rows; ++r) {
            Vector<T> z[Outputs][Width]{};
            add_product<T, Outputs, Width, Part, Diagonal>(z, tile, matrix + r, column, inputs, in.at(r), channels);
            for (int s = 0; s < task.sinks; ++s) give<T, Outputs, Width, Part>(z, task.sink[s], tile, r, k0, c, channels);
        }
    } else {
        const Sink<T>&plain = task.sink[task.sink[0].dot ? 1 : 0], &dot = task.sink[task.sink[0].dot ? 0 : 1];
        RowsIn<T> with = dot.with, factor = plain.factor.weight[0];
        RowsOut<T> out = plain.out, dots = dot.out;
        with.offset += c + k0 * channels;
        factor.offset += c;
        out.offset += c + k0 * channels;
        dots.offset += c;
        const bool store_dot = dot.overwrite && k0 == 0, store_out = plain.overwrite;
        for (unsigned r = 0; r < rows; ++r) {
            Vector<T> z[Outputs][Width]{}, d[Width]{};
            add_product<T, Outputs, Width, Part, Diagonal>(z, tile, matrix + r, column, inputs, in.at(r), channels);
            const T* g = with.at(r);
#pragma GCC unroll 8
            for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
                for (int t = 0; t < Width; ++t) d[t] += z[k][t] * tile.get(g + k * channels, t);
            T* sum = dots.at(r);
            ask_for_next_tile<T, Width>(sum);
            if (store_dot) {
                dots.stream->advance(Width * vector_bytes);
#pragma GCC unroll 8
                for (int t = 0; t < Width; ++t) tile.put(sum, t, d[t]);
            } else {
#pragma GCC unroll 8
                for (int t = 0; t < Width; ++t) tile.put(sum, t, tile.get(sum, t) + d[t]);
            }
            const T* w = factor.at(r);
            factor.stream->advance(Width * vector_bytes);
            ask_for_next_tile<T, Width>(w);
            Vector<T> f[Width];
#pragma GCC unroll 8
            for (int t = 0; t < Width; ++t) f[t] = tile.get(w, t);
            T* o = out.at(r);
            if (store_out) {
                out.stream->advance(Outputs * Width * vector_bytes);
#pragma GCC unroll 8
                for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
                    for (int t = 0; t < Width; ++t) tile.put(o + k * channels, t, f[t] * z[k][t]);
            } else {
#pragma GCC unroll 8
                for (int k = 0; k < Outputs; ++k)
#pragma GCC unroll 8
                    for (int t = 0; t < Width; ++t) tile.put(o + k * channels, t, tile.get(o + k * channels, t) + f[t] * z[k][t]);
            }
        }
    }
}

template <class T, Mode M, bool Diagonal, int Outputs>
void multiply_chunk(const Multiply<T>& task, int k0) {
    constexpr int width = tile_width(Outputs), lanes = lanes_of<T>;
    std::int64_t c = 0;
    for (; c + width * lanes <= task.channels; c += width * lanes) multiply_tile<T, M, Diagonal, Outputs, width, false>(task, {}, k0, c);
    // Few channels are not worth code of their own.
    for (; c + lanes <= task.channels; c += lanes) multiply_tile<T, Mode::sinks, Diagonal, Outputs, 1, false>(task, {}, k0, c);
    if (c < task.channels) multiply_tile<T, Mode::sinks, Diagonal, Outputs, 1, true>(task, {int(task.channels - c)}, k0, c);
}

template <class T, Mode M, bool Diagonal>
void multiply_all(const Multiply<T>& task) {
    for (int k0 = 0; k0 < task.outputs;) {
        const int outputs = next_outputs(task.outputs - k0);
        if (outputs == 1) multiply_chunk<T, M, Diagonal, 1>(task, k0);
        else if (outputs == 3) multiply_chunk<T, M, Diagonal, 3>(task, k0);
        else if (outputs == 4) multiply_chunk<T, M, Diagonal, 4>(task, k0);
        else if (outputs == 5) multiply_chunk<T, M, Diagonal, 5>(task, k0);
        else if constexpr (most_outputs == 7) multiply_chunk<T, M, Diagonal, 7>(task, k0);
        k0 += outputs;
    }
}

template <class T>
void multiply_any(const Multiply<T>& task) {
    const auto is_pair = [](const Sink<T>& a, const Sink<T>& b) {
        return !a.dot && b.dot && a.factor.weights == 1 && b.factor.weights == 0 && a.factor.scale == T(1) && b.factor.scale == T(1);
    };
    if (task.sinks == 2 && (is_pair(task.sink[0], task.sink[1]) || is_pair(task.sink[1], task.sink[0]))) {
        if (task.diagonal) multiply_all<T, Mode::pair, true>(task);
        else multiply_all<T, Mode::pair, false>(task);
    } else {
        if (task.diagonal) multiply_all<T, Mode::sinks, true>(task);
        else multiply_all<T, Mode::sinks, false>(task);
    }
}

}  // namespace

void multiply(const Multiply<float>& task) { multiply_any(task); }
void multiply(const Multiply<double>& task) { multiply_any(task); }

}  // namespace clebsch::CLEBSCH_ISA
