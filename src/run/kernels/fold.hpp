#pragma once
// The packed program of the fold family; schedule/fold.cpp makes it, run/kernels/fold*.cpp run it.
//
// Everything channel-free of a row (coefficients times harmonics and the like) is first folded into small matrices M, for several rows at
// once. What is left are products of a small matrix with channels, for channel-carrying rows v, g (components x channels) and weights w
// (channels):
//     multiply:  z[k,u] = sum_i M[k,i] v[i,u], which sinks then take up:  out[k,u] += w[u] z[k,u]  or  out[u] += w[u] sum_k g[k,u] z[k,u]
//     reduce:    D[k,i] = sum_u w[u] g[k,u] v[i,u], which is then contracted with coefficients into channel-free outputs.
// Plain structs of pointers: see run/kernels/instruction_sets.hpp for why.
#include <cstdint>

#include "run/block.hpp"
#include "run/kernels/instruction_sets.hpp"

namespace clebsch {

inline constexpr int fold_rows = 16;    ///< rows handled at a time; a multiple of every vector's lanes
inline constexpr int sum_rows = 32;     ///< of long programs of sums; a second half of slots and matrices follows the first
inline constexpr int fold_weights = 3;  ///< most weights (one component, channels) of one term

/// Where channels of an operand's row begin; component c follows at c * channels. Operands beyond the polynomial's are blends.
struct FoldRows {
    int operand = -1;
    std::int64_t offset = 0;
};

/// scale * the product of weights.
struct FoldFactor {
    int weights = 0;
    FoldRows weight[fold_weights];
    double scale = 1;
};

/// v = sum over terms of factor * row, kept in scratch as an operand of its own.
struct FoldBlendTerm {
    FoldFactor factor;
    FoldRows row;
};
struct FoldBlend {
    int components = 0;
    std::int64_t channels = 0;
    int terms = 0;
    const FoldBlendTerm* term = nullptr;
    std::int64_t offset = 0;  ///< in elements, of the scratch for blends
    std::int64_t stride = 0;  ///< elements per row
};

/// Sums of products: target t of class c = sum of `terms` products coefficient * source. Classes make inner loops of constant length.
struct FoldClass {
    int terms = 0, targets = 0;
};

/// Which entries (bit i * outputs + k) of the matrix of a path (l1, l2, l3) can differ from zero whatever the harmonics: products of
/// sines and cosines have the sum and the difference of their |m|, and are sines or cosines. Two exceptions where degrees are equal: with
/// an odd sum coefficients are antisymmetric in them, and those of equal |m| that couple to 2 |m| vanish; those of (l, l, 2) at m, m, 0
/// are multiples of 3 m^2 - l (l + 1).
consteval std::uint64_t coupled_entries(int l1, int l2, int l3) {
    const auto size = [](int m) { return m < 0 ? -m : m; };
    const bool odd = (l1 + l2 + l3) % 2 != 0;
    const auto vanishes = [odd](int l, int equal, int third, int m, int equal_m, int third_m) {
        return l == equal && m == equal_m && ((odd && third_m == 2 * m) || (third == 2 && third_m == 0 && 3 * m * m == l * (l + 1)));
    };
    std::uint64_t entries = 0;
    for (int i = -l1; i <= l1; ++i)
        for (int j = -l2; j <= l2; ++j)
            for (int k = -l3; k <= l3; ++k) {
                const int a = size(i), b = size(j), c = size(k);
                const bool couples = c == a + b || c == size(a - b), even_sines = ((i < 0) + (j < 0) + (k < 0) + int(odd)) % 2 == 0;
                if (couples && even_sines && !vanishes(l1, l2, l3, a, b, c) && !vanishes(l1, l3, l2, a, c, b) &&
                    !vanishes(l2, l3, l1, b, c, a))
                    entries |= std::uint64_t{1} << ((i + l1) * (2 * l3 + 1) + k + l3);
            }
    return entries;
}

/// Matrices whose zeros are worth code that skips them (run/kernels/fold_sums.cpp): those to l = 3 with a tenth of zeros or more, and of
/// those with fewer the ones that models have most of.
struct FoldPattern {
    int outputs = 0, inputs = 0;
    std::uint64_t entries = 0;
};
consteval FoldPattern fold_pattern(int l1, int l2, int l3) { return {2 * l3 + 1, 2 * l1 + 1, coupled_entries(l1, l2, l3)}; }
inline constexpr FoldPattern fold_patterns[] = {
    fold_pattern(1, 1, 2), fold_pattern(2, 1, 1), fold_pattern(2, 1, 3), fold_pattern(3, 1, 2),
    fold_pattern(3, 2, 3), fold_pattern(1, 2, 3), fold_pattern(2, 2, 2), fold_pattern(2, 3, 3),
    fold_pattern(3, 3, 2), fold_pattern(3, 2, 1),  // even sums, then odd ones
    fold_pattern(1, 1, 1), fold_pattern(2, 1, 2), fold_pattern(2, 2, 3), fold_pattern(3, 2, 2),
    fold_pattern(3, 1, 3), fold_pattern(2, 3, 2), fold_pattern(3, 3, 3),
};
inline constexpr int fold_pattern_count = sizeof fold_patterns / sizeof fold_patterns[0];

/// A matrix: entry (k, i) is number i * outputs + k, each one for fold_rows rows.
struct FoldMatrix {
    int outputs = 0, inputs = 0;
    bool diagonal = false;  ///< a multiple of the identity: one number
    int pattern = -1;       ///< of fold_patterns, which has all its entries; -1: none, or no code that would skip zeros
};

/// Matrices that are folded at a time. Their numbers are the targets; those no class names are zero.
struct FoldFolding {
    int classes = 0;
    int first_class = 0, first_target = 0, first_term = 0;
    int zeros = 0, first_zero = 0;  ///< targets without a term
};

struct FoldSink {
    bool dot = false;
    bool overwrite = false;
    bool begin = false;  ///< stores where a row begins (Block::begins); of FoldSums only
    FoldFactor factor;
    FoldRows out;   ///< `outputs` components, or one if dot
    FoldRows with;  ///< dot: g
};

struct FoldMultiply {
    int matrix = 0;
    int place = 0;  ///< of the matrix, in numbers per row
    std::int64_t channels = 0;
    FoldRows in;
    int sinks = 0;
    const FoldSink* sink = nullptr;
};

/// Multiplications of the same rows whose products, with at most one weight and a scale of 1, are only added to rows: one after the other,
/// with all their matrices folded before.
struct FoldSums {
    int multiplies = 0;
    const int* multiply = nullptr;
    int first = 0;  ///< of its multiplications among those of all FoldSums
};
inline constexpr int most_sums = 16;   ///< multiplications of one FoldSums
inline constexpr int sum_bytes = 160;  ///< of scratch, for one of them

/// D[k,i], then sums[target] += coefficient * D[source] * slot for every term. Positions of D are chosen by reduce_position.
struct FoldReduce {
    int left_components = 0, right_components = 0;  ///< k, i
    bool diagonal = false;                          ///< only the sum of D[k,k], at position 0
    std::int64_t channels = 0;
    FoldRows left, right;
    FoldFactor factor;  ///< of the right side, which has fewer components; its scale is in the coefficients
    int classes = 0;
    int first_class = 0, first_target = 0, first_term = 0;
};

enum class FoldStepKind : std::uint8_t { blend, folding, multiply, sums, reduce };
struct FoldStep {
    FoldStepKind kind = FoldStepKind::blend;
    int index = 0;
};

/// One number of a channel-free row.
struct FoldNumber {
    int operand = 0;
    std::int64_t offset = 0;
    bool overwrite = false;  ///< outputs only
};
struct FoldProduct {
    int a = 0, b = 0;
};

template <class T>
struct FoldView {
    int operands = 0;                ///< of the polynomial
    const bool* streamed = nullptr;  ///< [operands]: row follows row in memory (the iteration space's own rows)
    int numbers = 0;                 ///< slot 0 is 1, then come numbers, then products
    const FoldNumber* number = nullptr;
    int products = 0;
    const FoldProduct* product = nullptr;
    int outputs = 0;  ///< channel-free sums
    const FoldNumber* output = nullptr;

    const FoldBlend* blend = nullptr;
    int blends = 0;
    const FoldMatrix* matrix = nullptr;
    const FoldFolding* folding = nullptr;
    const FoldMultiply* multiply = nullptr;
    const FoldReduce* reduce = nullptr;
    const FoldSums* sums = nullptr;
    int steps = 0;
    const FoldStep* step = nullptr;
    int rows = fold_rows;  ///< handled at a time: fold_rows, or sum_rows if there is nothing but sums

    const FoldClass* classes = nullptr;
    const int* targets = nullptr;     ///< these three as places of a number in its array, for the first of fold_rows rows
    std::int64_t matrix_half = 0;     ///< in elements, from the matrices of fold_rows rows to those of the next ones
    const T* coefficients = nullptr;  ///< of terms
    const int* sources = nullptr;     ///< of terms: slot of a matrix term, position in D of a reduce term
    const int* term_slots = nullptr;  ///< of terms: slot of a reduce term

    int run_operands = 0;  ///< outputs with channels: where equal pointers end is looked up once a block
    const int* run_operand = nullptr;

    // Scratch, in elements; every part is a multiple of 64 bytes.
    std::int64_t slots_at = 0, sums_at = 0, matrix_at = 0, product_at = 0, reduced_at = 0, blends_at = 0, pointers_at = 0, runs_at = 0,
                 streams_at = 0, multiplies_at = 0;
    std::int64_t scratch = 0;  ///< its size
};

CLEBSCH_PER_INSTRUCTION_SET(                                                     //
    void run_fold(const FoldView<float>& program, const Block<float>& block);    //
    void run_fold(const FoldView<double>& program, const Block<double>& block);  //
    /// Where D[k,i] of a reduction of this shape is put, and how many elements D takes in scratch per row.
    int reduce_position(int k, int i, int left_components, int right_components);   //
    int reduced_size(int left_components, int right_components, int element_size);  //
    /// Whether sums skip the zeros of fold_patterns.
    bool skips_zeros(int element_size);)

}  // namespace clebsch
