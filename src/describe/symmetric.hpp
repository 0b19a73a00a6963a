#pragma once
// Couplings of several irreps that are symmetric under exchange of equal ones: the coefficients of a symmetric contraction
// (docs/symmetric-contraction.md says how the basis is chosen).
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algebra/irreps.hpp"
#include "describe/coefficients.hpp"

namespace clebsch {

/// One coupling as a polynomial in its inputs: `index` holds a component per input, non-decreasing among equal irreps, then the output's
/// component; `value` is the coefficient of that monomial, the sum of the tensor over all exchanges of equal irreps' components.
using SymmetricCoupling = std::vector<CoefficientEntry>;

/// An orthonormal basis of the symmetric couplings of `inputs` (non-decreasing, at least one) to `output`; empty when there are none.
/// As tensors T_r over all components they satisfy sum over inputs of T_r[..., m] T_s[..., n] = delta(r, s) delta(m, n).
/// Computed on first use and kept for the life of the process; thread safe. Throws Error(invalid_argument) for a list that is not sorted
/// and Error(unsupported) when an intermediate degree exceeds max_degree or the tensors would be too large.
std::shared_ptr<const std::vector<SymmetricCoupling>> symmetric_couplings(std::span<const Irrep> inputs, Irrep output);

/// "1o,1o,2e;2e": what stands before the number of the coupling in the name of its coefficients.
std::string symmetric_text(std::span<const Irrep> inputs, Irrep output);

}  // namespace clebsch
