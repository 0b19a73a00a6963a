#include "describe/operations/rotation.hpp"

#include <algorithm>

namespace clebsch {
namespace {

/// out[m] = sum_n D[m, n] x[n] (or D[n, m]) with D a flat row: axes (D, x, out).
Coefficients matrix_times_vector(int dim, bool transposed) {
    std::vector<CoefficientEntry> entries;
    for (int m = 0; m < dim; ++m)
        for (int n = 0; n < dim; ++n) entries.push_back({{transposed ? n * dim + m : m * dim + n, n, m}, 1.0});
    return Coefficients::literal({dim * dim, dim, dim}, std::move(entries));
}

/// By degree, with the first irrep of each degree standing for all.
bool same_matrix(Irrep a, Irrep b, bool per_irrep) { return per_irrep ? a == b : a.degree == b.degree; }

}  // namespace

std::vector<Irrep> rotation_blocks(const Irreps& irreps, bool matrix_per_irrep) {
    std::vector<Irrep> blocks;
    for (const IrrepBlock& block : irreps.regrouped()) {
        if (block.irrep.degree == 0 && !matrix_per_irrep) continue;
        if (blocks.empty() || !same_matrix(blocks.back(), block.irrep, matrix_per_irrep)) blocks.push_back(block.irrep);
    }
    return blocks;
}

Polynomial rotation(const Irreps& irreps, const RotationOptions& options) {
    const std::vector<Irrep> blocks = rotation_blocks(irreps, options.matrix_per_irrep);
    std::vector<Segment> matrices;
    matrices.reserve(blocks.size());
    for (Irrep irrep : blocks) matrices.push_back({1, irrep.dim() * irrep.dim(), {}});

    Polynomial polynomial;
    polynomial.rows = options.rows;
    polynomial.indices = options.indices;
    polynomial.operands = {make_operand(options.x, segments_of(irreps), Role::input), make_operand(options.matrices, matrices, Role::input),
                           make_operand(options.out, segments_of(irreps), Role::output)};
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int segment = static_cast<int>(i), dim = irreps[i].irrep.dim();
        const auto block =
            std::ranges::find_if(blocks, [&](Irrep irrep) { return same_matrix(irrep, irreps[i].irrep, options.matrix_per_irrep); });
        const std::vector<std::pair<char, std::int64_t>> extents = {{'u', irreps[i].multiplicity}};
        if (block == blocks.end())  // degree 0, or no channels
            add_path(polynomial, {{0, segment, "u", 0}, {2, segment, "u", 1}}, Coefficients::identity(dim), 1.0, extents);
        else
            add_path(polynomial, {{1, static_cast<int>(block - blocks.begin()), "", 0}, {0, segment, "u", 1}, {2, segment, "u", 2}},
                     matrix_times_vector(dim, options.inverse), 1.0, extents);
    }
    validate(polynomial);
    return polynomial;
}

}  // namespace clebsch
