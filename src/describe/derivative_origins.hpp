#pragma once
// Derivatives of a polynomial that say where each operand comes from: what derivatives of programs are made of.
#include <set>
#include <span>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch {

struct Origin {
    enum class Kind : std::uint8_t { same, cotangent, gradient, tangent };
    Kind kind = Kind::same;
    int operand = 0;  ///< of the polynomial that was differentiated
};

struct DerivedPolynomial {
    Polynomial polynomial;
    std::vector<Origin> origins;  ///< one per operand of `polynomial`
};

/// Gradients of `inputs` given cotangents of `outputs` (positions of operands); other outputs are taken to have none.
DerivedPolynomial derive_reverse(const Polynomial& polynomial, std::span<const int> inputs, std::span<const int> outputs);
/// Tangents of all outputs given tangents of `inputs`.
DerivedPolynomial derive_forward(const Polynomial& polynomial, std::span<const int> inputs);

/// `name`, or `name` with the first of _2, _3, ... that is not taken; the result is added to `taken`.
std::string unique_name(const std::string& name, std::set<std::string>& taken);

}  // namespace clebsch
