#pragma once
// Tensor products whose instructions follow from the irreps: fully connected, full and element-wise.
#include <vector>

#include "describe/operations/tensor_product.hpp"

namespace clebsch {

/// A tensor product before it is a polynomial: its irreps (which the constructors below may simplify, split or sort) and instructions.
struct ProductPlan {
    Irreps in1, in2, out;
    std::vector<Instruction> instructions;
};
Polynomial tensor_product(const ProductPlan& plan, const TensorProductOptions& options = {});

/// Every allowed triple of blocks, mode uvw, weighted; loops in1, in2, out (out innermost). (o3.FullyConnectedTensorProduct)
ProductPlan fully_connected(const Irreps& in1, const Irreps& in2, const Irreps& out);

/// Every product of a block of in1 and one of in2, mode uvuv, without weights; inputs are simplified, outputs one block per product, sorted
/// (stable) and not merged. `filter` keeps only these output irreps; empty keeps all. (o3.FullTensorProduct)
ProductPlan full_product(const Irreps& in1, const Irreps& in2, const std::vector<Irrep>& filter = {});

/// Channel n of in1 with channel n of in2, mode uuu, without weights. Inputs are simplified and their blocks split until they align;
/// outputs in the order they arise. Needs as many channels in both. (o3.ElementwiseTensorProduct)
ProductPlan elementwise_product(const Irreps& in1, const Irreps& in2, const std::vector<Irrep>& filter = {});

/// Renumbers the output blocks of a plan in sorted order (stable); the order of instructions stays.
ProductPlan with_sorted_outputs(ProductPlan plan);

}  // namespace clebsch
