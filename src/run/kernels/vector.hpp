#pragma once
// The vectors kernels are written in: as wide as the instruction set's registers, one number per lane. For kernel files only: everything is in the
// namespace of the instruction set.
#include <cstdint>

#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
#include <immintrin.h>
#elif defined(CLEBSCH_ISA_NEON)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace clebsch::CLEBSCH_ISA {
namespace {

#if defined(CLEBSCH_ISA_AVX512)
constexpr int vector_bytes = 64;
#elif defined(CLEBSCH_ISA_AVX2)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

using FloatVector = float __attribute__((vector_size(vector_bytes)));
using DoubleVector = double __attribute__((vector_size(vector_bytes)));
using Int32Vector = std::int32_t __attribute__((vector_size(vector_bytes)));
using Int64Vector = std::int64_t __attribute__((vector_size(vector_bytes)));

/// Vector, and the vector of integers of the same size: also the masks that comparisons give (0 or -1 in every lane).
template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
    using Vector = FloatVector;
    using Integers = Int32Vector;
    using Integer = std::int32_t;
};
template <>
struct VectorOf<double> {
    using Vector = DoubleVector;
    using Integers = Int64Vector;
    using Integer = std::int64_t;
};
template <class T>
using Vector = typename VectorOf<T>::Vector;
template <class T>
using Integers = typename VectorOf<T>::Integers;
template <class T>
constexpr int lanes_of = vector_bytes / static_cast<int>(sizeof(T));

template <class T>
[[gnu::always_inline]] inline Vector<T> load(const T* from) {
    Vector<T> v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}
template <class T>
[[gnu::always_inline]] inline void store(T* to, Vector<T> v) {
    __builtin_memcpy(to, &v, sizeof v);
}

[[gnu::always_inline]] inline FloatVector square_root(FloatVector v) {
#if defined(CLEBSCH_ISA_AVX512)
    return reinterpret_cast<FloatVector>(_mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(v)));
#elif defined(CLEBSCH_ISA_AVX2)
    return reinterpret_cast<FloatVector>(_mm256_sqrt_ps(reinterpret_cast<__m256>(v)));
#elif defined(CLEBSCH_ISA_NEON)
    return reinterpret_cast<FloatVector>(vsqrtq_f32(reinterpret_cast<float32x4_t>(v)));
#elif defined(__SSE2__)
    return reinterpret_cast<FloatVector>(_mm_sqrt_ps(reinterpret_cast<__m128>(v)));
#else
    for (int k = 0; k < lanes_of<float>; ++k) v[k] = __builtin_sqrtf(v[k]);
    return v;
#endif
}
[[gnu::always_inline]] inline DoubleVector square_root(DoubleVector v) {
#if defined(CLEBSCH_ISA_AVX512)
    return reinterpret_cast<DoubleVector>(_mm512_maskz_sqrt_pd(0xff, reinterpret_cast<__m512d>(v)));
#elif defined(CLEBSCH_ISA_AVX2)
    return reinterpret_cast<DoubleVector>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(v)));
#elif defined(CLEBSCH_ISA_NEON)
    return reinterpret_cast<DoubleVector>(vsqrtq_f64(reinterpret_cast<float64x2_t>(v)));
#elif defined(__SSE2__)
    return reinterpret_cast<DoubleVector>(_mm_sqrt_pd(reinterpret_cast<__m128d>(v)));
#else
    for (int k = 0; k < lanes_of<double>; ++k) v[k] = __builtin_sqrt(v[k]);
    return v;
#endif
}

}  // namespace
}  // namespace clebsch::CLEBSCH_ISA
