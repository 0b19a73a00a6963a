#include "describe/operations/products.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace clebsch {
namespace {

bool kept(Irrep irrep, const std::vector<Irrep>& filter) { return filter.empty() || std::ranges::find(filter, irrep) != filter.end(); }

int position(std::size_t i) { return static_cast<int>(i); }

}  // namespace

Polynomial tensor_product(const ProductPlan& plan, const TensorProductOptions& options) {
    return tensor_product(plan.in1, plan.in2, plan.out, plan.instructions, options);
}

ProductPlan with_sorted_outputs(ProductPlan plan) {
    const Irreps::Sorted sorted = plan.out.sorted();
    for (Instruction& instruction : plan.instructions) instruction.out = sorted.permutation[static_cast<std::size_t>(instruction.out)];
    plan.out = sorted.irreps;
    return plan;
}

ProductPlan fully_connected(const Irreps& in1, const Irreps& in2, const Irreps& out) {
    ProductPlan plan{in1, in2, out, {}};
    for (std::size_t i = 0; i < in1.size(); ++i)
        for (std::size_t j = 0; j < in2.size(); ++j)
            for (std::size_t k = 0; k < out.size(); ++k)
                if (couples(in1[i].irrep, in2[j].irrep, out[k].irrep))
                    plan.instructions.push_back({position(i), position(j), position(k), ChannelMode::uvw, true});
    return plan;
}

ProductPlan full_product(const Irreps& in1, const Irreps& in2, const std::vector<Irrep>& filter) {
    ProductPlan plan{in1.simplified(), in2.simplified(), {}, {}};
    std::vector<IrrepBlock> out;
    for (std::size_t i = 0; i < plan.in1.size(); ++i)
        for (std::size_t j = 0; j < plan.in2.size(); ++j)
            for (Irrep irrep : product(plan.in1[i].irrep, plan.in2[j].irrep)) {
                if (!kept(irrep, filter)) continue;
                plan.instructions.push_back({position(i), position(j), position(out.size()), ChannelMode::uvuv, false});
                out.push_back({channel_product({plan.in1[i].multiplicity, plan.in2[j].multiplicity}), irrep});
            }
    plan.out = Irreps(std::move(out));
    return with_sorted_outputs(std::move(plan));
}

ProductPlan elementwise_product(const Irreps& in1, const Irreps& in2, const std::vector<Irrep>& filter) {
    if (in1.num_irreps() != in2.num_irreps())
        fail("element-wise product: expected equal numbers of channels, got " + std::to_string(in1.num_irreps()) + " in '" + to_text(in1) +
             "' and " + std::to_string(in2.num_irreps()) + " in '" + to_text(in2) + "'");
    std::vector<IrrepBlock> first = in1.simplified().blocks(), second = in2.simplified().blocks(), out;
    std::vector<Instruction> instructions;
    auto split = [](std::vector<IrrepBlock>& blocks, std::size_t i, std::int64_t multiplicity) {
        if (blocks[i].multiplicity == multiplicity) return;
        const IrrepBlock rest{blocks[i].multiplicity - multiplicity, blocks[i].irrep};
        blocks[i].multiplicity = multiplicity;
        blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
    };
    for (std::size_t i = 0; i < first.size(); ++i) {
        const std::int64_t multiplicity = std::min(first[i].multiplicity, second[i].multiplicity);
        split(first, i, multiplicity);
        split(second, i, multiplicity);
        for (Irrep irrep : product(first[i].irrep, second[i].irrep)) {
            if (!kept(irrep, filter)) continue;
            instructions.push_back({position(i), position(i), position(out.size()), ChannelMode::uuu, false});
            out.push_back({multiplicity, irrep});
        }
    }
    return {Irreps(std::move(first)), Irreps(std::move(second)), Irreps(std::move(out)), std::move(instructions)};
}

}  // namespace clebsch
