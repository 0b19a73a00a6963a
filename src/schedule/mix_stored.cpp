// Which operands a mix program reads and writes as mul_ir stores them.
#include <algorithm>

#include "schedule/mix.hpp"

namespace clebsch {
namespace {

/// The segment that a number of a row belongs to.
int segment_at(const Operand& operand, std::int64_t offset) {
    int s = 0;
    while (s + 1 < static_cast<int>(operand.segments.size()) && operand.offset(s + 1) <= offset) ++s;
    return s;
}
bool same_in_both_layouts(const Segment& segment) { return segment.components == 1 || segment.multiplicity == 1; }

/// Whether vectors are the components of a segment, for which there are loops (run/kernels/mix_narrow.cpp).
bool is_whole(const Operand& operand, const MixNarrowPart& part) {
    const int s = segment_at(operand, part.offset[0]);
    const Segment& segment = operand.segments[static_cast<std::size_t>(s)];
    bool whole = part.vectors == segment.components && part.sources == segment.multiplicity && (part.vectors == 3 || part.vectors == 5);
    for (int v = 0; whole && v < part.vectors; ++v) whole = part.offset[v] == operand.offset(s) + v * segment.multiplicity;
    return whole;
}

}  // namespace

void read_as_stored(const Polynomial& polynomial, MixProgram& program) {
    const auto operands = static_cast<int>(polynomial.operands.size());
    std::vector<bool>& as_stored = program.as_stored;
    for (const Operand& operand : polynomial.operands) as_stored.push_back(operand.role == Role::input && operand.layout == Layout::mul_ir);
    for (const MixGradientPart& part : program.gradient_parts) {  // the only outputs that can be
        const auto o = static_cast<std::size_t>(part.x_gradient.operand);
        as_stored[o] = polynomial.operands[o].layout == Layout::mul_ir;
    }
    for (int p = 0; p < static_cast<int>(polynomial.paths.size()); ++p)  // only this kernel may read it
        if (std::ranges::find(program.paths, p) == program.paths.end())
            for (const Factor& factor : polynomial.paths[static_cast<std::size_t>(p)].factors)
                as_stored[static_cast<std::size_t>(factor.operand)] = false;
    const auto may_differ = [&](int operand, std::int64_t offset) {
        if (operand < 0 || operand >= operands) return false;
        const Operand& o = polynomial.operands[static_cast<std::size_t>(operand)];
        return !same_in_both_layouts(o.segments[static_cast<std::size_t>(segment_at(o, offset))]);
    };
    const auto turned = [&](const auto& numbers) {
        if (may_differ(numbers.operand, numbers.offset)) as_stored[static_cast<std::size_t>(numbers.operand)] = false;
    };
    for (const MixEntry& entry : program.entries)
        for (int v = 0; v < entry.vectors; ++v) turned(entry.vector[v]);
    for (const MixEntry& entry : program.entries) turned(entry.to);
    for (const MixNumbers& number : program.scalars) turned(number);
    for (const MixMultiply& step : program.multiplies) turned(step.from), turned(step.to);
    for (const MixNarrow& step : program.narrows) turned(MixNumbers{.operand = step.to, .offset = step.to_offset});
    for (const MixOuter& step : program.outers) turned(step.left), turned(step.right);
    for (const MixNarrowPart& part : program.narrow_parts) {
        for (int v = 0; v < part.vectors; ++v) turned(MixNumbers{.operand = part.number_operand, .offset = part.number_offset[v]});
        if (may_differ(part.operand, part.offset[0]) && !is_whole(polynomial.operands[static_cast<std::size_t>(part.operand)], part))
            as_stored[static_cast<std::size_t>(part.operand)] = false;
    }
    for (bool changed = true; changed;) {  // x and its gradient in the same way
        changed = false;
        for (const MixGradientPart& part : program.gradient_parts) {
            const auto x = static_cast<std::size_t>(part.x.operand), gradient = static_cast<std::size_t>(part.x_gradient.operand);
            if (!may_differ(part.x.operand, part.x.offset) || as_stored[x] == as_stored[gradient]) continue;
            as_stored[x] = as_stored[gradient] = false;
            changed = true;
        }
    }
    for (MixGradientPart& part : program.gradient_parts)
        part.interleaved = may_differ(part.x.operand, part.x.offset) && as_stored[static_cast<std::size_t>(part.x.operand)];
    for (MixNarrowPart& part : program.narrow_parts)
        part.interleaved = may_differ(part.operand, part.offset[0]) && as_stored[static_cast<std::size_t>(part.operand)];
}

}  // namespace clebsch
