#pragma once
// The mix family: paths with a weight matrix (uvw, linear maps and their derivatives). See run/kernels/mix.hpp for the form they are
// brought into.
#include <cstdint>
#include <utility>
#include <vector>

#include "describe/polynomial.hpp"
#include "run/kernels/mix.hpp"

namespace clebsch {

/// What is computed and in which order; no pointers, no instruction set.
struct MixProgram {
    std::vector<MixStep> steps;
    std::vector<MixProduct> products;
    std::vector<MixEntry> entries;
    std::vector<MixScalarTerm> terms;
    std::vector<MixNumbers> scalars;
    std::vector<MixMultiply> multiplies;
    std::vector<MixOuter> outers;
    std::vector<MixNarrow> narrows;
    std::vector<MixNarrowPart> narrow_parts;
    std::vector<std::int64_t> buffer_size;  ///< numbers per row; buffer b is operand polynomial.operands.size() + b
    double multiply_adds = 0;
    std::vector<std::pair<int, int>> stored;  ///< (operand, segment) of outputs that are stored, not added to
    std::vector<int> paths;
    std::vector<bool> as_stored;  ///< [operand]: read as mul_ir has it
};

/// Where all that the program reads of an operand in mul_ir are whole segments of few components, it reads them as they are stored, and the
/// operand's rows need not be transposed.
void read_as_stored(const Polynomial& polynomial, MixProgram& program);

/// The paths among `candidates` that this family can compute, sharing products and matrix products that are the same.
MixProgram schedule_mix(const Polynomial& polynomial, const std::vector<int>& candidates);

}  // namespace clebsch
