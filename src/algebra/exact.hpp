#pragma once
// Exact numbers of the form  factor * sqrt(product of primes^exponent): what coupling coefficients and harmonics are made of.
#include <array>

namespace clebsch {

/// A positive rational whose numerator and denominator have no prime factor above 37: quotients of factorials up to 37!, and small
/// integers.
class PrimePowers {
 public:
    /// Multiplies by (value)^power, 1 <= value <= 40. Throws std::logic_error when value has a larger prime factor.
    PrimePowers& multiply(int value, int power = 1);
    /// Multiplies by (n!)^power, 0 <= n <= 37, the largest that three angular momenta of 12 need.
    PrimePowers& multiply_factorial(int n, int power = 1);

    static constexpr std::array<int, 12> primes = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    const std::array<int, 12>& exponents() const { return exponents_; }

 private:
    std::array<int, 12> exponents_{};
};

/// factor * sqrt(square), held exactly.
struct ExactRoot {
    __extension__ typedef __int128 Integer;

    Integer factor = 0;
    PrimePowers square;
};

/// The double nearest to the exact value (ties to even), decided by integer comparison, whatever the guess it starts from.
/// Throws std::logic_error when numerator or denominator need more than 2048 bits.
double to_double(const ExactRoot& value);

/// n! / (k! (n-k)!), exact for n <= 37; 0 when k < 0 or k > n.
ExactRoot::Integer binomial(int n, int k);

}  // namespace clebsch
