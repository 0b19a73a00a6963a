#pragma once
// Channels whose components follow one another, as mul_ir has them, and vectors.
#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {

#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
/// Lane l: b[l] where that is component M of its channel, else a[l]; b is vector K of channels of Components numbers each.
template <class T, int Components, int M, int K, int... L>
CLEBSCH_INLINE Vector<T> with_component(Vector<T> a, Vector<T> b, Lanes<L...>) {
    constexpr unsigned mask = (... | ((K * lanes_of<T> + L) % Components == M ? 1U << L : 0U));
#if defined(CLEBSCH_ISA_AVX512)
    if constexpr (sizeof(T) == 4) return (Vector<T>)_mm512_mask_blend_ps(__mmask16(mask), a, b);
    else return (Vector<T>)_mm512_mask_blend_pd(__mmask8(mask), a, b);
#else
    if constexpr (sizeof(T) == 4) return (Vector<T>)_mm256_blend_ps(a, b, mask);
    else return (Vector<T>)_mm256_blend_pd(a, b, mask);
#endif
}
template <class T, int Components, int M, int K = 1>
CLEBSCH_INLINE Vector<T> component(const Vector<T>* numbers, Vector<T> found) {
    if constexpr (K == Components) return found;
    else
        return component<T, Components, M, K + 1>(
            numbers, with_component<T, Components, M, K>(found, numbers[K], typename LanesUpTo<lanes_of<T>>::type{}));
}
#else
template <class T, int Components, int... L>
CLEBSCH_INLINE Vector<T> component(const T* from, Lanes<L...>) {
    return Vector<T>{from[Components * L]...};
}
#endif

/// Lane l: value[(First + l) / Times].
template <class T, int Times, int First, int... L>
CLEBSCH_INLINE Vector<T> repeated(Vector<T> value, Lanes<L...>) {
    return __builtin_shufflevector(value, value, ((First + L) / Times)...);
}

}  // namespace clebsch::CLEBSCH_ISA
