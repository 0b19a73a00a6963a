#include "model/random.hpp"

#include <cmath>

// Compiled without contraction into fused multiply-adds (src/CMakeLists.txt), so that every operation rounds as written.
namespace clebsch {

namespace {

constexpr double log_of_2 = 0.693147180559945309417;

/// Evenly spread over (-1, 1): the middle of one of 2^53 intervals, so never an end.
double symmetric_uniform(std::uint32_t high, std::uint32_t low) {
    const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52 - 1.0;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
        key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
    }
    return counter;
}

std::array<double, 2> normal_pair(std::uint64_t seed, RandomPurpose purpose, std::uint64_t step, std::uint32_t index) {
    const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    for (std::uint32_t attempt = 0;; ++attempt) {
        const auto bits = philox({index, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32),
                                  static_cast<std::uint32_t>(purpose) << 24 | attempt},
                                 key);
        const double u = symmetric_uniform(bits[0], bits[1]), v = symmetric_uniform(bits[2], bits[3]);
        const double square = u * u + v * v;
        if (!(square < 1.0 && square > 0.0)) continue;  // one attempt in five is outside the circle
        const double factor = std::sqrt(-2.0 * portable_log(square) / square);
        return {u * factor, v * factor};
    }
}

double portable_log(double x) {
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);  // in [1/2, 1), exact
    if (mantissa < 0.70710678118654752) mantissa *= 2, --exponent;
    // log m = 2 artanh s, |s| < 0.1716: the first term left out is below 1e-17.
    const double s = (mantissa - 1.0) / (mantissa + 1.0), square = s * s;
    double sum = 0.0;
    for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
    return exponent * log_of_2 + 2.0 * s * sum;
}

double portable_exp(double x) {
    const double exponent = std::nearbyint(x / log_of_2);
    const double rest = x - exponent * log_of_2;  // at most 0.35 in size
    double sum = 1.0;
    for (int k = 14; k >= 1; --k) sum = 1.0 + sum * rest / k;
    return std::ldexp(sum, static_cast<int>(exponent));
}

}  // namespace clebsch
