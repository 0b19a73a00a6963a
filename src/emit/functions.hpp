#pragma once
// Unary functions of programs as CUDA C++.
#include <string>

#include "describe/program.hpp"
#include "emit/text.hpp"

namespace clebsch {

/// Writes `static __device__ T name(T x)`, T the type of the arithmetic (float32 or float64). Means what describe's evaluate() says: power
/// of zero with a negative exponent is zero, sinc has its limit.
void write_function(SourceText& source, const std::string& name, const Function& function, GpuNumber type);

}  // namespace clebsch
