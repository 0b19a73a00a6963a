#include "describe/operations/convolution.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"

namespace clebsch {
namespace {

/// One output segment for all paths of equal irrep and multiplicity.
ProductPlan merged(ProductPlan plan) {
    std::vector<IrrepBlock> blocks;
    for (Instruction& instruction : plan.instructions) {
        const IrrepBlock block = plan.out[static_cast<std::size_t>(instruction.out)];
        auto found = std::ranges::find(blocks, block);
        if (found == blocks.end()) found = blocks.insert(blocks.end(), block);
        instruction.out = static_cast<int>(found - blocks.begin());
    }
    plan.out = Irreps(std::move(blocks));
    return plan;
}

std::vector<Instruction> by_output(const ProductPlan& plan) {
    std::vector<Instruction> ordered;
    for (std::size_t segment = 0; segment < plan.out.size(); ++segment)
        for (const Instruction& instruction : plan.instructions)
            if (static_cast<std::size_t>(instruction.out) == segment) ordered.push_back(instruction);
    return ordered;
}

}  // namespace

ProductPlan channelwise_product(const Irreps& in, const Irreps& edge_irreps, const Irreps& filter, WeightOrder order,
                                OutputSegments outputs, bool weighted) {
    auto kept = [&](Irrep irrep) {
        return filter.size() == 0 || std::ranges::any_of(filter, [&](const IrrepBlock& block) { return block.irrep == irrep; });
    };
    ProductPlan plan{in, edge_irreps, {}, {}};
    std::vector<IrrepBlock> out;
    for (std::size_t i = 0; i < in.size(); ++i)
        for (std::size_t j = 0; j < edge_irreps.size(); ++j)
            for (Irrep irrep : product(in[i].irrep, edge_irreps[j].irrep)) {
                if (!kept(irrep)) continue;
                plan.instructions.push_back(
                    {static_cast<int>(i), static_cast<int>(j), static_cast<int>(out.size()), ChannelMode::uvu, weighted});
                out.push_back({in[i].multiplicity, irrep});
            }
    plan.out = Irreps(std::move(out));
    if (outputs == OutputSegments::merged) plan = merged(std::move(plan));
    plan = with_sorted_outputs(std::move(plan));
    if (order == WeightOrder::by_output) plan.instructions = by_output(plan);
    return plan;
}

Polynomial convolution(const ProductPlan& plan, const ConvolutionOptions& options) {
    if (!std::isfinite(options.scale)) fail("convolution: expected a finite scale, got " + number_text(options.scale));
    TensorProductOptions product;
    product.irrep_normalization = options.irrep_normalization;
    product.path_normalization = options.path_normalization;
    product.signs = options.signs;
    product.rows = options.edges;
    product.indices = {{options.sender, options.edges, options.nodes, false},
                       {options.receiver, options.edges, options.nodes, options.receivers_sorted}};
    product.x = options.x;
    product.x.rows = row_of(options.sender);
    product.y = options.y;
    product.y.rows = each_row();
    product.weights = options.weights;
    product.out = options.out;
    product.out.rows = row_of(options.receiver);
    Polynomial polynomial = tensor_product(plan, product);
    for (Path& path : polynomial.paths) path.scale *= options.scale;
    validate(polynomial);
    return polynomial;
}

Polynomial convolution(const Irreps& in, const Irreps& edge_irreps, const Irreps& filter, const ConvolutionOptions& options) {
    return convolution(channelwise_product(in, edge_irreps, filter, options.weight_order, options.output_segments, options.weighted),
                       options);
}

}  // namespace clebsch
