#pragma once
// A rewrite of programs before they are divided into groups (schedule/program_groups.hpp): sums of what becomes known at different times.
#include "describe/program.hpp"

namespace clebsch {

/// A polynomial that adds products of values of several depths, row by row, would wait for the deepest and keep the others until then: the
/// gradient of a radial basis those of every layer's weights. Its paths of one depth become a node of their own, whose result is added
/// later, where the values that only they read have at least twice as many numbers per row as the result.
Program with_partial_sums(const Program& program);

}  // namespace clebsch
