// The unary functions, one vector at a time: range reduction, then a polynomial short enough to be its own proof (Taylor series on the
// reduced range; the first term left out is below a fifth of a unit in the last place). Errors stay near 2 units in the last place
// (tests/run/test_functions.cpp). Arguments no reduction serves (huge angles, unusual exponents) go to the C library lane by lane.
#include "run/kernels/functions.hpp"

#include "run/simd.hpp"

#if defined(CLEBSCH_ISA_NEON)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace clebsch::CLEBSCH_ISA {
namespace {

// ---- numbers that differ between the two types ----
template <class T>
struct Numbers;
template <>
struct Numbers<float> {
    static constexpr float round_magic = 0x1.8p23F;  // adding it leaves the nearest integer in the last bits
    static constexpr std::int32_t magic_bits = 0x4b400000;
    static constexpr int mantissa_bits = 23, bias = 127;
    static constexpr std::int32_t mantissa_mask = 0x007fffff, sign_bit = INT32_MIN, root_half = 0x3f3504f3;  // bits of sqrt(1/2)
    static constexpr float ln2_high = 0x1.62ep-1F, ln2_low = 0x1.0bfbe8p-15F;  // products of the first with |n| < 2^11 are exact
    static constexpr float exp_lowest = -105.0F, exp_highest = 89.0F;
    static constexpr float tanh_highest = 20.0F, erf_highest = 4.0F;
    static constexpr float smallest_normal = 0x1p-126F, rescale = 0x1p25F;
    static constexpr int rescale_bits = 25;
    static constexpr int exp_terms = 7, log_terms = 4, sin_terms = 5, cos_terms = 6, erf_terms = 12, sinc_terms = 9;
};
template <>
struct Numbers<double> {
    static constexpr double round_magic = 0x1.8p52;
    static constexpr std::int64_t magic_bits = 0x4338000000000000;
    static constexpr int mantissa_bits = 52, bias = 1023;
    static constexpr std::int64_t mantissa_mask = 0x000fffffffffffff, sign_bit = INT64_MIN, root_half = 0x3fe6a09e667f3bcd;
    static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    static constexpr double exp_lowest = -746.0, exp_highest = 710.0;
    static constexpr double tanh_highest = 40.0, erf_highest = 6.0;
    static constexpr double smallest_normal = 0x1p-1022, rescale = 0x1p54;
    static constexpr int rescale_bits = 54;
    static constexpr int exp_terms = 13, log_terms = 10, sin_terms = 9, cos_terms = 9, erf_terms = 19, sinc_terms = 16;
};

constexpr double log2_e = 0x1.71547652b82fep+0, two_over_pi = 0x1.45f306dc9c883p-1, two_over_root_pi = 0x1.20dd750429b6dp+0;
// pi/2 in three parts of 33 bits, so that products with |n| < 2^20 are exact.
constexpr double half_pi[3] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
constexpr double largest_angle = 1e6;

constexpr double factorial(int n) { return n < 2 ? 1.0 : n * factorial(n - 1); }

/// Coefficients of the series, computed by the compiler.
template <class T>
struct Series {
    using N = Numbers<T>;
    T exp[N::exp_terms + 1] = {};  ///< 1 / k!
    T log[N::log_terms + 1] = {};  ///< 2 / (2k+1)
    T sin[N::sin_terms] = {};      ///< (-1)^k / (2k+1)!
    T cos[N::cos_terms] = {};      ///< (-1)^k / (2k)!
    T erf[N::erf_terms] = {};      ///< (-1)^k 2 / (sqrt(pi) k! (2k+1))

    constexpr Series() {
        for (int k = 0; k <= N::exp_terms; ++k) exp[k] = static_cast<T>(1 / factorial(k));
        for (int k = 0; k <= N::log_terms; ++k) log[k] = static_cast<T>(2.0 / (2 * k + 1));
        for (int k = 0; k < N::sin_terms; ++k) sin[k] = static_cast<T>((k % 2 == 0 ? 1 : -1) / factorial(2 * k + 1));
        for (int k = 0; k < N::cos_terms; ++k) cos[k] = static_cast<T>((k % 2 == 0 ? 1 : -1) / factorial(2 * k));
        for (int k = 0; k < N::erf_terms; ++k)
            erf[k] = static_cast<T>((k % 2 == 0 ? 1 : -1) * two_over_root_pi / (factorial(k) * (2 * k + 1)));
    }
};
template <class T>
constexpr Series<T> series = {};

/// c[first] + c[first + 1] x + ... + c[last] x^(last - first).
template <class T, int first, int last>
[[gnu::always_inline]] inline Vector<T> polynomial(const T* c, Vector<T> x) {
    Vector<T> sum = broadcast<T>(c[last]);
#pragma GCC unroll 32
    for (int k = last - 1; k >= first; --k) sum = sum * x + c[k];
    return sum;
}

template <class T>
using Integers = typename VectorOf<T>::index;
using FloatVector = Vector<float>;
using DoubleVector = Vector<double>;

[[gnu::always_inline]] inline FloatVector square_root(FloatVector v) {
#if defined(CLEBSCH_ISA_AVX512)
    return (FloatVector)_mm512_maskz_sqrt_ps(0xffff, (__m512)v);  // the unmasked form makes GCC 12 warn
#elif defined(CLEBSCH_ISA_AVX2)
    return (FloatVector)_mm256_sqrt_ps((__m256)v);
#elif defined(CLEBSCH_ISA_NEON)
    return (FloatVector)vsqrtq_f32((float32x4_t)v);
#elif defined(__SSE2__)
    return (FloatVector)_mm_sqrt_ps((__m128)v);
#else
    for (int k = 0; k < lanes_of<float>; ++k) v[k] = __builtin_sqrtf(v[k]);
    return v;
#endif
}
[[gnu::always_inline]] inline DoubleVector square_root(DoubleVector v) {
#if defined(CLEBSCH_ISA_AVX512)
    return (DoubleVector)_mm512_maskz_sqrt_pd(0xff, (__m512d)v);
#elif defined(CLEBSCH_ISA_AVX2)
    return (DoubleVector)_mm256_sqrt_pd((__m256d)v);
#elif defined(CLEBSCH_ISA_NEON)
    return (DoubleVector)vsqrtq_f64((float64x2_t)v);
#elif defined(__SSE2__)
    return (DoubleVector)_mm_sqrt_pd((__m128d)v);
#else
    for (int k = 0; k < lanes_of<double>; ++k) v[k] = __builtin_sqrt(v[k]);
    return v;
#endif
}

template <class T>
[[gnu::always_inline]] inline Integers<T> bits(Vector<T> v) {
    return reinterpret_cast<Integers<T>>(v);
}
template <class T>
[[gnu::always_inline]] inline Vector<T> magnitude(Vector<T> v) {
    return reinterpret_cast<Vector<T>>(bits<T>(v) & ~Numbers<T>::sign_bit);
}
template <class T>
[[gnu::always_inline]] inline Vector<T> with_sign_of(Vector<T> size, Vector<T> sign) {
    return reinterpret_cast<Vector<T>>(bits<T>(size) | (bits<T>(sign) & Numbers<T>::sign_bit));
}
/// 2^n for integers n in the range of exponents.
template <class T>
[[gnu::always_inline]] inline Vector<T> power_of_two(Integers<T> n) {
    return reinterpret_cast<Vector<T>>((n + Numbers<T>::bias) << Numbers<T>::mantissa_bits);
}

/// x = n ln 2 + r; gives e^r - 1.
template <class T>
struct ExpParts {
    Vector<T> p;
    Integers<T> n;
};
template <class T>
[[gnu::always_inline]] inline ExpParts<T> exp_parts(Vector<T> x) {
    using N = Numbers<T>;
    const Vector<T> shifted = x * static_cast<T>(log2_e) + N::round_magic;
    const Vector<T> n = shifted - N::round_magic;
    const Vector<T> r = (x - n * N::ln2_high) - n * N::ln2_low;
    const Vector<T> q = polynomial<T, 2, N::exp_terms>(series<T>.exp, r);
    return {r + r * r * q, bits<T>(shifted) - N::magic_bits};
}

template <class T>
[[gnu::always_inline]] inline Vector<T> exponential(Vector<T> x) {
    using N = Numbers<T>;
    x = x > N::exp_highest ? broadcast<T>(N::exp_highest) : x;
    x = x < N::exp_lowest ? broadcast<T>(N::exp_lowest) : x;
    const ExpParts<T> parts = exp_parts<T>(x);
    // In two factors, so that the largest and the subnormal results come out right.
    const Integers<T> half = parts.n >> 1;
    return (parts.p + T{1}) * power_of_two<T>(half) * power_of_two<T>(parts.n - half);
}

/// e^x - 1 without loss near 0; |x| up to 80, where 2^n is one number.
template <class T>
[[gnu::always_inline]] inline Vector<T> exponential_minus_one(Vector<T> x) {
    const ExpParts<T> parts = exp_parts<T>(x);
    const Vector<T> scale = power_of_two<T>(parts.n);
    return parts.p * scale + (scale - T{1});
}

/// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s), s = (m - 1) / (m + 1).
template <class T>
[[gnu::always_inline]] inline Vector<T> logarithm(Vector<T> x) {
    using N = Numbers<T>;
    const Integers<T> tiny = x < N::smallest_normal;
    const Vector<T> scaled = tiny ? x * N::rescale : x;
    const Integers<T> shifted = bits<T>(scaled) - N::root_half;
    const Integers<T> e = shifted >> N::mantissa_bits;
    const Vector<T> m = reinterpret_cast<Vector<T>>((shifted & N::mantissa_mask) + N::root_half);
    const Vector<T> exponent =
        reinterpret_cast<Vector<T>>(e + N::magic_bits) - N::round_magic - (tiny ? broadcast<T>(N::rescale_bits) : broadcast<T>(0));
    const Vector<T> f = m - T{1};
    const Vector<T> s = f / (f + T{2});
    const Vector<T> z = s * s;
    const Vector<T> r = polynomial<T, 1, N::log_terms>(series<T>.log, z);
    // log(1 + f) = f - (h - s (h + z r)), h = f^2 / 2: the large part, f, is exact.
    const Vector<T> h = f * f * T(0.5);
    Vector<T> result = exponent * N::ln2_high - ((h - (s * (h + z * r) + exponent * N::ln2_low)) - f);
    result = x == T{0} ? broadcast<T>(-__builtin_inf()) : result;
    result = x < T{0} ? broadcast<T>(__builtin_nan("")) : result;
    return ((x == static_cast<T>(__builtin_inf())) | (x != x)) ? x : result;
}

/// log(1 + e) for 0 <= e <= 1.
template <class T>
[[gnu::always_inline]] inline Vector<T> logarithm_of_one_plus(Vector<T> e) {
    const Vector<T> u = e + T{1};
    return logarithm<T>(u) + (e - (u - T{1})) / u;
}

/// An angle as quarter * pi/2 + r, |r| <= pi/4.
template <class T>
struct Angle {
    Vector<T> r;
    Integers<T> quarter;
};
[[gnu::always_inline]] inline Angle<double> reduced(DoubleVector x) {
    using N = Numbers<double>;
    const DoubleVector shifted = x * two_over_pi + N::round_magic;
    const DoubleVector n = shifted - N::round_magic;
    return {((x - n * half_pi[0]) - n * half_pi[1]) - n * half_pi[2], bits<double>(shifted) - N::magic_bits};
}
[[gnu::always_inline]] inline Angle<float> reduced(FloatVector x) {
    // In float64: near multiples of pi/2 the remainder needs more bits than a float has.
    using Wide = double __attribute__((vector_size(2 * vector_bytes)));
    using WideIntegers = std::int64_t __attribute__((vector_size(2 * vector_bytes)));
    using N = Numbers<double>;
    const Wide wide = __builtin_convertvector(x, Wide);
    const Wide shifted = wide * two_over_pi + N::round_magic;
    const Wide n = shifted - N::round_magic;
    const Wide r = (wide - n * half_pi[0]) - n * half_pi[1];
    return {__builtin_convertvector(r, FloatVector),
            __builtin_convertvector(reinterpret_cast<WideIntegers>(shifted) - N::magic_bits, Integers<float>)};
}

template <class T>
struct SineCosine {
    Vector<T> sine, cosine;
};
template <class T>
[[gnu::always_inline]] inline SineCosine<T> sine_cosine_of_reduced(const Angle<T>& angle) {
    using N = Numbers<T>;
    const Vector<T> z = angle.r * angle.r;
    const Vector<T> sine = angle.r + angle.r * z * polynomial<T, 1, N::sin_terms - 1>(series<T>.sin, z);
    const Vector<T> c = polynomial<T, 2, N::cos_terms - 1>(series<T>.cos, z);
    const Vector<T> half = z * T(0.5);
    const Vector<T> w = T{1} - half;
    const Vector<T> cosine = w + (((T{1} - w) - half) + z * z * c);
    const Integers<T> swapped = (angle.quarter & 1) != 0;
    const Vector<T> a = swapped ? cosine : sine, b = swapped ? sine : cosine;
    return {(angle.quarter & 2) != 0 ? -a : a, ((angle.quarter + 1) & 2) != 0 ? -b : b};
}

template <class T>
[[gnu::always_inline]] inline bool any(Integers<T> mask) {
    bool result = false;
    for (int k = 0; k < lanes_of<T>; ++k) result |= mask[k] != 0;
    return result;
}

inline float library_sine(float x) { return __builtin_sinf(x); }
inline double library_sine(double x) { return __builtin_sin(x); }
inline float library_cosine(float x) { return __builtin_cosf(x); }
inline double library_cosine(double x) { return __builtin_cos(x); }
inline float library_power(float x, double p) { return static_cast<float>(__builtin_pow(static_cast<double>(x), p)); }
inline double library_power(double x, double p) { return __builtin_pow(x, p); }

template <class T>
[[gnu::always_inline]] inline SineCosine<T> sine_cosine(Vector<T> x) {
    SineCosine<T> result = sine_cosine_of_reduced<T>(reduced(x));
    const Integers<T> out_of_range = ~(magnitude<T>(x) < static_cast<T>(largest_angle));
    if (__builtin_expect(any<T>(out_of_range), 0)) {
        for (int k = 0; k < lanes_of<T>; ++k) {
            if (out_of_range[k] == 0) continue;
            result.sine[k] = library_sine(x[k]);
            result.cosine[k] = library_cosine(x[k]);
        }
    }
    return result;
}

template <class T>
[[gnu::always_inline]] inline Vector<T> sigmoid(Vector<T> x) {
    const Vector<T> e = exponential<T>(-magnitude<T>(x));
    return (x < T{0} ? e : broadcast<T>(1)) / (e + T{1});
}

template <class T>
[[gnu::always_inline]] inline Vector<T> hyperbolic_tangent(Vector<T> x) {
    Vector<T> size = magnitude<T>(x);
    size = size > Numbers<T>::tanh_highest ? broadcast<T>(Numbers<T>::tanh_highest) : size;
    const Vector<T> e = exponential_minus_one<T>(size + size);
    return with_sign_of<T>(e / (e + T{2}), x);
}

// e^(x^2) (1 - erf x) as a polynomial in 2 / (2 + x) - middle, interpolated at Chebyshev points on [1, 4] and [1, 6]; relative errors
// 9e-10, 3e-16.
constexpr double erfc_middle_float = 0.5, erfc_middle_double = 0.45833333333333333333;
constexpr float erfc_float[] = {0.255395676251903354F,  0.854371695228686042F,  0.966632844362897812F,   0.631828186180267935F,
                                0.0597142616208481559F, -0.223835373235198642F, -0.0535417583135107701F, 0.120852433163171017F};
constexpr double erfc_double[] = {0.221429540229931835,   0.777089126596919896,   0.888435542596118423,    0.618078370241265682,
                                  0.104649676568714723,   -0.205861742325997549,  -0.0897788762338268926,  0.11621381299821865,
                                  0.0460736288458640818,  -0.0947548298248593367, -0.00385501836310450706, 0.0817994412234516854,
                                  -0.0392822607496587277, -0.0535290851570932705, 0.0633698055982603297,   0.00730113499585691705};

template <class T>
[[gnu::always_inline]] inline Vector<T> error_function(Vector<T> x) {
    using N = Numbers<T>;
    constexpr bool is_float = sizeof(T) == 4;
    // Below 1: the Taylor series.
    const Vector<T> z = x * x;
    const Vector<T> p = polynomial<T, 1, N::erf_terms - 1>(series<T>.erf, z);
    const Vector<T> near = x + x * (static_cast<T>(two_over_root_pi - 1.0) + z * p);
    // From 1 on: 1 - (1 - erf), whose subtrahend is at most 0.16.
    Vector<T> size = magnitude<T>(x);
    size = size > N::erf_highest ? broadcast<T>(N::erf_highest) : size;
    const Vector<T> t = T{2} / (size + T{2}) - static_cast<T>(is_float ? erfc_middle_float : erfc_middle_double);
    Vector<T> g;
    if constexpr (is_float) g = polynomial<T, 0, 7>(erfc_float, t);
    else g = polynomial<T, 0, 15>(erfc_double, t);
    const Vector<T> far = with_sign_of<T>(T{1} - exponential<T>(-size * size) * g, x);
    return size < T{1} ? near : far;
}

/// x^n for an integer n >= 0 by squaring.
template <class T>
[[gnu::always_inline]] inline Vector<T> integer_power(Vector<T> x, int n) {
    Vector<T> result = broadcast<T>(1);
    for (; n > 0; n >>= 1) {
        if ((n & 1) != 0) result *= x;
        if (n > 1) x *= x;
    }
    return result;
}

// ---- functions of arrays ----

/// Calls f on every vector of x; the last, incomplete one is filled with ones.
template <class T, class F>
[[gnu::always_inline]] inline void each_vector(const T* x, T* y, std::int64_t count, F f) {
    constexpr int lanes = lanes_of<T>;
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store<T>(y + i, f(load<T>(x + i)));
    if (i == count) return;
    T rest[lanes];
    for (int k = 0; k < lanes; ++k) rest[k] = i + k < count ? x[i + k] : T{1};
    store<T>(rest, f(load<T>(rest)));
    for (int k = 0; i + k < count; ++k) y[i + k] = rest[k];
}

/// n-th derivative f_n of sin(x)/x: x f_n = sin^(n)(x) - n f_(n-1) above x = 1 + n/e (below, it would multiply errors by up to n!/x^n), and
/// there the series f_n = sum over k >= n/2 of (-1)^k x^(2k-n) / ((2k+1) (2k-n)!). For n = 0 the first form serves all but x = 0.
template <class T>
void sinc_derivative(int n, const T* x, T* y, std::int64_t count) {
    constexpr int most_terms = 64;
    const T limit = n == 0 ? T{0} : static_cast<T>(1 + n / 2.718281828459045);
    T coefficients[most_terms];
    const int first = (n + 1) / 2;
    const int wanted = Numbers<T>::sinc_terms + n / 2;
    const int terms = n == 0 ? 1 : (wanted < most_terms ? wanted : most_terms);
    double inverse_factorial = 1;  // 1 / (2k-n)!
    for (int k = 0; k < terms; ++k) {
        const int degree = 2 * (first + k) - n;
        if (degree >= 2) inverse_factorial /= static_cast<double>(degree) * (degree - 1);
        coefficients[k] = static_cast<T>(((first + k) % 2 == 0 ? 1 : -1) * inverse_factorial / (2 * (first + k) + 1));
    }
    each_vector<T>(x, y, count, [&](Vector<T> v) {
        const Vector<T> z = v * v;
        Vector<T> small = broadcast<T>(coefficients[terms - 1]);
        for (int k = terms - 2; k >= 0; --k) small = small * z + coefficients[k];
        if (n % 2 == 1) small *= v;
        const SineCosine<T> s = sine_cosine<T>(v);
        const Vector<T> inverse = T{1} / v;
        Vector<T> large = s.sine * inverse;
        for (int order = 1; order <= n; ++order) {
            const Vector<T> base = order % 2 == 0 ? s.sine : s.cosine;
            large = ((order & 2) != 0 ? -base - large * static_cast<T>(order) : base - large * static_cast<T>(order)) * inverse;
        }
        if (n == 0) large = s.sine / v;
        const Vector<T> size = magnitude<T>(v);
        large = size == static_cast<T>(__builtin_inf()) ? broadcast<T>(0) : large;
        return size <= limit ? small : large;
    });
}

/// Whole and half exponents by multiplications and a square root.
template <class T>
void power(double p, const T* x, T* y, std::int64_t count) {
    const double size = p < 0 ? -p : p;
    const int whole = size <= 16 ? static_cast<int>(size) : 0;
    const bool integer = size == whole, half = size == whole + 0.5;
    if (!integer && !half) {
        for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] == T{0} && p < 0 ? T{0} : library_power(x[i], p);
        return;
    }
    const bool negative = p < 0;
    each_vector<T>(x, y, count, [=](Vector<T> v) {
        Vector<T> result = integer_power<T>(v, whole);
        if (half) result = whole == 0 ? square_root(v) : result * square_root(v);
        if (!negative) return result;
        return v == T{0} ? broadcast<T>(0) : T{1} / result;
    });
}

template <class T>
void apply(const FunctionCode& function, const T* x, T* y, std::int64_t count) {
    using V = Vector<T>;
    switch (static_cast<FunctionKind>(function.kind)) {
        case FunctionKind::exp:
            return each_vector<T>(x, y, count, [](V v) { return exponential<T>(v); });
        case FunctionKind::log:
            return each_vector<T>(x, y, count, [](V v) { return logarithm<T>(v); });
        case FunctionKind::sin:
            return each_vector<T>(x, y, count, [](V v) { return sine_cosine<T>(v).sine; });
        case FunctionKind::cos:
            return each_vector<T>(x, y, count, [](V v) { return sine_cosine<T>(v).cosine; });
        case FunctionKind::tanh:
            return each_vector<T>(x, y, count, [](V v) { return hyperbolic_tangent<T>(v); });
        case FunctionKind::sigmoid:
            return each_vector<T>(x, y, count, [](V v) { return sigmoid<T>(v); });
        case FunctionKind::silu:
            return each_vector<T>(x, y, count, [](V v) { return v * sigmoid<T>(v); });
        case FunctionKind::softplus:
            return each_vector<T>(x, y, count, [](V v) {
                return (v > T{0} ? v : broadcast<T>(0)) + logarithm_of_one_plus<T>(exponential<T>(-magnitude<T>(v)));
            });
        case FunctionKind::erf:
            return each_vector<T>(x, y, count, [](V v) { return error_function<T>(v); });
        case FunctionKind::absolute:
            return each_vector<T>(x, y, count, [](V v) { return magnitude<T>(v); });
        case FunctionKind::sign:
            return each_vector<T>(x, y, count, [](V v) { return v > T{0} ? broadcast<T>(1) : v < T{0} ? broadcast<T>(-1) : v * T{0}; });
        case FunctionKind::relu:
            return each_vector<T>(x, y, count, [](V v) { return v < T{0} ? broadcast<T>(0) : v; });
        case FunctionKind::step:
            return each_vector<T>(x, y, count, [](V v) { return v > T{0} ? broadcast<T>(1) : broadcast<T>(0); });
        case FunctionKind::power:
            return power<T>(function.parameter, x, y, count);
        case FunctionKind::sinc:
            return sinc_derivative<T>(static_cast<int>(function.parameter), x, y, count);
    }
}

}  // namespace

void apply_function(const FunctionCode& function, const float* x, float* y, std::int64_t count) { apply(function, x, y, count); }
void apply_function(const FunctionCode& function, const double* x, double* y, std::int64_t count) { apply(function, x, y, count); }

}  // namespace clebsch::CLEBSCH_ISA
