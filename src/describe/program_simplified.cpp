// Simplification of programs: equal nodes merged, then whatever no output needs removed.
#include <algorithm>
#include <map>
#include <numeric>

#include "describe/derivative.hpp"
#include "describe/program.hpp"

namespace clebsch {
namespace {

/// Values read / written by a node.
std::vector<int> arguments_with_role(const Node& node, Role role) {
    if (const auto* function = std::get_if<FunctionNode>(&node)) return {role == Role::input ? function->input : function->output};
    const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
    std::vector<int> result;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (polynomial.operands[i].role == role) result.push_back(arguments[i]);
    }
    return result;
}

bool same_operation(const Node& a, const Node& b) {
    if (const auto* function = std::get_if<FunctionNode>(&a)) {
        const auto* other = std::get_if<FunctionNode>(&b);
        return other != nullptr && other->function == function->function;
    }
    const auto* other = std::get_if<PolynomialNode>(&b);
    return other != nullptr && other->polynomial == std::get<PolynomialNode>(a).polynomial;
}

template <class Map>
void renumber(Node& node, Map&& map) {
    if (auto* function = std::get_if<FunctionNode>(&node)) {
        function->input = map(function->input);
        function->output = map(function->output);
    } else {
        for (int& argument : std::get<PolynomialNode>(node).arguments) argument = map(argument);
    }
}

/// Of nodes that apply the same operation to the same values, the first stays; its results take the place of the others'. Two results that
/// are both outputs of the program cannot be one value, so such nodes stay. Takes the nodes out of the program.
std::vector<Node> merged(Program& program) {
    std::vector<int> same(program.values.size());  // the value that took this one's place
    std::iota(same.begin(), same.end(), 0);
    std::vector<int> written_as = same;  // the value the first node writes in the end: a program output if any of the class is one
    std::vector<bool> is_output(program.values.size(), false);
    for (const int output : program.outputs) is_output[static_cast<std::size_t>(output)] = true;

    std::vector<Node> nodes;
    std::map<std::vector<int>, std::vector<std::size_t>> by_inputs;  // positions in `nodes`
    for (Node& given : program.nodes) {
        Node node = std::move(given);
        renumber(node, [&](int value) { return same[static_cast<std::size_t>(value)]; });
        const std::vector<int> results = arguments_with_role(node, Role::output);
        std::vector<std::size_t>& candidates = by_inputs[arguments_with_role(node, Role::input)];
        const auto is_equal = [&](std::size_t position) {
            if (!same_operation(nodes[position], node)) return false;
            const std::vector<int> others = arguments_with_role(nodes[position], Role::output);
            for (std::size_t i = 0; i < results.size(); ++i) {
                const auto result = static_cast<std::size_t>(results[i]);
                const auto other = static_cast<std::size_t>(written_as[static_cast<std::size_t>(others[i])]);
                if (is_output[result] && is_output[other]) return false;
                const Value &a = program.values[result], &b = program.values[other];
                if (a.segments != b.segments || a.layout != b.layout) return false;
            }
            return true;
        };
        const auto equal = std::find_if(candidates.begin(), candidates.end(), is_equal);
        if (equal == candidates.end()) {
            candidates.push_back(nodes.size());
            nodes.push_back(std::move(node));
            continue;
        }
        const std::vector<int> others = arguments_with_role(nodes[*equal], Role::output);
        for (std::size_t i = 0; i < results.size(); ++i) {
            const auto result = static_cast<std::size_t>(results[i]);
            same[result] = others[i];
            if (is_output[result]) written_as[static_cast<std::size_t>(others[i])] = results[i];
        }
    }
    for (Node& node : nodes) renumber(node, [&](int value) { return written_as[static_cast<std::size_t>(value)]; });
    return nodes;
}

/// The node without the results nobody reads and the arguments only they needed; `live` tells which values are read later.
Node without_dead_operands(PolynomialNode node, const std::vector<bool>& live) {
    std::vector<std::string> outputs;
    bool all = true;
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
        const Operand& operand = node.polynomial.operands[i];
        if (operand.role == Role::output && live[static_cast<std::size_t>(node.arguments[i])]) outputs.push_back(operand.name);
        else all = all && operand.role == Role::input;
    }
    std::vector<bool> used(node.arguments.size(), false);
    for (const Path& path : node.polynomial.paths) {
        for (const Factor& factor : path.factors) used[static_cast<std::size_t>(factor.operand)] = true;
    }
    for (std::size_t i = 0; i < node.arguments.size(); ++i) all = all && (used[i] || node.polynomial.operands[i].role == Role::output);
    if (all) return node;
    PolynomialNode result{only_outputs(node.polynomial, outputs), {}};
    for (const Operand& operand : result.polynomial.operands) {
        result.arguments.push_back(node.arguments[static_cast<std::size_t>(node.polynomial.find_operand(operand.name))]);
    }
    return result;
}

}  // namespace

Program simplified(Program program) {
    std::vector<bool> live(program.values.size(), false);
    for (const int output : program.outputs) live[static_cast<std::size_t>(output)] = true;
    std::vector<Node> nodes;
    std::vector<Node> all = merged(program);
    for (auto node = all.rbegin(); node != all.rend(); ++node) {
        const std::vector<int> results = arguments_with_role(*node, Role::output);
        if (std::none_of(results.begin(), results.end(), [&](int value) { return live[static_cast<std::size_t>(value)]; })) continue;
        auto* polynomial_node = std::get_if<PolynomialNode>(&*node);
        nodes.push_back(polynomial_node != nullptr ? without_dead_operands(std::move(*polynomial_node), live) : std::move(*node));
        for (const int value : arguments_with_role(nodes.back(), Role::input)) live[static_cast<std::size_t>(value)] = true;
    }
    std::reverse(nodes.begin(), nodes.end());

    for (const int input : program.inputs) live[static_cast<std::size_t>(input)] = true;
    Program result;
    result.indices = program.indices;
    std::vector<int> position(program.values.size(), -1);
    for (std::size_t i = 0; i < program.values.size(); ++i) {
        if (!live[i]) continue;
        position[i] = static_cast<int>(result.values.size());
        result.values.push_back(std::move(program.values[i]));
    }
    const auto moved = [&](int value) { return position[static_cast<std::size_t>(value)]; };
    for (const int input : program.inputs) result.inputs.push_back(moved(input));
    for (const int output : program.outputs) result.outputs.push_back(moved(output));
    result.nodes = std::move(nodes);
    for (Node& node : result.nodes) renumber(node, moved);
    return result;
}

}  // namespace clebsch
