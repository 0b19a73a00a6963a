#pragma once
// Sums in a fixed order on a GPU. An output that is summed over rows is written by whoever owns a run of rows that lead to the same place;
// where rows do not come in that order, there is another pass over the rows in the order of the index that leads to the sums. Either it
// runs the polynomial for these outputs (transposed: what stays with the sender is summed in registers), or, where that would read much
// more, the first pass leaves a message of every row in the workspace, and the second one adds messages up. Sums that several owners share
// lie in the workspace as parts, two for every chunk of rows (its first and its last sum), and are added in the order of chunks
// (emit/order).
#include <string>
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch {

/// One pass over the rows: a polynomial of its own for some of the outputs.
struct OrderedPass {
    Polynomial polynomial;
    std::vector<int> operands;   ///< of the given polynomial: what the pass's operands are
    std::vector<bool> messages;  ///< of every operand of the pass: it is kept in the workspace, a row for every row of the iteration space
    std::vector<int> indices;  ///< likewise; -1 for the two that an ordered pass adds at the end: the row, and the sorted target of place i
    /// What the rows are ordered by (indices of the given polynomial, first applied first), equal ones as they come; empty: by nothing.
    std::vector<std::string> order;
};

/// Every output in one pass, all sums of a pass through the same sorted indices or into one row. Outputs of each row run with the sums that
/// need no other order.
std::vector<OrderedPass> ordered_passes(const Polynomial& polynomial);
/// Those, or the polynomial as the one pass that it is without a fixed order.
std::vector<OrderedPass> gpu_passes(const Polynomial& polynomial, bool ordered);

/// What sums in a fixed order cost: which outputs a pass has, how its rows come, bytes of workspace. `number_bytes`: of the arithmetic.
std::string explain(const OrderedPass& pass, std::size_t number_bytes);
std::string explain_passes(std::size_t count);

}  // namespace clebsch
