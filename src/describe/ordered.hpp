#pragma once
// Rows in the order of an index: what makes sums through an index that is not sorted sums through one that is.
#include <string>
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch {

/// The polynomial with its rows in another order, the order of where the chain of indices `by` leads (first applied first). Instead of what
/// only the chain led to it takes two indices of its iteration space: `row`, which of the given rows is at each place, and `target`,
/// sorted, where the chain leads from there. Operands stay as they are: those of each row are reached through `row`, those behind the chain
/// through `target`, those behind other indices through `row` and then these.
Polynomial in_order_of(const Polynomial& polynomial, const std::vector<std::string>& by, const std::string& row, const std::string& target);

/// By one index, which must be one of the iteration space: with indices called `<index>_order` and `<index>_sorted`. Throws Error.
Polynomial in_order_of(const Polynomial& polynomial, const std::string& index);

}  // namespace clebsch
