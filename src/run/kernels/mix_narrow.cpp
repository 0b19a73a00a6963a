// Products of the mix family with few columns: vectors go along what is summed, so that no lane is empty, and lanes are added up once for
// all matrices of a sum.
#include "run/kernels/mix_interleaved.hpp"
#include "run/kernels/mix_tile.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

template <class T>
CLEBSCH_INLINE const T* after(const T* from, std::int64_t bytes) {
    return reinterpret_cast<const T*>(reinterpret_cast<const char*>(from) + bytes);
}

#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
template <class T, int... L>
CLEBSCH_INLINE Vector<T> next_lanes(Vector<T> value, Lanes<L...>) {
    return __builtin_shufflevector(value, value, ((L + 1) % lanes_of<T>)...);
}
template <class T, int Components, int... L>
CLEBSCH_INLINE Vector<T> in_order(Vector<T> value, Lanes<L...>) {
    return __builtin_shufflevector(value, value, (Components * L % lanes_of<T>)...);
}
/// Sums over the components of as many channels as a vector has lanes, whose numbers follow one another: a channel's sum at the lane of its
/// component M. The number of components is odd, so that those of different channels are at different lanes.
template <class T, int Components, int M = 0>
CLEBSCH_INLINE Vector<T> sum_components(const Vector<T>* numbers, const Vector<T>* factor) {
    const Vector<T> term = factor[M] * component<T, Components, M>(numbers, numbers[0]);
    if constexpr (M + 1 == Components) return term;
    else return term + next_lanes<T>(sum_components<T, Components, M + 1>(numbers, factor), typename LanesUpTo<lanes_of<T>>::type{});
}

#endif

/// P of as many channels as a vector has lanes, whose numbers follow one another.
template <class T, int Components>
CLEBSCH_INLINE Vector<T> interleaved_product(const T* from, const Vector<T>* factor) {
    typename LanesUpTo<lanes_of<T>>::type all;
#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
    Vector<T> numbers[Components];
#pragma GCC unroll 8
    for (int v = 0; v < Components; ++v) numbers[v] = load<T>(from + v * lanes_of<T>);
    return in_order<T, Components>(sum_components<T, Components>(numbers, factor), all);
#else
    Vector<T> value = factor[0] * component<T, Components>(from, all);
#pragma GCC unroll 8
    for (int v = 1; v < Components; ++v) value += factor[v] * component<T, Components>(from + v, all);
    return value;
#endif
}

constexpr int product_channels = 64;  ///< of a product that is kept
template <class T, int Vectors, bool Interleaved>
CLEBSCH_INLINE void make_product(const NarrowPart<T>& part, int row, std::int64_t first, int channels, T* product) {
    constexpr int lanes = lanes_of<T>, step = Interleaved ? Vectors : 1;
    const T *from = part.from.start(row) + first * step, *const number = part.number.start(row);
    Vector<T> factor[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) factor[v] = broadcast<T>(part.coefficient[v] * *after(number, part.number_offset[v]));
    for (; channels > 0; channels -= lanes, from += step * lanes, product += lanes) {
        Vector<T> value;
        if constexpr (Interleaved) {
            const T* group = after(from, part.offset[0]);
            T last[Vectors * lanes];
            if (channels < lanes) {
                for (int v = 0; v < Vectors * lanes; v += lanes) {
                    const int left = channels * Vectors - v;
                    store<T>(last + v, load_first<T>(group + v, left < 0 ? 0 : left < lanes ? left : lanes));
                }
                group = last;
            }
            value = interleaved_product<T, Vectors>(group, factor);
        } else {
            const auto numbers = [&](int v) {
                const T* at = after(from, part.offset[v]);
                return channels >= lanes ? load<T>(at) : load_first<T>(at, channels);
            };
            value = factor[0] * numbers(0);
#pragma GCC unroll 8
            for (int v = 1; v < Vectors; ++v) value += factor[v] * numbers(v);
        }
        store<T>(product, value);
    }
}
/// P of a row for some channels from the first on, at most product_channels, and zeros to the end of a vector; where code of its own is too
/// much.
template <class T>
[[gnu::noinline]] void make_product(const NarrowPart<T>& part, int row, std::int64_t first, int channels, T* product) {
    if (part.vectors == 3 && part.interleaved) make_product<T, 3, true>(part, row, first, channels, product);
    else if (part.interleaved) make_product<T, 5, true>(part, row, first, channels, product);
    else if (part.vectors == 3) make_product<T, 3, false>(part, row, first, channels, product);
    else make_product<T, 5, false>(part, row, first, channels, product);
}

/// sum[n] += the part of one row.
template <class T, int Targets, int Vectors, bool Interleaved = false>
CLEBSCH_INLINE void add_part(const NarrowPart<T>& part, int row, Vector<T>* sum) {
    constexpr int lanes = lanes_of<T>, step = Interleaved ? Vectors * lanes : lanes, offsets = Interleaved ? 1 : Vectors;
    const T *from = part.from.start(row), *const number = part.number.start(row), *w = part.weight(row);
    std::int64_t offset[offsets];
    Vector<T> factor[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < offsets; ++v) offset[v] = part.offset[v];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) factor[v] = broadcast<T>(part.coefficient[v] * *after(number, part.number_offset[v]));
    const auto product = [&](const auto& numbers) {
        Vector<T> value = factor[0] * numbers(after(from, offset[0]));
#pragma GCC unroll 8
        for (int v = 1; v < Vectors; ++v) value += factor[v] * numbers(after(from, offset[v]));
        return value;
    };
    for (const T* const whole = from + part.whole * (Interleaved ? Vectors : 1); from != whole; from += step, w += Targets * lanes) {
        Vector<T> value;
        if constexpr (Interleaved) value = interleaved_product<T, Vectors>(after(from, offset[0]), factor);
        else value = product([](const T* at) { return load<T>(at); });
#pragma GCC unroll 8
        for (int n = 0; n < Targets; ++n) sum[n] += value * load<T>(w + n * lanes);
    }
    if (part.left == 0) return;
    Vector<T> value;
    if constexpr (Interleaved) {
        T made[lanes];
        make_product<T>(part, row, part.whole, part.left, made);
        value = load<T>(made);
    } else {
        value = product([&](const T* at) { return load_first<T>(at, part.left); });
    }
#pragma GCC unroll 8
    for (int n = 0; n < Targets; ++n) sum[n] += value * (Targets > 1 ? load<T>(w + n * lanes) : load_first<T>(w, part.left));
}

/// The same from a product that is kept.
template <class T, int Targets>
CLEBSCH_INLINE void add_made_part(const NarrowPart<T>& part, int row, Vector<T>* sum) {
    constexpr int lanes = lanes_of<T>;
    const std::int64_t sources = part.whole + part.left;
    const T* w = part.weight(row);
    for (std::int64_t first = 0; first < sources; first += product_channels) {
        T made[product_channels];
        const int now = sources - first < product_channels ? int(sources - first) : product_channels;
        make_product<T>(part, row, first, now, made);
        for (int k = 0; k < now; k += lanes, w += Targets * lanes) {
            const Vector<T> value = load<T>(made + k);
#pragma GCC unroll 8
            for (int n = 0; n < Targets; ++n)
                sum[n] += value * (Targets > 1 || now - k >= lanes ? load<T>(w + n * lanes) : load_first<T>(w, now - k));
        }
    }
}

template <class T, int Targets>
CLEBSCH_INLINE void add_interleaved(const NarrowPart<T>& part, int row, Vector<T>* sum) {
    if constexpr (sizeof(T) > 4) add_made_part<T, Targets>(part, row, sum);
    else if (part.vectors == 3) add_part<T, Targets, 3, true>(part, row, sum);
    else add_part<T, Targets, 5, true>(part, row, sum);
}

/// Targets [first, first + Targets); lanes of `Targets` sums of as many rows as fit into a vector are added up together.
template <class T, int Targets>
void narrow_rows(const NarrowPart<T>* parts, int count, const RowSource<T>& to, int rows, int first, int targets, bool store_it,
                 Pace& pace) {
    constexpr int lanes = lanes_of<T>, width = Targets == 6 ? 8 : Targets, together = lanes / width;
    const NarrowPart<T>* const end = parts + count;
    for (int r = 0; r < rows; r += together) {
        const int now = rows - r < together ? rows - r : together;
        Vector<T> sums[lanes] = {};
        for (int j = 0; j < now; ++j) {
            pace.turn();
            Vector<T> sum[Targets] = {};
            for (const NarrowPart<T>* part = parts; part != end; ++part) {
                if (part->vectors == 1) add_part<T, Targets, 1>(*part, r + j, sum);
                else if (part->interleaved) add_interleaved<T, Targets>(*part, r + j, sum);
                else if (part->vectors == 3) add_part<T, Targets, 3>(*part, r + j, sum);
                else add_part<T, Targets, 5>(*part, r + j, sum);
            }
#pragma GCC unroll 8
            for (int n = 0; n < Targets; ++n) sums[j * width + n] = sum[n];
        }
        const Vector<T> result = sum_lanes<T>(sums);
        if constexpr (together == 1) {
            write<T>(const_cast<T*>(to(r)) + first, result, targets, store_it);
        } else {
            T number[lanes];
            store<T>(number, result);
            for (int j = 0; j < now; ++j) {
                T* at = const_cast<T*>(to(r + j)) + first;
                for (int n = 0; n < targets; ++n) at[n] = store_it ? number[j * width + n] : at[n] + number[j * width + n];
            }
        }
    }
}

/// Targets vectors of a matrix as it lies: as many sources as a vector has lanes.
template <class T, int Targets, int V = 0>
CLEBSCH_INLINE void add_flat(Vector<T>* sum, Vector<T> value, const T* w) {
    constexpr int lanes = lanes_of<T>;
    if constexpr (V < Targets) {
        sum[V] += repeated<T, Targets, V * lanes>(value, typename LanesUpTo<lanes>::type{}) * load<T>(w + V * lanes);
        add_flat<T, Targets, V + 1>(sum, value, w);
    }
}

/// Matrices as they lie, a source's targets side by side: lane l of sum v belongs to target (v * lanes + l) % Targets.
template <class T, int Targets>
void narrow_flat(const NarrowPart<T>* parts, int count, const RowSource<T>& to, int rows, bool store_it, Pace& pace) {
    constexpr int lanes = lanes_of<T>;
    const NarrowPart<T>* const end = parts + count;
    for (int r = 0; r < rows; ++r) {
        pace.turn();
        Vector<T> sum[Targets] = {};
        T rest[Targets + lanes] = {};  // of sources beyond whole vectors
        for (const NarrowPart<T>* part = parts; part != end; ++part) {
            const std::int64_t sources = part->whole + part->left;
            const T* w = part->weight(r);
            for (std::int64_t first = 0, now = sources; first < sources; first += now) {
                T made[product_channels], factor = 1;
                const T* from = made;
                if (part->vectors > 1) {
                    now = sources - first < product_channels ? sources - first : product_channels;
                    make_product<T>(*part, r, first, int(now), made);
                } else {
                    from = after(part->from.start(r), part->offset[0]);
                    factor = part->coefficient[0] * *after(part->number.start(r), part->number_offset[0]);
                }
                const T* const end_of_all = from + now;
                for (; end_of_all - from >= lanes; from += lanes, w += Targets * lanes)
                    add_flat<T, Targets>(sum, broadcast<T>(factor) * load<T>(from), w);
                for (; from != end_of_all; ++from, w += Targets)
                    for (int n = 0; n < Targets; ++n) rest[n] += factor * *from * w[n];
            }
        }
        T flat[(Targets + 1) * lanes];
#pragma GCC unroll 8
        for (int v = 0; v < Targets; ++v) store<T>(flat + v * lanes, sum[v]);
        store<T>(flat + Targets * lanes, Vector<T>{});
        for (int n = 0; n < Targets; n += lanes) {
            Vector<T> total = load<T>(rest + n);
#pragma GCC unroll 16
            for (int l = 0; l < lanes; ++l) total += load<T>(flat + l * Targets + n);
            write<T>(const_cast<T*>(to(r)) + n, total, Targets - n, store_it);
        }
    }
}

/// The least number of sums that there is a loop for, with `most` for the largest.
CLEBSCH_INLINE int loop_width(int targets, int most) { return targets == 1 ? 1 : targets > 4 ? 6 : most < 4 ? 2 : 4; }

}  // namespace

template <class T>
void multiply_narrow(NarrowPart<T>* part, int parts, bool packed, const RowSource<T>& to, int rows, int targets, bool store_it,
                     Pace& pace) {
    constexpr int lanes = lanes_of<T>, most = lanes < mix_narrow_targets ? lanes : mix_narrow_targets;
    if (!packed && targets > 1) {
        if (targets == 2) return narrow_flat<T, 2>(part, parts, to, rows, store_it, pace);
        if (targets == 3) return narrow_flat<T, 3>(part, parts, to, rows, store_it, pace);
        if (targets == 4) return narrow_flat<T, 4>(part, parts, to, rows, store_it, pace);
        if (targets == 5) return narrow_flat<T, 5>(part, parts, to, rows, store_it, pace);
        return narrow_flat<T, 6>(part, parts, to, rows, store_it, pace);
    }
    for (int first = 0; first < targets; first += most) {
        const int now = targets - first < most ? targets - first : most, width = loop_width(now, most);
        if (width == 1) narrow_rows<T, 1>(part, parts, to, rows, first, now, store_it, pace);
        if constexpr (most == 2)
            if (width == 2) narrow_rows<T, 2>(part, parts, to, rows, first, now, store_it, pace);
        if constexpr (most >= 4)
            if (width == 4) narrow_rows<T, 4>(part, parts, to, rows, first, now, store_it, pace);
        if constexpr (most >= 6)
            if (width == 6) narrow_rows<T, 6>(part, parts, to, rows, first, now, store_it, pace);
        for (int p = 0; p < parts; ++p) part[p].weight.offset += now * (part[p].whole + (part[p].left > 0 ? lanes : 0));
    }
}

template <class T>
void pack_narrow(const T* w, std::int64_t sources, std::int64_t targets, std::int64_t row_stride, std::int64_t column_stride, T* packed) {
    constexpr int lanes = lanes_of<T>, most = lanes < mix_narrow_targets ? lanes : mix_narrow_targets;
    for (std::int64_t first = 0; first < targets; first += most) {
        const std::int64_t now = targets - first < most ? targets - first : most, width = loop_width(int(now), most);
        for (std::int64_t k = 0; k < sources; k += lanes)
            for (std::int64_t n = 0; n < width; ++n, packed += lanes)
                for (int l = 0; l < lanes; ++l)
                    packed[l] = k + l < sources && n < now ? w[(k + l) * row_stride + (first + n) * column_stride] : T(0);
    }
}

#define CLEBSCH_INSTANTIATE(T)                                                                               \
    template void multiply_narrow<T>(NarrowPart<T>*, int, bool, const RowSource<T>&, int, int, bool, Pace&); \
    template void pack_narrow<T>(const T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*);
CLEBSCH_INSTANTIATE(float)
CLEBSCH_INSTANTIATE(double)

}  // namespace clebsch::CLEBSCH_ISA
