// A group of channels at a time: as many as a vector of the transposition holds. Blocks of components overlap rather than end early.
#include "run/kernels/transpose.hpp"

#include "run/kernels/transpose_parts.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

template <class T>
constexpr int group = block<T>* halves;
constexpr int most_components = 64;  ///< of a piece that goes through a buffer

/// First component of the block that begins at c: blocks stay inside when there is one whole block.
template <class T>
CLEBSCH_INLINE int block_begin(int c, int components) {
    return components < block<T> || c + block<T> <= components ? c : components - block<T>;
}

/// One group. Reads up to block - 1 numbers behind the last channel when there are fewer components than a block has.
template <class T>
CLEBSCH_INLINE void group_apart(const T* from, T* to, std::int64_t stride, int components) {
    constexpr int n = block<T>;
    for (int c = 0; c < components; c += n) {
        const int begin = block_begin<T>(c, components);
        BlockVector<T> v[n];
#pragma GCC unroll 4
        for (int k = 0; k < n; ++k) {
            const T* at = from + std::int64_t{k} * components + begin;
            v[k] = joined(load_half<T>(at), load_half<T>(halves == 2 ? at + std::int64_t{n} * components : at));
        }
        transpose(v);
#pragma GCC unroll 4
        for (int k = 0; k < n; ++k)
            if (begin + k >= c && begin + k < components) __builtin_memcpy(to + (begin + k) * stride, &v[k], sizeof v[k]);
    }
}

/// One group. Writes up to block - 1 numbers behind the last channel when there are fewer components than a block has.
template <class T>
CLEBSCH_INLINE void group_together(const T* from, T* to, std::int64_t stride, int components) {
    constexpr int n = block<T>;
    for (int c = 0; c < components; c += n) {
        const int begin = block_begin<T>(c, components);
        BlockVector<T> v[n];
#pragma GCC unroll 4
        for (int k = 0; k < n; ++k) {
            const int component = begin + k < components ? begin + k : begin;
            __builtin_memcpy(&v[k], from + component * stride, sizeof v[k]);
        }
        transpose(v);
#pragma GCC unroll 2
        for (int h = 0; h < halves; ++h)
#pragma GCC unroll 4
            for (int k = 0; k < n; ++k) store_half<T>(to + std::int64_t{h * n + k} * components + begin, half(v[k], h));
    }
}

/// In every half: numbers A and B of a, C and D of b.
template <int A, int B, int C, int D>
CLEBSCH_INLINE BlockVector<float> pick(BlockVector<float> a, BlockVector<float> b) {
#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
    return __builtin_shufflevector(a, b, A, B, 8 + C, 8 + D, 4 + A, 4 + B, 12 + C, 12 + D);
#else
    return __builtin_shufflevector(a, b, A, B, 4 + C, 4 + D);
#endif
}

/// Three components are a group's numbers in three vectors, and touch nothing behind it: half the work of blocks of four.
CLEBSCH_INLINE void triples_apart(const float* from, float* to, std::int64_t stride) {
    constexpr int n = block<float>, high = halves == 2 ? 3 * n : 0;
    BlockVector<float> v[3];
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) v[k] = joined(load_half<float>(from + k * n), load_half<float>(from + k * n + high));
    const BlockVector<float> xy = pick<2, 3, 1, 2>(v[1], v[2]), yz = pick<1, 2, 0, 1>(v[0], v[1]);
    v[0] = pick<0, 3, 0, 2>(v[0], xy);
    v[1] = pick<0, 2, 1, 3>(yz, xy);
    v[2] = pick<1, 3, 0, 3>(yz, v[2]);
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) __builtin_memcpy(to + k * stride, &v[k], sizeof v[k]);
}
CLEBSCH_INLINE void triples_together(const float* from, float* to, std::int64_t stride) {
    constexpr int n = block<float>;
    BlockVector<float> v[3];
#pragma GCC unroll 3
    for (int k = 0; k < 3; ++k) __builtin_memcpy(&v[k], from + k * stride, sizeof v[k]);
    const BlockVector<float> xy = pick<0, 2, 0, 2>(v[0], v[1]), yz = pick<1, 3, 1, 3>(v[1], v[2]), zx = pick<0, 2, 1, 3>(v[2], v[0]);
    v[0] = pick<0, 2, 0, 2>(xy, zx);
    v[1] = pick<0, 2, 1, 3>(yz, xy);
    v[2] = pick<1, 3, 1, 3>(zx, yz);
#pragma GCC unroll 2
    for (int h = 0; h < halves; ++h)
#pragma GCC unroll 3
        for (int k = 0; k < 3; ++k) store_half<float>(to + (3 * h + k) * n, half(v[k], h));
}

/// Five components leave as whole vectors, too: stores that overlap cost more than the shuffles.
CLEBSCH_INLINE void fives_together(const float* from, float* to, std::int64_t stride) {
    constexpr int n = block<float>;
    BlockVector<float> v[5];
#pragma GCC unroll 5
    for (int k = 0; k < 5; ++k) __builtin_memcpy(&v[k], from + k * stride, sizeof v[k]);
    const BlockVector<float> first_ab = pick<0, 1, 0, 1>(v[0], v[1]), last_ab = pick<2, 3, 2, 3>(v[0], v[1]);  // a0 a1 b0 b1, a2 a3 b2 b3
    const BlockVector<float> first_cd = pick<0, 1, 0, 1>(v[2], v[3]), last_cd = pick<2, 3, 2, 3>(v[2], v[3]), e = v[4];
    v[0] = pick<0, 2, 0, 2>(first_ab, first_cd);
    v[1] = pick<0, 2, 0, 2>(pick<0, 0, 1, 1>(e, first_ab), pick<3, 3, 1, 1>(first_ab, first_cd));
    v[2] = pick<0, 2, 0, 2>(pick<3, 3, 1, 1>(first_cd, e), last_ab);
    v[3] = pick<0, 2, 0, 2>(last_cd, pick<2, 2, 1, 1>(e, last_ab));
    v[4] = pick<0, 2, 0, 2>(pick<3, 3, 1, 1>(last_ab, last_cd), pick<3, 3, 3, 3>(last_cd, e));
#pragma GCC unroll 2
    for (int h = 0; h < halves; ++h)
#pragma GCC unroll 5
        for (int k = 0; k < 5; ++k) store_half<float>(to + (5 * h + k) * n, half(v[k], h));
}

/// Likewise: numbers of channels a to d of a half lie in pairs of components, those of a and b before those of c and d.
CLEBSCH_INLINE void sevens_together(const float* from, float* to, std::int64_t stride) {
    constexpr int n = block<float>;
    BlockVector<float> v[7];
#pragma GCC unroll 7
    for (int k = 0; k < 7; ++k) __builtin_memcpy(&v[k], from + k * stride, sizeof v[k]);
    const BlockVector<float> ab01 = pick<0, 1, 0, 1>(v[0], v[1]), cd01 = pick<2, 3, 2, 3>(v[0], v[1]);  // a0 b0 a1 b1, c0 d0 c1 d1
    const BlockVector<float> ab23 = pick<0, 1, 0, 1>(v[2], v[3]), cd23 = pick<2, 3, 2, 3>(v[2], v[3]);
    const BlockVector<float> ab45 = pick<0, 1, 0, 1>(v[4], v[5]), cd45 = pick<2, 3, 2, 3>(v[4], v[5]), last = v[6];
    v[0] = pick<0, 2, 0, 2>(ab01, ab23);
    v[1] = pick<0, 2, 0, 2>(ab45, pick<0, 0, 1, 1>(last, ab01));
    v[2] = pick<0, 2, 0, 2>(pick<3, 3, 1, 1>(ab01, ab23), pick<3, 3, 1, 1>(ab23, ab45));
    v[3] = pick<0, 2, 0, 2>(pick<3, 3, 1, 1>(ab45, last), cd01);
    v[4] = pick<0, 2, 0, 2>(cd23, cd45);
    v[5] = pick<0, 2, 0, 2>(pick<2, 2, 1, 1>(last, cd01), pick<3, 3, 1, 1>(cd01, cd23));
    v[6] = pick<0, 2, 0, 2>(pick<3, 3, 1, 1>(cd23, cd45), pick<3, 3, 3, 3>(cd45, last));
#pragma GCC unroll 2
    for (int h = 0; h < halves; ++h)
#pragma GCC unroll 7
        for (int k = 0; k < 7; ++k) store_half<float>(to + (7 * h + k) * n, half(v[k], h));
}

/// The numbers of one group, fewer components than a block has: as many whole vectors as components.
template <class T>
CLEBSCH_INLINE void copy_group(T* to, const T* from, int components) {
    for (int v = 0; v < components; ++v) __builtin_memcpy(to + v * group<T>, from + v * group<T>, sizeof(T) * std::size_t(group<T>));
}

/// Groups that may touch numbers of the channel behind them; how many channels that were.
CLEBSCH_INLINE std::int64_t in_groups(std::int64_t channels, int size, bool exact) {
    const std::int64_t whole = channels / size * size;
    return exact || whole < channels || whole == 0 ? whole : whole - size;
}

template <class T>
void apart(const T* from, T* to, std::int64_t channels, int components) {
    constexpr int n = group<T>;
    std::int64_t u = 0;
    const std::int64_t whole = in_groups(channels, n, components >= block<T>);
    switch (components) {  // the loops over components unroll
        case 3:
            if constexpr (sizeof(T) == 4)
                for (; u + n <= channels; u += n) triples_apart(from + u * 3, to + u, channels);
            else
                for (; u < whole; u += n) group_apart<T>(from + u * 3, to + u, channels, 3);
            break;
        case 5:
            for (; u < whole; u += n) group_apart<T>(from + u * 5, to + u, channels, 5);
            break;
        case 7:
            for (; u < whole; u += n) group_apart<T>(from + u * 7, to + u, channels, 7);
            break;
        default:
            for (; u < whole; u += n) group_apart<T>(from + u * components, to + u, channels, components);
    }
    const int left = int(channels - u);
    if (left == 0) return;
    if (left == n && components < block<T>) {  // a whole group whose last channel ends the piece: through a buffer with room behind it
        T in[n * block<T>];
        copy_group<T>(in, from + u * components, components);
        group_apart<T>(in, to + u, channels, components);
        return;
    }
    if (components > most_components || left < 3) {
        for (int c = 0; c < components; ++c)
            for (std::int64_t v = u; v < channels; ++v) to[c * channels + v] = from[v * components + c];
        return;
    }
    T in[n * most_components + block<T>], out[n * most_components];
    __builtin_memcpy(in, from + u * components, sizeof(T) * std::size_t(left * components));
    for (int i = left * components; i < n * components + block<T>; ++i) in[i] = T(0);
    group_apart<T>(in, out, n, components);
    for (int c = 0; c < components; ++c)
        for (int v = 0; v < left; ++v) to[c * channels + u + v] = out[c * n + v];
}

template <class T>
void together(const T* from, T* to, std::int64_t channels, int components) {
    constexpr int n = group<T>;
    std::int64_t u = 0;
    const std::int64_t whole = in_groups(channels, n, components >= block<T>);
    switch (components) {
        case 3:
            if constexpr (sizeof(T) == 4)
                for (; u + n <= channels; u += n) triples_together(from + u, to + u * 3, channels);
            else
                for (; u < whole; u += n) group_together<T>(from + u, to + u * 3, channels, 3);
            break;
        case 5:
            if constexpr (sizeof(T) == 4)
                for (; u + n <= channels; u += n) fives_together(from + u, to + u * 5, channels);
            else
                for (; u < whole; u += n) group_together<T>(from + u, to + u * 5, channels, 5);
            break;
        case 7:
            if constexpr (sizeof(T) == 4)
                for (; u + n <= channels; u += n) sevens_together(from + u, to + u * 7, channels);
            else
                for (; u < whole; u += n) group_together<T>(from + u, to + u * 7, channels, 7);
            break;
        default:
            for (; u < whole; u += n) group_together<T>(from + u, to + u * components, channels, components);
    }
    const int left = int(channels - u);
    if (left == 0) return;
    if (left == n && components < block<T>) {
        T out[n * block<T>];
        group_together<T>(from + u, out, channels, components);
        copy_group<T>(to + u * components, out, components);
        return;
    }
    if (components > most_components || left < 3) {
        for (std::int64_t v = u; v < channels; ++v)
            for (int c = 0; c < components; ++c) to[v * components + c] = from[c * channels + v];
        return;
    }
    T in[n * most_components], out[n * most_components + block<T>];
    for (int c = 0; c < components; ++c)
        for (int v = 0; v < n; ++v) in[c * n + v] = v < left ? from[c * channels + u + v] : T(0);
    group_together<T>(in, out, n, components);
    __builtin_memcpy(to + u * components, out, sizeof(T) * std::size_t(left * components));
}

}  // namespace

void components_apart(const float* from, float* to, std::int64_t channels, int components) { apart(from, to, channels, components); }
void components_apart(const double* from, double* to, std::int64_t channels, int components) { apart(from, to, channels, components); }
void components_together(const float* from, float* to, std::int64_t channels, int components) { together(from, to, channels, components); }
void components_together(const double* from, double* to, std::int64_t channels, int components) {
    together(from, to, channels, components);
}

}  // namespace clebsch::CLEBSCH_ISA
