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
    std::vector<MixGradient> gradients;
    std::vector<MixGradientPart> gradient_parts;
    std::vector<std::int64_t> buffer_size;  ///< numbers per row; buffer b is operand polynomial.operands.size() + b
    double multiply_adds = 0;
    std::vector<std::pair<int, int>> stored;  ///< (operand, segment) of outputs that are stored, not added to
    std::vector<int> paths;
    std::vector<bool> as_stored;  ///< [operand]: read or written as mul_ir has it
};

/// Where all that the program reads or writes of an operand in mul_ir are whole segments of few components, it does so as they are stored,
/// and the operand's rows need not be transposed.
void read_as_stored(const Polynomial& polynomial, MixProgram& program);

/// A program of the paths among `candidates` that are together gradients of sums over channels u of w_u (x_u . y): that of x with those of
/// y, of w or of both, where w is a weight (u) or the product of weights (u, v) with numbers (v).
MixProgram gradients_made_together(const Polynomial& polynomial, const std::vector<int>& candidates);

/// Whether `paths` paths are all that the polynomial has into this segment, of an output with a row per row.
bool is_alone(const Polynomial& polynomial, const Factor& output, int paths);

/// The paths among `candidates` that this family can compute, sharing products and matrix products that are the same.
MixProgram schedule_mix(const Polynomial& polynomial, const std::vector<int>& candidates);

}  // namespace clebsch
