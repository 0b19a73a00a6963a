#pragma once
// Small transpositions in registers, shared by the kernels that turn rows into vectors of rows or channels.
#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {

// Blocks of `block` numbers (16 bytes) of as many rows; with registers of 32 bytes and more two blocks of rows side by side.
constexpr int transpose_bytes = vector_bytes < 32 ? vector_bytes : 32;
constexpr int halves = transpose_bytes / 16;
template <class T>
constexpr int block = 16 / static_cast<int>(sizeof(T));

template <class T>
struct Transposed;
template <>
struct Transposed<float> {
    using Vector = float __attribute__((vector_size(transpose_bytes)));
};
template <>
struct Transposed<double> {
    using Vector = double __attribute__((vector_size(transpose_bytes)));
};
template <class T>
using BlockVector = typename Transposed<T>::Vector;

using FloatHalf = float __attribute__((vector_size(16)));
using DoubleHalf = double __attribute__((vector_size(16)));
template <class T>
struct HalfOf {
    using Vector = FloatHalf;
};
template <>
struct HalfOf<double> {
    using Vector = DoubleHalf;
};
template <class T>
using Half = typename HalfOf<T>::Vector;

template <class T>
CLEBSCH_INLINE Half<T> load_half(const T* from) {
    Half<T> v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}
template <class T>
CLEBSCH_INLINE void store_half(T* to, Half<T> v) {
    __builtin_memcpy(to, &v, sizeof v);
}
#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
CLEBSCH_INLINE BlockVector<float> joined(FloatHalf a, FloatHalf b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7); }
CLEBSCH_INLINE BlockVector<double> joined(DoubleHalf a, DoubleHalf b) { return __builtin_shufflevector(a, b, 0, 1, 2, 3); }
CLEBSCH_INLINE FloatHalf half(BlockVector<float> v, int which) {
    return which == 0 ? __builtin_shufflevector(v, v, 0, 1, 2, 3) : __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
CLEBSCH_INLINE DoubleHalf half(BlockVector<double> v, int which) {
    return which == 0 ? __builtin_shufflevector(v, v, 0, 1) : __builtin_shufflevector(v, v, 2, 3);
}
/// The same half of both, one behind the other.
CLEBSCH_INLINE BlockVector<float> joined_halves(BlockVector<float> a, BlockVector<float> b, int which) {
    return which == 0 ? __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) : __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}
CLEBSCH_INLINE BlockVector<double> joined_halves(BlockVector<double> a, BlockVector<double> b, int which) {
    return which == 0 ? __builtin_shufflevector(a, b, 0, 1, 4, 5) : __builtin_shufflevector(a, b, 2, 3, 6, 7);
}
#else
template <class V>
CLEBSCH_INLINE V joined(V a, V) {
    return a;
}
template <class V>
CLEBSCH_INLINE V joined_halves(V a, V, int) {
    return a;
}
template <class V>
CLEBSCH_INLINE V half(V v, int) {
    return v;
}
#endif

/// 4 x 4 (2 x 2) numbers, in every half by itself; its own inverse.
CLEBSCH_INLINE void transpose(BlockVector<float>* v) {
#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
    const BlockVector<float> a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13),
                             b = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
    const BlockVector<float> c = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13),
                             d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
#else
    const BlockVector<float> a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    const BlockVector<float> c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
#endif
}
CLEBSCH_INLINE void transpose(BlockVector<double>* v) {
#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
    const BlockVector<double> a = __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6), b = __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
#else
    const BlockVector<double> a = __builtin_shufflevector(v[0], v[1], 0, 2), b = __builtin_shufflevector(v[0], v[1], 1, 3);
#endif
    v[0] = a;
    v[1] = b;
}

}  // namespace clebsch::CLEBSCH_ISA
