#pragma once
// Segments from e3nn's order (mul_ir: the components of a channel together) to that of the kernels (ir_mul: the channels of a component
// together) and back.
#include <cstdint>

#include "run/kernels/instruction_sets.hpp"

namespace clebsch {

/// to[c * channels + u] = from[u * components + c], and the reverse. Arrays do not overlap; nothing outside them is touched.
CLEBSCH_PER_INSTRUCTION_SET(                                                                        //
    void components_apart(const float* from, float* to, std::int64_t channels, int components);     //
    void components_apart(const double* from, double* to, std::int64_t channels, int components);   //
    void components_together(const float* from, float* to, std::int64_t channels, int components);  //
    void components_together(const double* from, double* to, std::int64_t channels, int components);)

}  // namespace clebsch
