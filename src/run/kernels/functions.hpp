#pragma once
// The unary functions of programs, on arrays.
#include <cstdint>

#include "describe/program.hpp"
#include "run/kernels/instruction_sets.hpp"

namespace clebsch {

/// A function as kernels take it: a plain struct, so that kernels share no inline function with the rest.
struct FunctionCode {
    int kind = 0;  ///< FunctionKind as a number
    double parameter = 0;
};
inline FunctionCode code_of(const Function& function) { return {static_cast<int>(function.kind), function.parameter}; }

/// y[i] = f(x[i]) for i < count; y may be x. What a number becomes does not depend on its position: results are bitwise the same however
/// arrays are divided.
CLEBSCH_PER_INSTRUCTION_SET(                                                                          //
    void apply_function(const FunctionCode& function, const float* x, float* y, std::int64_t count);  //
    void apply_function(const FunctionCode& function, const double* x, double* y, std::int64_t count);)

}  // namespace clebsch
