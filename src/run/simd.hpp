#pragma once
// A vector as wide as the instruction set a kernel file is compiled for, through the vector extensions of GCC and Clang: arithmetic
// operators work on it as on numbers. Everything lives in the namespace of the instruction set, see run/kernels/instruction_sets.hpp.
#include <cstdint>

#if defined(CLEBSCH_ISA_AVX2) || defined(CLEBSCH_ISA_AVX512)
#include <immintrin.h>
#endif

namespace clebsch::CLEBSCH_ISA {

#if defined(CLEBSCH_ISA_AVX512)
inline constexpr int vector_bytes = 64;
inline constexpr int vector_registers = 32;
#elif defined(CLEBSCH_ISA_AVX2)
inline constexpr int vector_bytes = 32;
inline constexpr int vector_registers = 16;
#elif defined(CLEBSCH_ISA_NEON)
inline constexpr int vector_bytes = 16;
inline constexpr int vector_registers = 32;
#else
inline constexpr int vector_bytes = 16;
inline constexpr int vector_registers = 16;
#endif

template <class T>
inline constexpr int lanes_of = vector_bytes / int(sizeof(T));

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
    typedef float type __attribute__((vector_size(vector_bytes)));
    typedef std::int32_t index __attribute__((vector_size(vector_bytes)));
};
template <>
struct VectorOf<double> {
    typedef double type __attribute__((vector_size(vector_bytes)));
    typedef std::int64_t index __attribute__((vector_size(vector_bytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

#define CLEBSCH_INLINE [[gnu::always_inline]] inline

template <class T>
CLEBSCH_INLINE Vector<T> load(const T* p) {
    Vector<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
CLEBSCH_INLINE void store(T* p, Vector<T> v) {
    __builtin_memcpy(p, &v, sizeof v);
}

template <class T>
CLEBSCH_INLINE Vector<T> broadcast(T value) {
    return value - Vector<T>{};  // exact for every value, -0 and NaN included, and folds to one broadcast
}

#if !defined(CLEBSCH_ISA_AVX512) && !defined(CLEBSCH_ISA_AVX2)
// Without masks: number by number, and not in the middle of every loop.
template <class T>
[[gnu::noinline]] Vector<T> load_some(const T* p, int count) {
    Vector<T> v{};
    for (int i = 0; i < lanes_of<T>; ++i)
        if (i < count) v[i] = p[i];
    return v;
}
template <class T>
[[gnu::noinline]] void store_some(T* p, Vector<T> v, int count) {
    for (int i = 0; i < lanes_of<T>; ++i)
        if (i < count) p[i] = v[i];
}
#endif

/// The first `count` numbers, zero beyond; reads nothing else.
template <class T>
CLEBSCH_INLINE Vector<T> load_first(const T* p, int count) {
#if defined(CLEBSCH_ISA_AVX512)
    if constexpr (sizeof(T) == 4) return (Vector<T>)_mm512_maskz_loadu_ps(__mmask16((1U << count) - 1U), p);
    else return (Vector<T>)_mm512_maskz_loadu_pd(__mmask8((1U << count) - 1U), p);
#elif defined(CLEBSCH_ISA_AVX2)
    if constexpr (sizeof(T) == 4) {
        const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        return (Vector<T>)_mm256_maskload_ps(p, mask);
    } else {
        const __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
        return (Vector<T>)_mm256_maskload_pd(p, mask);
    }
#else
    return load_some<T>(p, count);
#endif
}

/// Writes the first `count` numbers and nothing else.
template <class T>
CLEBSCH_INLINE void store_first(T* p, Vector<T> v, int count) {
#if defined(CLEBSCH_ISA_AVX512)
    if constexpr (sizeof(T) == 4) _mm512_mask_storeu_ps(p, __mmask16((1U << count) - 1U), (__m512)v);
    else _mm512_mask_storeu_pd(p, __mmask8((1U << count) - 1U), (__m512d)v);
#elif defined(CLEBSCH_ISA_AVX2)
    if constexpr (sizeof(T) == 4)
        _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)), (__m256)v);
    else _mm256_maskstore_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3)), (__m256d)v);
#else
    store_some<T>(p, v, count);
#endif
}

/// The numbers 0 .. N-1 as a type (the standard library's would be code shared between instruction sets).
template <int... L>
struct Lanes {};
template <int N, int... L>
struct LanesUpTo : LanesUpTo<N - 1, N - 1, L...> {};
template <int... L>
struct LanesUpTo<0, L...> {
    using type = Lanes<L...>;
};

template <class T, int Distance, int... L>
CLEBSCH_INLINE Vector<T> blend_lanes(Vector<T> a, Vector<T> b, Lanes<L...>) {
    return __builtin_shufflevector(a, b, (L & Distance ? int(sizeof...(L)) + L : L)...);
}
template <class T, int Distance, int... L>
CLEBSCH_INLINE Vector<T> swap_lanes(Vector<T> a, Vector<T> b, Lanes<L...>) {
    return __builtin_shufflevector(a, b, (L & Distance ? int(sizeof...(L)) + L - Distance : L + Distance)...);
}
/// Lane l: a[l] where bit `Distance` of l is clear, else b[l].
template <class T, int Distance>
CLEBSCH_INLINE Vector<T> blend(Vector<T> a, Vector<T> b) {
#if defined(CLEBSCH_ISA_AVX2)
    // Compilers make shuffles of these, which only one port executes.
    if constexpr (sizeof(T) == 4) return (Vector<T>)_mm256_blend_ps(a, b, Distance == 4 ? 0xF0 : Distance == 2 ? 0xCC : 0xAA);
    else return (Vector<T>)_mm256_blend_pd(a, b, Distance == 2 ? 0xC : 0xA);
#else
    return blend_lanes<T, Distance>(a, b, typename LanesUpTo<lanes_of<T>>::type{});
#endif
}
/// Lane l: a[l + Distance] where that bit is clear, else b[l - Distance].
template <class T, int Distance>
CLEBSCH_INLINE Vector<T> swap(Vector<T> a, Vector<T> b) {
    return swap_lanes<T, Distance>(a, b, typename LanesUpTo<lanes_of<T>>::type{});
}

/// Sums over the lanes of as many vectors as there are lanes: lane l of the result is the sum of sums[l]. Destroys its input.
template <class T, int Distance = lanes_of<T> / 2>
CLEBSCH_INLINE Vector<T> sum_lanes(Vector<T>* sums) {
    if constexpr (Distance == 0) {
        return sums[0];
    } else {
#pragma GCC unroll 16
        for (int j = 0; j < Distance; ++j)
            sums[j] = blend<T, Distance>(sums[j], sums[j + Distance]) + swap<T, Distance>(sums[j], sums[j + Distance]);
        return sum_lanes<T, Distance / 2>(sums);
    }
}

/// Transposes a square of lanes x lanes numbers.
template <class T, int Distance = lanes_of<T> / 2>
CLEBSCH_INLINE void transpose_square(Vector<T>* rows) {
    if constexpr (Distance > 0) {
#pragma GCC unroll 16
        for (int j = 0; j < lanes_of<T>; ++j) {
            if (j & Distance) continue;
            const Vector<T> a = rows[j], b = rows[j + Distance], crossed = swap<T, Distance>(a, b);
            rows[j] = blend<T, Distance>(a, crossed);
            rows[j + Distance] = blend<T, Distance>(crossed, b);
        }
        transpose_square<T, Distance / 2>(rows);
    }
}

}  // namespace clebsch::CLEBSCH_ISA
