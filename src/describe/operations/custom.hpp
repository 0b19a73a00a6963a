#pragma once
// Operations of one's own as text: segments and sparse coefficients.
#include <string_view>
#include <vector>

#include "describe/operations/symmetric_contraction.hpp"
#include "describe/polynomial.hpp"

namespace clebsch {

/// "2x1o+4x(3)": blocks of irreps, or plain channels of some components in brackets. Errors name `what`.
std::vector<Segment> parse_segments(std::string_view text, const std::string& what);

/// "0,1,2:0.5 1,0,2:-0.5": indices and value of every entry, separated by blanks.
std::vector<CoefficientEntry> parse_entries(std::string_view text, const std::string& what);

/// "0,3,23: 0,0,0,0,0:1.5 ...; 1,3,51: ...": output segment, correlation and number of parameters of each basis, then its entries (indices
/// of `ContractionBasis`).
ContractionBases parse_bases(std::string_view text);

}  // namespace clebsch
