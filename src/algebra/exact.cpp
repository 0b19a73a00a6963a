#include "algebra/exact.hpp"

#include <cmath>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

namespace clebsch {
namespace {

/// A non-negative integer below 2^2048. Only what comparing two products needs.
class BigUnsigned {
 public:
    explicit BigUnsigned(unsigned __int128 value) {
        for (; value != 0; value >>= 32) limbs_[size_++] = static_cast<std::uint32_t>(value);
    }

    void multiply(std::uint32_t factor) {
        std::uint64_t carry = 0;
        for (int i = 0; i < size_; ++i) {
            carry += std::uint64_t{limbs_[i]} * factor;
            limbs_[i] = static_cast<std::uint32_t>(carry);
            carry >>= 32;
        }
        if (carry != 0) append(static_cast<std::uint32_t>(carry));
    }

    void multiply(const BigUnsigned& factor) {
        BigUnsigned result(0);
        result.size_ = size_ + factor.size_;
        if (result.size_ > capacity) throw std::logic_error("clebsch: exact number above 2048 bits");
        for (int i = 0; i < size_; ++i) {
            std::uint64_t carry = 0;
            for (int j = 0; j < factor.size_; ++j) {
                carry += std::uint64_t{limbs_[i]} * factor.limbs_[j] + result.limbs_[i + j];
                result.limbs_[i + j] = static_cast<std::uint32_t>(carry);
                carry >>= 32;
            }
            result.limbs_[i + factor.size_] = static_cast<std::uint32_t>(carry);
        }
        while (result.size_ > 0 && result.limbs_[result.size_ - 1] == 0) --result.size_;
        *this = result;
    }

    void multiply_by_power_of_two(int exponent) {
        for (; exponent >= 31; exponent -= 31) multiply(std::uint32_t{1} << 31);
        multiply(std::uint32_t{1} << exponent);
    }

    std::strong_ordering operator<=>(const BigUnsigned& other) const {
        if (size_ != other.size_) return size_ <=> other.size_;
        for (int i = size_ - 1; i >= 0; --i) {
            if (limbs_[i] != other.limbs_[i]) return limbs_[i] <=> other.limbs_[i];
        }
        return std::strong_ordering::equal;
    }

 private:
    static constexpr int capacity = 64;

    void append(std::uint32_t limb) {
        if (size_ == capacity) throw std::logic_error("clebsch: exact number above 2048 bits");
        limbs_[size_++] = limb;
    }

    std::array<std::uint32_t, capacity> limbs_{};
    int size_ = 0;
};

}  // namespace

PrimePowers& PrimePowers::multiply(int value, int power) {
    for (std::size_t i = 0; i < primes.size(); ++i) {
        for (; value > 1 && value % primes[i] == 0; value /= primes[i]) exponents_[i] += power;
    }
    if (value != 1) throw std::logic_error("clebsch: exact number with a prime factor above 37");
    return *this;
}

PrimePowers& PrimePowers::multiply_factorial(int n, int power) {
    for (int value = 2; value <= n; ++value) multiply(value, power);
    return *this;
}

double to_double(const ExactRoot& value) {
    if (value.factor == 0) return 0.0;

    // value^2 = numerator / denominator, and a guess of |value|.
    const auto factor = static_cast<unsigned __int128>(value.factor < 0 ? -value.factor : value.factor);
    BigUnsigned numerator(factor), denominator(1);
    numerator.multiply(BigUnsigned(factor));
    long double quotient = 1.0L;
    for (std::size_t i = 0; i < PrimePowers::primes.size(); ++i) {
        const int prime = PrimePowers::primes[i], exponent = value.square.exponents()[i];
        for (int n = 0; n < std::abs(exponent); ++n) {
            (exponent > 0 ? numerator : denominator).multiply(static_cast<std::uint32_t>(prime));
            quotient = exponent > 0 ? quotient * prime : quotient / prime;
        }
    }
    int exponent = 0;
    const long double mantissa = std::frexp(static_cast<long double>(factor) * std::sqrt(quotient), &exponent);

    // |value| = root * 2^exponent with 2^55 < root < 2^57: scale so that root^2 = numerator / denominator.
    constexpr int bits = 56;
    exponent -= bits;
    (exponent > 0 ? denominator : numerator).multiply_by_power_of_two(2 * std::abs(exponent));
    const auto compare = [&](std::uint64_t root) {  // root <=> the exact one
        BigUnsigned square(root);
        square.multiply(square);
        square.multiply(denominator);
        return square <=> numerator;
    };
    auto floor = static_cast<std::uint64_t>(std::ldexp(mantissa, bits));
    while (std::is_gt(compare(floor))) --floor;
    while (std::is_lteq(compare(floor + 1))) ++floor;
    // The bits below a double's, and one that says whether anything follows them, make the conversion round correctly.
    const std::uint64_t sticky = 2 * floor + (std::is_neq(compare(floor)) ? 1 : 0);
    const double magnitude = std::ldexp(static_cast<double>(sticky), exponent - 1);
    return value.factor < 0 ? -magnitude : magnitude;
}

ExactRoot::Integer binomial(int n, int k) {
    if (k < 0 || k > n) return 0;
    ExactRoot::Integer result = 1;
    for (int i = 1; i <= k; ++i) result = result * (n - k + i) / i;
    return result;
}

}  // namespace clebsch
