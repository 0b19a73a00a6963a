#pragma once
// Sums of rows over groups of rows: atoms of a graph, edges of a node.
#include <string>

#include "describe/operations/path_builder.hpp"

namespace clebsch {

struct PoolingOptions {
    std::string rows = "node", groups = "graph";  ///< row spaces
    std::string index = "graph_of_node";          ///< index from rows to groups
    bool sorted = true;                           ///< whether the index is promised to be non-decreasing
    double scale = 1.0;                           ///< of every row, e.g. 1/average size
    OperandOptions x = {"x"}, out = {"out"};      ///< rows are set: each, and through the index
};

/// out[group] = scale x sum of x[row] over the group's rows; rows masked by index -1 count nothing; empty groups are zero.
/// Its derivative is `broadcast_rows`.
Polynomial pool_rows(const std::vector<Segment>& segments, const PoolingOptions& options = {});

/// out[row] = scale x x[group of row]: a gather. Operand x has the rows of the groups, out one row per row.
Polynomial broadcast_rows(const std::vector<Segment>& segments, const PoolingOptions& options = {});

}  // namespace clebsch
