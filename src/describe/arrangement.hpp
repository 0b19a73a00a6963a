#pragma once
// When two descriptions of a row mean the same memory.
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch {

/// Whether both describe the same numbers in the same order, so that an array of one is an array of the other without a copy.
/// Segments of one component are plain runs of numbers in either layout, and runs that follow one another are one run: {4 x 1, 3 x 1} and
/// {7 x 1} agree. In mul_ir, neighbours of equal components are one longer segment: {2 x 3, 1 x 3} and {3 x 3} agree. A segment of one
/// channel may be read as either: {1 x 7} and {7 x 1} agree. Any other segment has to meet its like. Irreps are not compared.
bool same_arrangement(const std::vector<Segment>& a, Layout a_layout, const std::vector<Segment>& b, Layout b_layout);

}  // namespace clebsch
