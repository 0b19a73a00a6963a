#include "describe/rewrites.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "describe/derivative.hpp"
#include "describe/simplify.hpp"

namespace clebsch {
namespace {

/// Over the operands `kept` of a polynomial; every path has to stay within them.
Polynomial restricted_to(const Polynomial& polynomial, const std::vector<int>& kept) {
    Polynomial result{polynomial.rows, {}, {}, polynomial.paths};
    std::vector<int> position(polynomial.operands.size(), -1);
    std::set<std::string_view> indices;
    for (const int operand : kept) {
        position[static_cast<std::size_t>(operand)] = static_cast<int>(result.operands.size());
        result.operands.push_back(polynomial.operands[static_cast<std::size_t>(operand)]);
        indices.insert(result.operands.back().rows.via.begin(), result.operands.back().rows.via.end());
    }
    for (Path& path : result.paths)
        for (Factor& factor : path.factors) factor.operand = position[static_cast<std::size_t>(factor.operand)];
    for (const Index& index : polynomial.indices)
        if (indices.contains(index.name)) result.indices.push_back(index);
    return result;
}

}  // namespace

Program without_nodes(const Program& program) {
    return {.indices = program.indices, .values = program.values, .inputs = program.inputs, .outputs = program.outputs, .nodes = {}};
}

OperandSelection drop_unused(const Polynomial& polynomial) {
    std::vector<bool> used(polynomial.operands.size(), false);
    for (const Path& path : polynomial.paths)
        for (const Factor& factor : path.factors) used[static_cast<std::size_t>(factor.operand)] = true;
    std::vector<int> kept;
    for (std::size_t i = 0; i < used.size(); ++i)
        if (used[i] || polynomial.operands[i].role == Role::output) kept.push_back(static_cast<int>(i));
    return {restricted_to(polynomial, kept), kept};
}

Polynomial permuted(const Polynomial& polynomial, std::span<const int> order) {
    std::vector<int> sorted(order.begin(), order.end());
    std::ranges::sort(sorted);
    bool complete = sorted.size() == polynomial.operands.size();
    for (std::size_t i = 0; complete && i < sorted.size(); ++i) complete = sorted[i] == static_cast<int>(i);
    if (!complete)
        fail("permuting operands: expected each of the numbers 0 to " + std::to_string(polynomial.operands.size()) + " - 1 once");
    Polynomial result = restricted_to(polynomial, {order.begin(), order.end()});
    result.indices = polynomial.indices;
    return result;
}

Polynomial only_outputs(const Polynomial& polynomial, std::span<const std::string> outputs) {
    std::vector<bool> wanted(polynomial.operands.size(), false);
    for (const std::string& name : outputs) {
        const auto operand = static_cast<std::size_t>(polynomial.find_operand(name));
        if (polynomial.operands[operand].role != Role::output) fail("only_outputs: operand '" + name + "' is an input, expected an output");
        wanted[operand] = true;
    }
    Polynomial result = polynomial;
    std::erase_if(result.paths, [&](const Path& path) { return !wanted[static_cast<std::size_t>(path.output().operand)]; });
    std::vector<bool> used = wanted;
    for (const Path& path : result.paths)
        for (const Factor& factor : path.factors) used[static_cast<std::size_t>(factor.operand)] = true;
    std::vector<int> kept;
    for (std::size_t i = 0; i < used.size(); ++i)
        if (used[i]) kept.push_back(static_cast<int>(i));
    return restricted_to(result, kept);
}

}  // namespace clebsch
