#pragma once
// The packed program of the mix family (channel-mixing products); schedule/mix.cpp makes it, run/kernels/mix*.cpp run it.
//
// A weight W of one component and several letters is a matrix: the letters before a split number its rows, those after it its columns. A
// path becomes
//     product:   P[c, s] = coefficients times the factors on one side of W           (not made when that side is one operand as it is)
//     multiply:  T[c, d] = sum_s W[s, d] P[c, s]          (a matrix product over all rows and components of a block if W is shared)
//     product:   output = coefficients times T and the factors on the other side     (not made when T is the output itself)
// and a path whose output is W is  outer: W[p, s] += sum_c P[c, p] Q[c, s].  Products and T are kept per row in scratch buffers, which
// count as operands beyond the polynomial's. Where T is the output itself and has few columns, vectors go along s instead, and the sums of
// all such paths into the output stay in registers:
//     narrow:    output[c, d] += sum over paths of sum_s W[s, d] P[c, s]             (P, if it is simple, is never stored)
// Paths that are gradients of such a sum of scalar products, P[s] = x[s] . y, that of x and another or both, are made in one pass over x:
//     gradient:  dx[s] = T[s] y,   dy += sum_s x[s] T[s],   P[s] for dW              (T[s] = sum_d W[s, d] g[d], or w[s] g)
//
// Plain structs of pointers: see run/kernels/instruction_sets.hpp for why.
#include <cstdint>

#include "run/block.hpp"
#include "run/kernels/instruction_sets.hpp"

namespace clebsch {

inline constexpr int mix_vectors = 4;    ///< most channel-carrying factors of one product
inline constexpr int mix_buffers = 128;  ///< most scratch buffers of one program

/// Numbers of a row that two nested loops walk: offset + outer * outer_stride + inner * inner_stride, inner_stride 0 or 1.
struct MixNumbers {
    int operand = 0;
    std::int64_t offset = 0, outer_stride = 0, inner_stride = 0;
};

/// coefficient * product of `count` single numbers (MixView::scalar).
struct MixScalarTerm {
    double coefficient = 0;
    int first = 0, count = 0;
};

/// to (+)= (sum of scalar terms) * product of vectors, over outer x inner; where `to` has stride 0 the loop is summed.
struct MixEntry {
    MixNumbers to;
    bool store = false;
    std::int64_t outer = 1, inner = 1;
    int vectors = 0;
    MixNumbers vector[mix_vectors];
    int first_term = 0, terms = 0;
};
struct MixProduct {
    int first_entry = 0, entries = 0;
};

/// `components` rows of channels inside an operand's row, `stride` apart.
struct MixRows {
    int operand = 0;
    std::int64_t offset = 0, stride = 0;
};

/// to[c, d] (+)= scale * sum_s W[s, d] from[c, s]; W is stored rows x columns, `transposed`: s runs over its columns.
struct MixMultiply {
    MixRows from = {}, to = {};
    int components = 0;
    std::int64_t sources = 0, targets = 0;
    int weight = 0;  ///< operand
    std::int64_t weight_offset = 0;
    bool transposed = false, shared = false, store = false;
    bool gathered = false;       ///< rows reach the weight through an index: several of a block may have the same
    std::int64_t packed_at = 0;  ///< shared: in elements, where `prepare` put the panels
    double scale = 1;
};

/// W[p, s] (+)= scale * sum_c left[c, p] right[c, s].
struct MixOuter {
    MixRows left = {}, right = {};
    int components = 0;
    std::int64_t rows = 0, columns = 0;
    int weight = 0;
    std::int64_t weight_offset = 0;
    bool shared = false, store = false;
    double scale = 1;
};

inline constexpr int mix_narrow_targets = 6;  ///< most targets of a narrow step
inline constexpr int mix_narrow_vectors = 5;  ///< most vectors of one of its parts, which has an odd number of them

/// P[s] = sum over v < vectors of coefficient[v] * number[v] * vector[v][s], and a matrix, sources x targets or, `transposed`, targets x
/// sources.
struct MixNarrowPart {
    int vectors = 0, operand = 0, number_operand = -1;  ///< -1: no numbers
    std::int64_t offset[mix_narrow_vectors] = {}, number_offset[mix_narrow_vectors] = {};
    double coefficient[mix_narrow_vectors] = {};
    std::int64_t sources = 0;
    int weight = 0;  ///< operand
    std::int64_t weight_offset = 0;
    bool transposed = false;
    bool interleaved = false;    ///< vector v is numbers v, v + vectors, v + 2 vectors ... from offset[0] on: a segment as mul_ir has it
    std::int64_t packed_at = 0;  ///< shared: in elements, where `prepare` put the matrix
};

/// to[d] (+)= sum over parts of sum_s W[s, d] P[s].
struct MixNarrow {
    int to = 0;  ///< operand
    std::int64_t to_offset = 0;
    int targets = 0;
    int first_part = 0, parts = 0;
    bool shared = false;  ///< weights, of all parts; others have one target or are not transposed
    bool store = false;
};

/// The gradients of sum_s t[s] (x[s] . y), t = coefficient * factor * weights:
///     x_gradient[i, s] = t[s] y[i],    weights_gradient[s] (+)= coefficient * factor * (x[s] . y).
struct MixGradientPart {
    MixNumbers x = {}, x_gradient = {}, weights = {}, weights_gradient = {};
    MixNumbers factor = {.operand = -1};  ///< -1: none
    double coefficient = 1;
    std::int64_t channels = 0;
    bool interleaved = false;  ///< x and its gradient as mul_ir has them
    bool store = false;        ///< weights_gradient
};
/// y_gradient[i] (+)= sum over parts and s of t[s] x[i, s].
struct MixGradient {
    MixNumbers y = {}, y_gradient = {};  ///< y_gradient: operand -1 where it is not wanted
    int components = 1;                  ///< 1, 3 or 5
    int first_part = 0, parts = 0;
    bool store = false;
};

enum class MixStepKind : std::uint8_t { product, multiply, outer, narrow, gradient };
struct MixStep {
    MixStepKind kind = MixStepKind::product;
    int index = 0;
};

struct MixView {
    int operands = 0;
    int steps = 0;
    const MixStep* step = nullptr;
    const MixProduct* product = nullptr;
    const MixEntry* entry = nullptr;
    const MixScalarTerm* term = nullptr;
    const MixNumbers* scalar = nullptr;
    const MixMultiply* multiply = nullptr;
    int multiplies = 0;
    const MixOuter* outer = nullptr;
    const MixNarrow* narrow = nullptr;
    int narrows = 0;
    const MixNarrowPart* narrow_part = nullptr;
    const MixGradient* gradient = nullptr;
    const MixGradientPart* gradient_part = nullptr;
    int buffers = 0;
    const std::int64_t* buffer_size = nullptr;  ///< elements per row of each scratch buffer
    int most_components = 1;
    std::int64_t most_channels = 1;
};

CLEBSCH_PER_INSTRUCTION_SET(                                                             //
    void run_mix(const MixView& program, const Block<float>& block);                     //
    void run_mix(const MixView& program, const Block<double>& block);                    //
    void pack_mix(const MixView& program, const float* const* inputs, float* packed);    //
    void pack_mix(const MixView& program, const double* const* inputs, double* packed);  //
    /// Elements of the panels of one weight of `sources` x `targets`.
    std::int64_t packed_mix_size(std::int64_t sources, std::int64_t targets, int element_size);)

/// Elements of a packed matrix of a narrow step: whole vectors of sources, of every instruction set, and as many targets as loops may take.
constexpr std::int64_t packed_narrow_size(std::int64_t sources, std::int64_t targets, std::int64_t element_size) {
    const std::int64_t lanes = 64 / element_size;
    return (sources + lanes - 1) / lanes * lanes * (targets + 2);
}

/// Bytes that grouping the rows of a block takes (RowGroups).
constexpr std::int64_t mix_group_bytes(int rows) { return (std::int64_t{rows} * (8 + 4 * 4) + 64 * 4 + 63) / 64 * 64; }

/// Scratch of a block: one area for pointers, one for a row that absorbs padding, one for groups of rows, and the buffers, each aligned.
std::int64_t mix_scratch_bytes(const MixView& program, std::int64_t element_size, int rows);

}  // namespace clebsch
