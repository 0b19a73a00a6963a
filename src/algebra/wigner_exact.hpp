#pragma once
// The exact values behind wigner_3j, for what is computed from them without rounding twice.
#include "algebra/exact.hpp"

namespace clebsch {

/// The element (i, j, k) of wigner_3j(l1, l2, l3) in the sign convention of e3nn 0.5: a single signed root of a rational.
/// Derivation: real component m holds the complex components +m and -m, so at most one pair of opposite SU(2) coefficients meets in a real
/// one, and these two are equal up to sign. Racah's formula gives the coefficient. Degrees 0 to 12; 0 where no coefficient exists. Not
/// cached.
ExactRoot exact_wigner_3j(int l1, int l2, int l3, int i, int j, int k);

}  // namespace clebsch
