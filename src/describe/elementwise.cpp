#include "describe/elementwise.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "describe/arrangement.hpp"

namespace clebsch {
namespace {

Coefficients delta(int components, std::size_t rank) {
    if (rank == 2) return Coefficients::identity(components);
    std::vector<CoefficientEntry> entries;
    entries.reserve(static_cast<std::size_t>(components));
    for (int i = 0; i < components; ++i) entries.push_back({std::vector<int>(rank, i), 1.0});
    return Coefficients::literal(std::vector<int>(rank, components), std::move(entries));
}

}  // namespace

std::vector<Segment> flat_segments(const Value& value) {
    std::vector<Segment> segments;
    for (const Segment& segment : value.segments) {
        if (segment.components > 1 && segment.multiplicity != 1) {
            segments.push_back({segment.multiplicity, segment.components, {}});
        } else if (!segments.empty() && segments.back().components == 1) {
            segments.back().multiplicity += segment.size();
        } else {
            segments.push_back({segment.size(), 1, {}});
        }
    }
    return segments;
}

void add_elementwise(Polynomial& polynomial, double scale, const std::vector<int>& factors, int output,
                     const std::vector<Segment>& segments) {
    for (std::size_t s = 0; s < segments.size(); ++s) {
        const Segment& segment = segments[s];
        if (segment.multiplicity == 0) continue;
        Path path;
        path.scale = scale;
        const bool has_axis = segment.components > 1;
        if (has_axis) path.coefficients = delta(segment.components, factors.size() + 1);
        if (segment.multiplicity > 1) path.extents = {{'u', segment.multiplicity}};
        auto add = [&](int operand) {
            const int axis = has_axis ? static_cast<int>(path.factors.size()) : -1;
            path.factors.push_back({operand, static_cast<int>(s), segment.multiplicity > 1 ? "u" : "", axis});
        };
        for (const int factor : factors) add(factor);
        add(output);
        polynomial.paths.push_back(std::move(path));
    }
}

namespace {

/// Segments and layout that fit all values of a node: flat if possible. Values of one arrangement may cut it differently, e.g. {2 x 3, 1 x
/// 3} and {3 x 3}.
std::pair<std::vector<Segment>, Layout> common_view(const std::vector<Value>& values, const std::vector<ElementwiseTerm>& terms,
                                                    int output) {
    std::vector<int> all = {output};
    for (const ElementwiseTerm& term : terms) all.insert(all.end(), term.factors.begin(), term.factors.end());
    for (const bool flat : {true, false}) {
        for (const int candidate : all) {
            const Value& value = values[static_cast<std::size_t>(candidate)];
            std::vector<Segment> segments = flat ? flat_segments(value) : value.segments;
            const bool fits = std::ranges::all_of(all, [&](int other) {
                const Value& bound = values[static_cast<std::size_t>(other)];
                return same_arrangement(segments, value.layout, bound.segments, bound.layout);
            });
            if (fits) return {std::move(segments), value.layout};
        }
    }
    fail("values of an element-wise operation are arranged differently from '" + values[static_cast<std::size_t>(output)].name + "'");
}

}  // namespace

PolynomialNode elementwise_node(const std::vector<Value>& values, const std::vector<ElementwiseTerm>& terms, int output) {
    const Value& result = values[static_cast<std::size_t>(output)];
    const auto view = common_view(values, terms, output);
    const std::vector<Segment>& segments = view.first;
    PolynomialNode node;
    node.polynomial.rows = result.space;
    auto add_operand = [&](int value, const std::string& name, Role role) {
        node.arguments.push_back(value);
        node.polynomial.operands.push_back({name, segments, view.second, role, result.space.empty() ? shared_row() : each_row()});
        return static_cast<int>(node.arguments.size()) - 1;
    };
    std::vector<std::vector<int>> factors;
    for (const ElementwiseTerm& term : terms) {
        factors.emplace_back();
        for (const int value : term.factors) {
            const auto known = std::ranges::find(node.arguments, value);
            const std::string name = "factor" + std::to_string(node.arguments.size());
            factors.back().push_back(known != node.arguments.end() ? static_cast<int>(known - node.arguments.begin())
                                                                   : add_operand(value, name, Role::input));
        }
    }
    const int target = add_operand(output, "result", Role::output);  // may stand for the gradient of a value that is a factor, too
    for (std::size_t t = 0; t < terms.size(); ++t) add_elementwise(node.polynomial, terms[t].scale, factors[t], target, segments);
    return node;
}

}  // namespace clebsch
