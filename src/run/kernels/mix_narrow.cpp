// Products of the mix family with few columns: vectors go along what is summed, so that no lane is empty, and lanes are added up once for
// all matrices of a sum.
#include "run/kernels/mix_tile.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

template <class T>
CLEBSCH_INLINE const T* after(const T* from, std::int64_t bytes) {
    return reinterpret_cast<const T*>(reinterpret_cast<const char*>(from) + bytes);
}

/// sum[n] += the part of one row.
template <class T, int Targets, int Vectors>
CLEBSCH_INLINE void add_part(const NarrowPart<T>& part, int row, Vector<T>* sum) {
    constexpr int lanes = lanes_of<T>;
    const T *from = part.from.start(row), *const number = part.number.start(row), *const matrix = part.weight(row), *w = matrix;
    std::int64_t offset[Vectors];
    Vector<T> factor[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
        offset[v] = part.offset[v];
        factor[v] = broadcast<T>(part.coefficient[v] * *after(number, part.number_offset[v]));
    }
    for (const T* const whole = from + part.whole; from != whole; from += lanes, w += Targets * lanes) {
        Vector<T> value = factor[0] * load<T>(after(from, offset[0]));
#pragma GCC unroll 8
        for (int v = 1; v < Vectors; ++v) value += factor[v] * load<T>(after(from, offset[v]));
#pragma GCC unroll 8
        for (int n = 0; n < Targets; ++n) sum[n] += value * load<T>(w + n * lanes);
    }
    if (part.left == 0) return;
    Vector<T> value = factor[0] * load_first<T>(after(from, offset[0]), part.left);
#pragma GCC unroll 8
    for (int v = 1; v < Vectors; ++v) value += factor[v] * load_first<T>(after(from, offset[v]), part.left);
    const T* const last = matrix + part.whole * Targets;
#pragma GCC unroll 8
    for (int n = 0; n < Targets; ++n) sum[n] += value * (Targets > 1 ? load<T>(last + n * lanes) : load_first<T>(last, part.left));
}

/// Targets [first, first + Targets); lanes of `Targets` sums of as many rows as fit into a vector are added up together.
template <class T, int Targets>
void narrow_rows(const NarrowPart<T>* parts, int count, const RowSource<T>& to, int rows, int first, int targets, bool store_it,
                 Pace& pace) {
    constexpr int lanes = lanes_of<T>, width = Targets == 6 ? 8 : Targets, together = lanes / width;
    const NarrowPart<T>* const end = parts + count;
    for (int r = 0; r < rows; r += together) {
        const int now = rows - r < together ? rows - r : together;
        pace.turn(now);
        Vector<T> sums[lanes] = {};
        for (int j = 0; j < now; ++j) {
            Vector<T> sum[Targets] = {};
            for (const NarrowPart<T>* part = parts; part != end; ++part) {
                if (part->vectors == 1) add_part<T, Targets, 1>(*part, r + j, sum);
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

/// Lane l: value[(First + l) / Targets].
template <class T, int Targets, int First, int... L>
CLEBSCH_INLINE Vector<T> repeated(Vector<T> value, Lanes<L...>) {
    return __builtin_shufflevector(value, value, ((First + L) / Targets)...);
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
            const T *from = part->from.start(r), *const number = part->number.start(r), *w = part->weight(r);
            const std::int64_t* const offset = part->offset;
            T factor[mix_narrow_vectors];
            const int vectors = part->vectors;
            for (int v = 0; v < vectors; ++v) factor[v] = part->coefficient[v] * *after(number, part->number_offset[v]);
            for (const T* const whole = from + part->whole; from != whole; from += lanes, w += Targets * lanes) {
                Vector<T> value = broadcast<T>(factor[0]) * load<T>(after(from, offset[0]));
                for (int v = 1; v < vectors; ++v) value += broadcast<T>(factor[v]) * load<T>(after(from, offset[v]));
                add_flat<T, Targets>(sum, value, w);
            }
            for (int k = 0; k < part->left; ++k, w += Targets) {
                T value = 0;
                for (int v = 0; v < vectors; ++v) value += factor[v] * after(from, offset[v])[k];
                for (int n = 0; n < Targets; ++n) rest[n] += value * w[n];
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
