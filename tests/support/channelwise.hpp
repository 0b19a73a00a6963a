#pragma once
// Random channel-wise convolutions and products: what stream kernels take, with unequal and odd numbers of channels.
#include <string>
#include <vector>

#include "describe/derivative.hpp"
#include "describe/operations/convolution.hpp"
#include "support/random_descriptions.hpp"

namespace clebsch::random {

/// `most` channels; irreps up to degree `lmax` of either parity, both layouts, with or without a graph.
inline Polynomial channelwise(Engine& engine, std::int64_t most, int lmax) {
    const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(n)); };
    const auto irreps = [&](std::int64_t channels) {
        std::string text;
        for (std::int64_t i = 0; i <= 1 + below(2); ++i) {
            const std::int64_t mul = channels == 1 ? 1 : below(2) == 0 ? most : 17 + below(most - 16);
            text += (text.empty() ? "" : "+") + std::to_string(mul) + "x" + std::to_string(below(lmax + 1)) + (below(2) == 0 ? "e" : "o");
        }
        return Irreps(text);
    };
    ConvolutionOptions options;
    const Layout layout = below(2) == 0 ? Layout::mul_ir : Layout::ir_mul;
    options.x.layout = options.out.layout = options.y.layout = layout;
    options.output_segments = below(2) == 0 ? OutputSegments::per_path : OutputSegments::merged;
    options.scale = 0.5;
    const Irreps in = irreps(most), edge = irreps(1);
    std::string filter;
    if (below(3) == 0) {
        TensorProductOptions product;
        product.weights.rows = each_row();
        return tensor_product(channelwise_product(in, edge, Irreps(filter)), product);
    }
    if (below(4) == 0) options.weights.rows = shared_row();
    return convolution(in, edge, Irreps(filter), options);
}

/// Gradients of all inputs, `order` times.
inline Polynomial gradients(Polynomial polynomial, int order) {
    for (int i = 0; i < order; ++i) {
        std::vector<std::string> names;
        for (const Operand& operand : polynomial.operands)
            if (operand.role == Role::input) names.push_back(operand.name);
        polynomial = simplified(vjp(polynomial, names));
    }
    return polynomial;
}

}  // namespace clebsch::random
