#pragma once
// Spherical harmonics of high degree by recurrence: a rewrite of programs that keeps their meaning.
#include "describe/program.hpp"

namespace clebsch {

/// Replaces every path with coefficients harmonic(l), l >= 3, by one over three axes and values that hold lower harmonics.
/// The tensor of Y_l is the only equivariant map from l vectors to degree l, so that harmonic(l) of f_1 .. f_l is G_l(f_l, v) with v =
/// harmonic(l-1) of f_1 .. f_(l-1) and G_l of algebra/harmonics.hpp, whatever the vectors are: arguments, tangents, in any mixture. Equal
/// vectors come first, so that all degrees and all derivatives share the chain Y_2(x), Y_3(x), ..., which of one vector takes three terms a
/// number. An axis that belongs to the output (a gradient) or a cotangent on the degree's own axis stay in the last product. Expanded
/// monomials would lose 3e-4 at l = 12 in float32, the chain keeps rounding. New values are per iteration row, named after their degree.
/// Paths whose vectors have different channels are left as they are.
Program with_harmonic_chains(Program program);

}  // namespace clebsch
