#pragma once
// The fold family: paths whose channels all carry one letter (a channel-wise product) and at most two of whose channel-carrying factors
// have components. All their channel-free factors are folded with the coefficients into one small matrix per row; run/kernels/fold.hpp says
// what is done with it.
#include <optional>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"
#include "run/kernels/fold.hpp"

namespace clebsch {

/// One term of a folded matrix or of a reduction: coefficient * the product of channel-free numbers.
struct FoldEntry {
    int k = 0, i = 0;          ///< components of the result (multiply) or left side (reduce), and of the operand multiplied / right side
    std::vector<int> numbers;  ///< positions in FoldProgram::numbers, sorted
    int target = 0;            ///< reduce: position in FoldProgram::outputs
    double value = 0;

    friend bool operator==(const FoldEntry&, const FoldEntry&) = default;
};

struct FoldMatrixPlan {
    int outputs = 0, inputs = 0;
    std::vector<FoldEntry> entries;  ///< sorted by (k, i, numbers)
    bool diagonal = false;
};

struct FoldMultiplyPlan {
    int matrix = 0;
    int place = 0;  ///< of the matrix, in numbers per row
    std::int64_t channels = 0;
    FoldRows in;
    std::vector<FoldSink> sinks;
    std::vector<int> paths;
};

struct FoldReducePlan {
    int left_components = 0, right_components = 0;
    std::int64_t channels = 0;
    FoldRows left, right;
    FoldFactor factor;
    std::vector<FoldEntry> entries;
    bool diagonal = false;
    std::vector<int> paths;
};

struct FoldBlendPlan {
    int components = 0;
    std::int64_t channels = 0;
    std::vector<FoldBlendTerm> terms;
};

/// A matrix that is folded, and where to, in numbers per row.
struct FoldPlaced {
    int matrix = 0, place = 0;
};

/// What is computed and in which order; no pointers, no instruction set.
struct FoldProgram {
    std::vector<FoldNumber> numbers, outputs;
    std::vector<FoldMatrixPlan> matrices;
    std::vector<FoldMultiplyPlan> multiplies;
    std::vector<std::vector<FoldPlaced>> foldings;
    std::vector<std::vector<int>> sums;  ///< FoldSums, by multiplications
    std::vector<FoldReducePlan> reduces;
    std::vector<FoldBlendPlan> blends;  ///< blend b is operand polynomial.operands.size() + b
    std::vector<FoldStep> steps;        ///< blends and foldings come before what uses them; a matrix stays until its place is taken
    std::vector<int> paths;
    int rows = fold_rows;       ///< handled at a time: sum_rows where all is sums, unless rows are too long for it in the compute type
    std::int64_t streamed = 0;  ///< numbers of a row of the operands whose rows follow one another
};

/// Bytes of such rows up to which sum_rows of them are handled at a time: as many are on their way meanwhile, and gathered rows are to stay
/// in the second-level cache too.
inline constexpr std::int64_t most_streamed = 7680;

/// The paths among `candidates` that this family can compute.
std::vector<int> foldable_paths(const Polynomial& polynomial, const std::vector<int>& candidates);

/// Paths that use the same matrix on the same rows share one multiplication, and one reduction where they end in the same sums.
FoldProgram schedule_fold(const Polynomial& polynomial, const std::vector<int>& paths);

}  // namespace clebsch
