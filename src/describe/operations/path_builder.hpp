#pragma once
// What every builder of operations needs: operands with a layout and rows, and paths without empty or needless letters.
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch {

/// How a builder is to name, lay out and address one operand.
struct OperandOptions {
    std::string name;
    Layout layout = Layout::mul_ir;
    Addressing rows = {};  ///< each row, unless said otherwise
};

Operand make_operand(const OperandOptions& options, std::vector<Segment> segments, Role role);

/// Appends a path. Letters of extent 1 are dropped from all factors, so that a second operand of one channel reads as having none. Nothing
/// is appended when the path cannot contribute: scale 0, no channels, no pair u < v. Returns whether it was appended.
bool add_path(Polynomial& polynomial, std::vector<Factor> factors, Coefficients coefficients, double scale,
              const std::vector<std::pair<char, std::int64_t>>& extents);

/// Product of numbers of channels; throws where it exceeds 2^63.
std::int64_t channel_product(std::initializer_list<std::int64_t> counts);

/// For every number of a row of an output: whether any path writes it. (e3nn's output_mask: slots without an instruction stay zero.)
std::vector<bool> output_mask(const Polynomial& polynomial, std::string_view output);

}  // namespace clebsch
