#pragma once
// Rotation of features by matrices of their own row: into and out of the frame of an edge.
#include <string>

#include "algebra/irreps.hpp"
#include "describe/operations/path_builder.hpp"

namespace clebsch {

struct RotationOptions {
    bool inverse = false;  ///< multiply by the transposed matrices
    /// One matrix per distinct degree (proper rotations; degree 0 is left alone), or one per distinct irrep in sorted order (0e too), which
    /// also holds inversions.
    bool matrix_per_irrep = false;
    std::string rows = "row";
    std::vector<Index> indices = {};
    OperandOptions x = {"x"}, out = {"out"};
    /// Plain segments of (2l+1)^2 components: row-major D(l), degrees ascending.
    OperandOptions matrices = {"matrices"};
};

/// out = D x, block by block. Operands x, matrices, out.
Polynomial rotation(const Irreps& irreps, const RotationOptions& options = {});

/// What the operand `matrices` consists of, in order.
std::vector<Irrep> rotation_blocks(const Irreps& irreps, bool matrix_per_irrep);

}  // namespace clebsch
