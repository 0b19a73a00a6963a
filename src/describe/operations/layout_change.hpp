#pragma once
// Copies of rows: into another layout, or with a factor.
#include <string>

#include "describe/operations/path_builder.hpp"

namespace clebsch {

struct CopyOptions {
    double scale = 1.0;
    std::string rows = "row";
    std::vector<Index> indices = {};
    OperandOptions x = {"x"}, out = {"out"};
};

/// out = scale x, segment by segment; layouts and rows of both operands are free: mul_ir to ir_mul, gathers, sums.
Polynomial copy(const std::vector<Segment>& segments, const CopyOptions& options = {});

/// A row from one layout into the other.
Polynomial layout_change(const Irreps& irreps, Layout from, Layout to);

}  // namespace clebsch
