#pragma once
// Polynomials that treat every number of a value alike: products of values number by number, sums, copies.
#include <vector>

#include "describe/program.hpp"

namespace clebsch {

/// How an element-wise operation sees a value: the same memory in as few segments as possible, one component each where that is possible.
std::vector<Segment> flat_segments(const Value& value);

/// One path per segment of `segments` that is not empty: output += scale * product of factors, channel by channel and component by
/// component. All operands of the polynomial that are named (by position) have these segments. At least one factor.
void add_elementwise(Polynomial& polynomial, double scale, const std::vector<int>& factors, int output,
                     const std::vector<Segment>& segments);

/// One product of values of an element-wise sum.
struct ElementwiseTerm {
    double scale = 1;
    std::vector<int> factors;  ///< values of the program; at least one
};

/// The node output = sum of terms; all values have the space and arrangement of `output`. No terms: zero.
PolynomialNode elementwise_node(const std::vector<Value>& values, const std::vector<ElementwiseTerm>& terms, int output);

}  // namespace clebsch
