#pragma once
// The terms family: channel-wise polynomials as straight-line work on tiles of channels, monomials, sums of them and products of both.
#include <compare>
#include <cstdint>
#include <vector>

#include "describe/polynomial.hpp"
#include "run/kernels/terms.hpp"

namespace clebsch {

/// One number per row (and channel): a component of a segment.
struct TermsVariable {
    int operand = 0, segment = 0, component = 0;
    bool per_channel = true;

    friend auto operator<=>(const TermsVariable&, const TermsVariable&) = default;
};

/// coefficient * tile a * tile b * scalar. Tile 0 is one in every channel; b and scalar may be absent (-1).
struct TermsProduct {
    int a = 0, b = -1;
    double coefficient = 1;
    int scalar = -1;
};

/// The work on paths of one number of channels; no pointers, no instruction set. Slots of scalars and tiles are numbered by the inputs
/// (tiles from 1 on), then by the steps' results, in order.
struct TermsProgram {
    std::int64_t channels = 0;
    std::vector<TermsVariable> inputs, outputs;
    std::vector<TermsStep> scalar_steps, steps;
    std::vector<TermsProduct> terms;              ///< of the steps that are sums
    std::vector<std::vector<TermsProduct>> sums;  ///< of each output
    std::vector<int> paths;
};

/// The channel-wise paths among `candidates`, a program for each number of channels.
std::vector<TermsProgram> schedule_terms(const Polynomial& polynomial, const std::vector<int>& candidates);

}  // namespace clebsch
