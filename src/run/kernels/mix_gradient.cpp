// Gradients of scalar products of every channel (x . y) that meet weights and are added up: in one pass over x.
#include "run/kernels/mix_interleaved.hpp"
#include "run/kernels/mix_parts.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
/// Lane l: the lane that has component M of channel l.
template <class T, int Components, int M, int... L>
CLEBSCH_INLINE Vector<T> in_order(Vector<T> value, Lanes<L...>) {
    return __builtin_shufflevector(value, value, ((Components * L + M) % lanes_of<T>)...);
}
template <class T, int Components, int M = 0>
CLEBSCH_INLINE void take_apart(const Vector<T>* numbers, Vector<T>* x) {
    if constexpr (M < Components) {
        x[M] = in_order<T, Components, M>(component<T, Components, M>(numbers, numbers[0]), typename LanesUpTo<lanes_of<T>>::type{});
        take_apart<T, Components, M + 1>(numbers, x);
    }
}
#endif

/// The components of as many channels as a vector has lanes.
template <class T, int Components, bool Interleaved>
CLEBSCH_INLINE void load_components(const T* from, std::int64_t stride, Vector<T>* x) {
    if constexpr (!Interleaved) {
#pragma GCC unroll 8
        for (int v = 0; v < Components; ++v) x[v] = load<T>(from + v * stride);
    } else {
#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
        Vector<T> numbers[Components];
#pragma GCC unroll 8
        for (int v = 0; v < Components; ++v) numbers[v] = load<T>(from + v * lanes_of<T>);
        take_apart<T, Components>(numbers, x);
#else
#pragma GCC unroll 8
        for (int v = 0; v < Components; ++v) x[v] = component<T, Components>(from + v, typename LanesUpTo<lanes_of<T>>::type{});
#endif
    }
}

/// Vector k, lane l: number[(k * lanes + l) % Components].
template <class T, int Components, int K, int... L>
CLEBSCH_INLINE Vector<T> repeated_in_turn(Vector<T> numbers, Lanes<L...>) {
    return __builtin_shufflevector(numbers, numbers, ((K * lanes_of<T> + L) % Components)...);
}
template <class T, int Components, int K = 0>
CLEBSCH_INLINE void repeat_numbers(const T* number, Vector<T>* pattern) {
    constexpr int lanes = lanes_of<T>;
    if constexpr (K < Components) {
        if constexpr (Components <= lanes) {
            pattern[K] = repeated_in_turn<T, Components, K>(load_first<T>(number, Components), typename LanesUpTo<lanes>::type{});
        } else {
            T numbers[lanes];
            for (int l = 0; l < lanes; ++l) numbers[l] = number[(K * lanes + l) % Components];
            pattern[K] = load<T>(numbers);
        }
        repeat_numbers<T, Components, K + 1>(number, pattern);
    }
}

/// t[u] y[i] of as many channels u as a vector has lanes, components of a channel one after the other.
template <class T, int Components, int K = 0>
CLEBSCH_INLINE void store_together(T* to, Vector<T> t, const Vector<T>* pattern) {
    constexpr int lanes = lanes_of<T>;
    if constexpr (K < Components) {
        store<T>(to + K * lanes, repeated<T, Components, K * lanes>(t, typename LanesUpTo<lanes>::type{}) * pattern[K]);
        store_together<T, Components, K + 1>(to, t, pattern);
    }
}

/// The lanes from `first` on; zero before.
template <class T, int... L>
CLEBSCH_INLINE Vector<T> lanes_from(std::int64_t first, Vector<T> value, Lanes<L...>) {
    using Index = typename VectorOf<T>::index;
    const Index here = Index{L...} >= Index{} + decltype(Index{}[0] + 0)(first);
    return (Vector<T>)((Index)value & here);
}

/// The channels of one row beyond whole vectors, by a vector that has some of the one before again: of these only sums must not.
template <class T, int Components>
[[gnu::noinline]] void last_channels(const GradientPart<T>& part, int row, T factor, Vector<T>* sum) {
    constexpr int lanes = lanes_of<T>;
    typename LanesUpTo<lanes>::type all;
    const std::int64_t channels = part.channels, again = lanes - channels % lanes, at = channels - lanes;
    const T *y = part.y(row), *x = part.x(row) + at * (part.interleaved ? Components : 1);
    T* const x_gradient = const_cast<T*>(part.x_gradient(row)) + (x - part.x(row));
    T* const w_gradient = const_cast<T*>(part.weights_gradient(row)) + at;
    const Vector<T> t = factor * load<T>(part.weights(row) + at);
    Vector<T> numbers[Components], pattern[Components], product{};
    if (part.interleaved) load_components<T, Components, true>(x, channels, numbers);
    else load_components<T, Components, false>(x, channels, numbers);
    for (int v = 0; v < Components; ++v) {
        product += y[v] * numbers[v];
        sum[v] += lanes_from<T>(again, numbers[v] * t, all);
        if (!part.interleaved) store<T>(x_gradient + v * channels, y[v] * t);
    }
    if (part.interleaved) {
        repeat_numbers<T, Components>(y, pattern);
        store_together<T, Components>(x_gradient, t, pattern);
    }
    product *= factor;
    store<T>(w_gradient, part.store ? product : load<T>(w_gradient) + lanes_from<T>(again, product, all));
}

template <class T, int Components, bool Interleaved>
[[gnu::noinline]] void part_of_rows(const GradientPart<T>& part, int first, int count, Vector<T>* sums, bool store_sums, Pace& pace) {
    constexpr int lanes = lanes_of<T>, step = Interleaved ? Components * lanes : lanes;
    const std::int64_t channels = part.channels, whole = channels / lanes * lanes;
    const bool store_it = part.store;
    for (int row = first; row < first + count; ++row, sums += gradient_width(Components)) {
        pace.turn();
        const T *x = part.x(row), *w = part.weights(row), *y = part.y(row);
        T *x_gradient = const_cast<T*>(part.x_gradient(row)), *w_gradient = const_cast<T*>(part.weights_gradient(row));
        T scale = part.coefficient;
        if (part.factor.pointers != nullptr) scale *= *part.factor(row);
        const Vector<T> factor = broadcast<T>(scale);
        Vector<T> number[Components], pattern[Components], sum[Components];
#pragma GCC unroll 8
        for (int v = 0; v < Components; ++v) number[v] = broadcast<T>(y[v]), sum[v] = store_sums ? Vector<T>{} : sums[v];
        if constexpr (Interleaved) repeat_numbers<T, Components>(y, pattern);
        for (const T* const end = w + whole; w != end; x += step, x_gradient += step, w += lanes, w_gradient += lanes) {
            Vector<T> numbers[Components];
            load_components<T, Components, Interleaved>(x, channels, numbers);
            const Vector<T> t = factor * load<T>(w);
            Vector<T> product = number[0] * numbers[0];
#pragma GCC unroll 8
            for (int v = 1; v < Components; ++v) product += number[v] * numbers[v];
#pragma GCC unroll 8
            for (int v = 0; v < Components; ++v) sum[v] += numbers[v] * t;
            store<T>(w_gradient, store_it ? factor * product : load<T>(w_gradient) + factor * product);
            if constexpr (Interleaved) {
                store_together<T, Components>(x_gradient, t, pattern);
            } else {
#pragma GCC unroll 8
                for (int v = 0; v < Components; ++v) store<T>(x_gradient + v * channels, number[v] * t);
            }
        }
#pragma GCC unroll 8
        for (int v = 0; v < Components; ++v) sums[v] = sum[v];
        if (whole < channels) last_channels<T, Components>(part, row, scale, sums);
    }
}

}  // namespace

template <class T>
void gradients_of_part(const GradientPart<T>& part, int first, int count, Vector<T>* sums, bool store_sums, Pace& pace) {
    if (part.components == 1) part_of_rows<T, 1, false>(part, first, count, sums, store_sums, pace);
    else if (part.components == 3 && part.interleaved) part_of_rows<T, 3, true>(part, first, count, sums, store_sums, pace);
    else if (part.components == 3) part_of_rows<T, 3, false>(part, first, count, sums, store_sums, pace);
    else if (part.interleaved) part_of_rows<T, 5, true>(part, first, count, sums, store_sums, pace);
    else part_of_rows<T, 5, false>(part, first, count, sums, store_sums, pace);
}

template <class T>
void add_sums(const Vector<T>* sums, int components, const RowTable<T>& to, int first, int count, bool store_it) {
    constexpr int lanes = lanes_of<T>;
    const int width = gradient_width(components);
    T number[gradient_sums];
    for (int n = 0; n < count * width; n += lanes) {
        Vector<T> some[lanes];
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) some[l] = sums[n + l];
        store<T>(number + n, sum_lanes<T>(some));
    }
    const T* from = number;
    for (int row = first; row < first + count; ++row, from += width) {
        T* at = const_cast<T*>(to(row));
        for (int v = 0; v < components; ++v) at[v] = store_it ? from[v] : at[v] + from[v];
    }
}

#define CLEBSCH_INSTANTIATE(T)                                                                     \
    template void gradients_of_part<T>(const GradientPart<T>&, int, int, Vector<T>*, bool, Pace&); \
    template void add_sums<T>(const Vector<T>*, int, const RowTable<T>&, int, int, bool);
CLEBSCH_INSTANTIATE(float)
CLEBSCH_INSTANTIATE(double)

}  // namespace clebsch::CLEBSCH_ISA
