#pragma once
// The pieces of `simplified` that other rewrites use.
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch {

/// The paths of a polynomial without duplicates and zeros, in a canonical order (docs/derivatives.md). Input factors are ordered; identical
/// factors, and axes in which named coefficients are symmetric, are assigned in increasing order; paths equal up to the names of letters
/// become one: scales of equal coefficients add up, different literal coefficients are added entry by entry. Named coefficients stay named,
/// except those of a single number; literals lose axes of extent 1.
/// Time: O(n log n) in the number of paths (paths that differ in nothing but named coefficients are compared with each other: there are
/// few).
std::vector<Path> simplified_paths(const Polynomial& polynomial);

}  // namespace clebsch
