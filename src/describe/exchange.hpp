#pragma once
// Tensors that are symmetric under exchanges of axes, written as polynomials: far fewer entries than all arrangements of their indices.
#include <span>
#include <vector>

#include "describe/coefficients.hpp"

namespace clebsch {

/// `block` labels the axes; axes of a block are consecutive and may be exchanged freely. Of all entries that exchanges turn into each other
/// only the one with non-decreasing indices along every block is kept, with the sum over all of them as value (the coefficient of a
/// monomial).
struct ExchangeForm {
    std::vector<int> block;
    std::vector<CoefficientEntry> terms;  ///< sorted by index

    bool expanded() const;  ///< every axis a block by itself: the terms are the entries
};

/// `Coefficients::grouped` of a tensor in this form. Throws Error(unsupported) beyond 2^22 entries; `name` is for the message.
std::vector<CoefficientEntry> grouped(const ExchangeForm& tensor, std::span<const int> group, const std::string& name);

/// Sorts entries by index and adds up equal ones; zeros and sums that cancel to rounding are dropped.
void sort_and_merge(std::vector<CoefficientEntry>& entries);

}  // namespace clebsch
