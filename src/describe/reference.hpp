#pragma once
// The meaning of a description: a slow evaluator in long double, written to be read. Every backend is tested against it.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"
#include "describe/program.hpp"

namespace clebsch {

/// Row-major rows x size numbers in the operand's own layout.
using ReferenceArray = std::vector<long double>;

/// What a call provides: rows of every space, index arrays by name, input arrays by operand / value name.
struct ReferenceInputs {
    std::map<std::string, std::int64_t> rows;
    std::map<std::string, std::vector<std::int64_t>> indices;
    std::map<std::string, ReferenceArray> arrays;
};

/// Outputs by name. Throws Error naming the operand when a space, index or array is missing or of the wrong size, or an index is out of
/// range.
std::map<std::string, ReferenceArray> evaluate(const Polynomial& polynomial, const ReferenceInputs& inputs);
std::map<std::string, ReferenceArray> evaluate(const Program& program, const ReferenceInputs& inputs);

}  // namespace clebsch
