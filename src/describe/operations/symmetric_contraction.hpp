#pragma once
// Powers of node features, channel by channel, coupled to irreps: MACE's symmetric contraction.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "describe/operations/path_builder.hpp"

namespace clebsch {

/// A basis of one's own for one output irrep and one correlation: entries over the concatenated components of the input irreps (one
/// channel: 0e+1o+2e has components 0..8), as MACE's U tensors hold them. Index: `correlation` input components, then the parameter, then
/// the output's component. The tensor need not be symmetric: it meets equal factors, so only its symmetric part matters.
struct ContractionBasis {
    int parameters = 0;
    std::vector<CoefficientEntry> entries;
};
/// By (output segment, correlation); correlations that are missing contribute nothing.
using ContractionBases = std::map<std::pair<int, int>, ContractionBasis>;

struct ContractionOptions {
    std::string rows = "node";
    /// For weights per species: row_of(index) with an index here.
    std::vector<Index> indices = {{"species", "node", "element", false}};
    OperandOptions x = {"x"}, out = {"out"};
    OperandOptions weights = {"weights", Layout::ir_mul, row_of("species")};
};

/// out[u, c] = sum over correlations nu = 1..correlation, parameters p of w[species, p, u] times the p-th coupling of nu factors x[u] to c.
/// All segments of `in` and of `out` have one multiplicity, the channels u. Irreps of `in` are distinct. Operands x, weights, out.
/// Weights, in order: output segment; correlation ascending; non-decreasing choices of input irreps (sorted order, lexicographic); the
/// coupling's number r of `symmetric(a,b,...;c;r)`. One segment of u channels each: a row is (parameter, channel) in C order.
Polynomial symmetric_contraction(const Irreps& in, const Irreps& out, int correlation, const ContractionOptions& options = {});

/// The same with bases of one's own. Input irreps may repeat. Weights: one segment per (output segment, correlation ascending) that has a
/// basis, of `parameters` components and u channels, components outer: (parameter, channel) in C order again.
Polynomial symmetric_contraction(const Irreps& in, const Irreps& out, const ContractionBases& bases,
                                 const ContractionOptions& options = {});

}  // namespace clebsch
