#include "describe/operations/tensor_square.hpp"

#include <algorithm>

#include "describe/operations/products.hpp"

namespace clebsch {
namespace {

/// What variance asks of the product of two different channels ...
double alpha_of_pair(IrrepNormalization normalization, Irrep a, Irrep b, Irrep out) {
    if (normalization == IrrepNormalization::component) return out.dim();
    if (normalization == IrrepNormalization::norm) return a.dim() * b.dim();
    return 1;
}

/// ... and of a channel with itself, whose components are not independent: <x_i^2 x_j^2> = 1 + 2 delta_ij.
double alpha_of_same(IrrepNormalization normalization, Irrep in, Irrep out) {
    if (normalization == IrrepNormalization::component) return out.degree == 0 ? out.dim() / (in.dim() + 2.0) : out.dim() / 2.0;
    if (normalization == IrrepNormalization::norm) return out.degree == 0 ? out.dim() * in.dim() : in.dim() * (in.dim() + 2) / 2.0;
    return 1;
}

/// The square of `in` is the tensor product of x with x.
Polynomial square(const ProductPlan& plan, const TensorSquareOptions& options) {
    TensorProductOptions product;
    product.irrep_normalization = IrrepNormalization::none;  // path weights hold it
    product.path_normalization = options.path_normalization;
    product.signs = options.signs;
    product.rows = options.rows;
    product.indices = options.indices;
    product.x = options.x;
    product.y = options.x;
    product.y.name = "second_" + options.x.name;
    product.weights = options.weights;
    product.out = options.out;
    Polynomial polynomial = tensor_product(plan, product);
    for (Path& path : polynomial.paths)
        for (Factor& factor : path.factors) factor.operand = factor.operand == 0 ? 0 : factor.operand - 1;  // operand 1 was x again
    polynomial.operands.erase(polynomial.operands.begin() + 1);
    validate(polynomial);
    return polynomial;
}

int position(std::size_t i) { return static_cast<int>(i); }

}  // namespace

Polynomial tensor_square(const Irreps& irreps, const TensorSquareOptions& options) {
    const Irreps in = irreps.simplified();
    ProductPlan plan{in, in, {}, {}};
    std::vector<IrrepBlock> out;
    auto append = [&](std::size_t i, std::size_t j, ChannelMode mode, IrrepBlock block, double alpha) {
        plan.instructions.push_back({position(i), position(j), position(out.size()), mode, false, alpha});
        out.push_back(block);
    };
    for (std::size_t i = 0; i < in.size(); ++i) {
        for (std::size_t j = i; j < in.size(); ++j) {
            const auto [m1, a] = in[i];
            const auto [m2, b] = in[j];
            for (Irrep c : product(a, b)) {
                if (!options.filter.empty() && std::ranges::find(options.filter, c) == options.filter.end()) continue;
                const double alpha = alpha_of_pair(options.irrep_normalization, a, b, c);
                if (i < j) {
                    append(i, j, ChannelMode::uvuv, {channel_product({m1, m2}), c}, alpha);
                    continue;
                }
                if (m1 > 1) append(i, i, ChannelMode::uvu_less_v, {channel_product({m1, m1 - 1}) / 2, c}, alpha);
                if (c.degree % 2 == 0) append(i, i, ChannelMode::uuu, {m1, c}, alpha_of_same(options.irrep_normalization, a, c));
            }
        }
    }
    plan.out = Irreps(std::move(out));
    return square(with_sorted_outputs(std::move(plan)), options);
}

Polynomial tensor_square(const Irreps& irreps, const Irreps& irreps_out, const TensorSquareOptions& options) {
    const Irreps in = irreps.simplified(), out = irreps_out.simplified();
    ProductPlan plan{in, in, out, {}};
    auto append = [&](std::size_t i, std::size_t j, std::size_t k, ChannelMode mode, double alpha) {
        plan.instructions.push_back({position(i), position(j), position(k), mode, true, alpha});
    };
    for (std::size_t i = 0; i < in.size(); ++i) {
        for (std::size_t j = i; j < in.size(); ++j) {
            for (std::size_t k = 0; k < out.size(); ++k) {
                const Irrep a = in[i].irrep, b = in[j].irrep, c = out[k].irrep;
                if (!couples(a, b, c)) continue;
                const double alpha = alpha_of_pair(options.irrep_normalization, a, b, c);
                if (i < j) {
                    append(i, j, k, ChannelMode::uvw, alpha);
                    continue;
                }
                if (in[i].multiplicity > 1) append(i, i, k, ChannelMode::u_less_vw, alpha);
                if (c.degree % 2 == 0) append(i, i, k, ChannelMode::uuw, alpha_of_same(options.irrep_normalization, a, c));
            }
        }
    }
    return square(plan, options);
}

}  // namespace clebsch
