#pragma once
// The tensor product of an operand with itself, each product of two channels counted once.
#include <vector>

#include "describe/operations/tensor_product.hpp"

namespace clebsch {

struct TensorSquareOptions {
    IrrepNormalization irrep_normalization = IrrepNormalization::component;
    PathNormalization path_normalization = PathNormalization::element;
    SignTable signs = SignTable::e3nn_0_5;
    std::vector<Irrep> filter = {};  ///< only these output irreps (form without weights); empty: all
    std::string rows = "row";
    std::vector<Index> indices = {};
    OperandOptions x = {"x"}, out = {"out"};
    OperandOptions weights = {"weights", Layout::mul_ir, shared_row()};
};

/// Without weights: products of two different blocks in mode uvuv, of one block with itself in modes uvu<v and uuu (even degrees only);
/// output blocks sorted, not merged. Operands x, out: x appears twice in each path. (o3.TensorSquare)
Polynomial tensor_square(const Irreps& in, const TensorSquareOptions& options = {});

/// Fully connected to `out`: modes uvw, u<vw and uuw, weighted. Operands x, weights, out.
Polynomial tensor_square(const Irreps& in, const Irreps& out, const TensorSquareOptions& options = {});

}  // namespace clebsch
