// Derivatives of programs, node by node: a polynomial by the product rule, a function through products with its derivative, which the
// functions of the list express among themselves. The nodes of the program itself are recomputed inside the result as far as the derivative
// reads their values.
#include <algorithm>
#include <map>
#include <numbers>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "describe/derivative.hpp"
#include "describe/derivative_origins.hpp"
#include "describe/elementwise.hpp"
#include "describe/rewrites.hpp"
#include "describe/simplify.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// Multiplicities and components, without irreps: what an operand's paths depend on.
std::vector<std::pair<std::int64_t, int>> shape_of(const Operand& operand) {
    std::vector<std::pair<std::int64_t, int>> shape;
    for (const Segment& segment : operand.segments) shape.emplace_back(segment.multiplicity, segment.components);
    return shape;
}

/// Operands with equal keys are one operand when they are bound to the same value.
auto operand_key(const Operand& operand, int value) {
    return std::tuple(operand.role, value, operand.rows.kind, operand.rows.via, operand.layout, shape_of(operand));
}
using OperandKey = decltype(operand_key(std::declval<const Operand&>(), 0));

/// Several nodes over the same rows as one. Operands of the same value, seen alike, become one operand: a value used twice becomes a power,
/// results added to the same value are written by the paths of all nodes.
PolynomialNode united(const std::vector<const PolynomialNode*>& nodes) {
    PolynomialNode result;
    result.polynomial.rows = nodes.front()->polynomial.rows;
    std::map<OperandKey, int> known;
    std::set<std::string> operand_names, index_names;
    for (const Role role : {Role::input, Role::output}) {
        for (const PolynomialNode* node : nodes) {
            for (std::size_t i = 0; i < node->arguments.size(); ++i) {
                const Operand& operand = node->polynomial.operands[i];
                if (operand.role != role) continue;
                const int position = static_cast<int>(result.arguments.size());
                if (!known.try_emplace(operand_key(operand, node->arguments[i]), position).second) continue;
                result.polynomial.operands.push_back(operand);
                result.polynomial.operands.back().name = unique_name(operand.name, operand_names);
                result.arguments.push_back(node->arguments[i]);
            }
        }
    }
    for (const PolynomialNode* node : nodes) {
        for (const Index& index : node->polynomial.indices)
            if (index_names.insert(index.name).second) result.polynomial.indices.push_back(index);
        std::vector<int> position;
        for (std::size_t i = 0; i < node->arguments.size(); ++i)
            position.push_back(known.at(operand_key(node->polynomial.operands[i], node->arguments[i])));
        for (Path path : node->polynomial.paths) {
            for (Factor& factor : path.factors) factor.operand = position[at(factor.operand)];
            result.polynomial.paths.push_back(std::move(path));
        }
    }
    return result;
}

/// What forward and reverse mode share: the program that grows, and derivatives of functions.
class ProgramDerivation {
 public:
    ProgramDerivation(const Program& program, std::span<const std::string> inputs) : source_(simplified(program)), result_(source_) {
        result_.outputs.clear();
        for (const std::string& name : inputs) {
            const int value = source_.find_value(name);
            if (std::ranges::find(source_.inputs, value) == source_.inputs.end())
                fail("derivative: value '" + name + "' is not an input of the program");
            if (std::ranges::find(requested_, value) != requested_.end()) fail("derivative: input '" + name + "' is requested twice");
            requested_.push_back(value);
        }
        for (const int input : source_.inputs) taken_.insert(value(input).name);
    }

 protected:
    const Value& value(int position) const { return result_.values[at(position)]; }

    /// A new value like another; names are made unique in `finish`.
    int new_value(int like, const std::string& suffix) {
        Value added = value(like);
        added.name += suffix;
        result_.values.push_back(std::move(added));
        return static_cast<int>(result_.values.size()) - 1;
    }
    int new_input(int like, const std::string& suffix) {
        const int added = new_value(like, suffix);
        fix_name(added);
        result_.inputs.push_back(added);
        return added;
    }
    void new_output(int position, int of, const std::string& suffix) {
        result_.values[at(position)].name = source_.values[at(of)].name + suffix;
        fix_name(position);
        result_.outputs.push_back(position);
    }
    void add(Node node) { result_.nodes.push_back(std::move(node)); }
    void add_elementwise_node(const std::vector<ElementwiseTerm>& terms, int output) {
        add(elementwise_node(result_.values, terms, output));
    }

    int apply(FunctionKind kind, double parameter, int input) {
        const std::string text = to_text(Function{kind, parameter});
        const int output = new_value(input, "_" + text.substr(0, text.find('(')));
        add(FunctionNode{{kind, parameter}, input, output});
        return output;
    }

    /// The derivative of output = function(input) as a sum of products of values; adds the nodes it needs. {1, {}} is the constant 1; no
    /// terms: zero.
    std::vector<ElementwiseTerm> derivative_of(const FunctionNode& node) {
        const int x = node.input, y = node.output;
        const double p = node.function.parameter;
        switch (node.function.kind) {
            case FunctionKind::exp:
                return {{1, {y}}};
            case FunctionKind::log:
                return {{1, {apply(FunctionKind::power, -1, x)}}};
            case FunctionKind::sin:
                return {{1, {apply(FunctionKind::cos, 0, x)}}};
            case FunctionKind::cos:
                return {{-1, {apply(FunctionKind::sin, 0, x)}}};
            case FunctionKind::tanh:
                return {{1, {}}, {-1, {y, y}}};
            case FunctionKind::sigmoid:
                return {{1, {y}}, {-1, {y, y}}};
            case FunctionKind::silu: {
                const int s = apply(FunctionKind::sigmoid, 0, x);
                return {{1, {s}}, {1, {x, s}}, {-1, {x, s, s}}};
            }
            case FunctionKind::softplus:
                return {{1, {apply(FunctionKind::sigmoid, 0, x)}}};
            case FunctionKind::erf: {
                const int square = new_value(x, "_square");
                add_elementwise_node({{-1, {x, x}}}, square);
                return {{2 * std::numbers::inv_sqrtpi, {apply(FunctionKind::exp, 0, square)}}};
            }
            case FunctionKind::absolute:
                return {{1, {apply(FunctionKind::sign, 0, x)}}};
            case FunctionKind::relu:
                return {{1, {apply(FunctionKind::step, 0, x)}}};
            case FunctionKind::sign:
            case FunctionKind::step:
                return {};
            case FunctionKind::power:
                if (p == 0) return {};
                if (p == 1) return {{1, {}}};
                if (p == 2) return {{2, {x}}};
                return {{p, {apply(FunctionKind::power, p - 1, x)}}};
            case FunctionKind::sinc:
                return {{1, {apply(FunctionKind::sinc, p + 1, x)}}};
        }
        fail("derivative of function " + to_text(node.function));
    }

    /// derivative * factor, ready for an element-wise node.
    static std::vector<ElementwiseTerm> times(std::vector<ElementwiseTerm> derivative, int factor) {
        for (ElementwiseTerm& term : derivative) term.factors.insert(term.factors.begin(), factor);
        return derivative;
    }

    /// Without dead nodes, and inputs and indices that nothing uses any more. Inputs and outputs have their names; everything between gives
    /// way.
    Program finish() {
        Program program = simplified(std::move(result_));
        std::vector<bool> used(program.values.size(), false), named(program.values.size(), false);
        std::set<std::string> indices;
        for (const Node& node : program.nodes) {
            if (const auto* function = std::get_if<FunctionNode>(&node)) {
                used[at(function->input)] = true;
            } else {
                const auto& polynomial_node = std::get<PolynomialNode>(node);
                for (const int argument : polynomial_node.arguments) used[at(argument)] = true;
                for (const Index& index : polynomial_node.polynomial.indices) indices.insert(index.name);
            }
        }
        for (const int input : program.inputs) named[at(input)] = true;
        for (const int output : program.outputs) named[at(output)] = true;
        for (std::size_t i = 0; i < named.size(); ++i)
            if (!named[i]) program.values[i].name = unique_name(program.values[i].name, taken_);
        std::erase_if(program.inputs, [&](int input) { return !used[at(input)]; });
        std::erase_if(program.indices, [&](const Index& index) { return !indices.contains(index.name); });
        return simplified(std::move(program));
    }

    const Program source_;
    Program result_;  ///< its values begin with those of source_, so positions agree
    std::vector<int> requested_;

 private:
    void fix_name(int position) { result_.values[at(position)].name = unique_name(value(position).name, taken_); }

    std::set<std::string> taken_;
};

class ReverseDerivation : ProgramDerivation {
 public:
    ReverseDerivation(const Program& program, std::span<const std::string> inputs)
        : ProgramDerivation(program, inputs), parts_(source_.values.size()), waiting_on_(source_.values.size()) {}

    /// `values`: the outputs of the source come first.
    Program run(bool values) {
        find_active();
        for (const int output : source_.outputs) parts_[at(output)].push_back(new_input(output, "_cotangent"));
        for (auto node = source_.nodes.rbegin(); node != source_.nodes.rend(); ++node) {
            if (const auto* polynomial = std::get_if<PolynomialNode>(&*node)) reverse(*polynomial);
            else reverse(std::get<FunctionNode>(*node));
        }
        if (values)
            for (const int output : source_.outputs) new_output(output, output, "");
        for (const int input : requested_) {
            int gradient = cotangent(input);
            if (gradient < 0 || std::ranges::find(result_.inputs, gradient) != result_.inputs.end()) {
                const int copy = new_value(input, "");
                add_elementwise_node(gradient < 0 ? std::vector<ElementwiseTerm>{} : std::vector<ElementwiseTerm>{{1, {gradient}}}, copy);
                gradient = copy;
            }
            new_output(gradient, input, "_gradient");
        }
        return finish();
    }

 private:
    /// Values that depend on a requested input.
    void find_active() {
        active_.assign(source_.values.size(), false);
        for (const int input : requested_) active_[at(input)] = true;
        for (const Node& node : source_.nodes) {
            if (const auto* function = std::get_if<FunctionNode>(&node)) {
                active_[at(function->output)] = active_[at(function->input)];
                continue;
            }
            const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
            for (const Path& path : polynomial.paths)
                for (std::size_t f = 0; f + 1 < path.factors.size(); ++f)
                    if (active_[at(arguments[at(path.factors[f].operand)])]) active_[at(arguments[at(path.output().operand)])] = true;
        }
    }

    void reverse(const PolynomialNode& node) {
        const PolynomialNode merged = united({&node});
        std::vector<int> inputs, outputs;
        for (std::size_t i = 0; i < merged.arguments.size(); ++i) {
            const int argument = merged.arguments[i];
            if (!active_[at(argument)]) continue;
            if (merged.polynomial.operands[i].role == Role::input) inputs.push_back(static_cast<int>(i));
            else if (cotangent(argument) >= 0) outputs.push_back(static_cast<int>(i));
        }
        if (inputs.empty() || outputs.empty()) return;
        DerivedPolynomial derived = derive_reverse(merged.polynomial, inputs, outputs);
        PolynomialNode gradients{std::move(derived.polynomial), {}};
        for (const Origin& origin : derived.origins) {
            const int argument = merged.arguments[at(origin.operand)];
            gradients.arguments.push_back(origin.kind == Origin::Kind::cotangent ? cotangent(argument) : argument);
        }
        wait(std::move(gradients));
    }

    void reverse(const FunctionNode& node) {
        if (!active_[at(node.output)] || cotangent(node.output) < 0) return;
        const std::vector<ElementwiseTerm> terms = times(derivative_of(node), cotangent(node.output));
        if (!terms.empty()) wait(elementwise_node(result_.values, terms, node.input));
    }

    /// A node whose outputs are bound to the source values whose gradients they add to. It is added to the result when the first of these
    /// is needed, so that nodes which add to the same gradient can become one. All it reads exists already, so waiting is always possible.
    void wait(PolynomialNode node) {
        std::vector<bool> written(node.arguments.size(), false);
        for (const Path& path : node.polynomial.paths) written[at(path.output().operand)] = true;
        std::vector<std::string> outputs;
        for (std::size_t i = 0; i < written.size(); ++i)
            if (written[i]) outputs.push_back(node.polynomial.operands[i].name);
        if (outputs.empty()) return;
        Polynomial kept = only_outputs(node.polynomial, outputs);
        std::vector<int> arguments;
        for (const Operand& operand : kept.operands) {
            arguments.push_back(node.arguments[at(node.polynomial.find_operand(operand.name))]);
            if (operand.role == Role::output) waiting_on_[at(arguments.back())].insert(waiting_.size());
        }
        waiting_.push_back({std::move(kept), std::move(arguments)});
    }

    /// The value that holds the complete gradient of a source value; -1 if it has none.
    int cotangent(int target) {
        const auto [known, is_new] = cotangents_.try_emplace(target, -1);
        if (!is_new) return known->second;

        // Of the nodes that wait, those over the value's own rows can take everything else that was added so far as a further operand.
        std::vector<std::size_t> home;
        std::map<std::tuple<std::string, std::vector<OperandKey>>, std::vector<std::size_t>> elsewhere;
        for (const std::size_t node : std::set<std::size_t>(waiting_on_[at(target)])) {
            const std::vector<OperandKey> keys = views(waiting_[node], target);
            if (is_home(waiting_[node], target) && (home.empty() || keys == views(waiting_[home.front()], target))) home.push_back(node);
            else elsewhere[{waiting_[node].polynomial.rows, keys}].push_back(node);
        }
        for (const auto& [key, nodes] : elsewhere) emit(nodes);
        std::vector<int>& parts = parts_[at(target)];
        if (!home.empty()) {
            emit(home, target);
        } else if (parts.size() > 1) {
            std::vector<ElementwiseTerm> terms;
            terms.reserve(parts.size());
            for (const int part : parts) terms.push_back({1, {part}});
            const int sum = new_value(target, "_cotangent");
            add_elementwise_node(terms, sum);
            parts = {sum};
        }
        return cotangents_[target] = parts.empty() ? -1 : parts.front();
    }

    /// How a node's outputs that add to the gradient of `target` are seen.
    static std::vector<OperandKey> views(const PolynomialNode& node, int target) {
        std::vector<OperandKey> keys;
        for (std::size_t i = 0; i < node.arguments.size(); ++i)
            if (node.polynomial.operands[i].role == Role::output && node.arguments[i] == target)
                keys.push_back(operand_key(node.polynomial.operands[i], target));
        return keys;
    }

    bool is_home(const PolynomialNode& node, int target) const {
        if (node.polynomial.rows != value(target).space) return false;
        std::size_t count = 0;
        for (std::size_t i = 0; i < node.arguments.size(); ++i) {
            const Operand& operand = node.polynomial.operands[i];
            if (operand.role != Role::output || node.arguments[i] != target) continue;
            if (operand.rows.kind == Addressing::Kind::indexed) return false;
            ++count;
        }
        return count == 1;
    }

    /// Adds waiting nodes to the result as one. If `complete` is a target, this node writes its complete gradient: parts made so far are
    /// added in.
    void emit(const std::vector<std::size_t>& nodes, int complete = -1) {
        std::vector<const PolynomialNode*> members;
        members.reserve(nodes.size());
        for (const std::size_t node : nodes) members.push_back(&waiting_[node]);
        PolynomialNode node = united(members);
        std::set<std::string> names;
        for (const Operand& operand : node.polynomial.operands) names.insert(operand.name);
        for (std::size_t i = 0, count = node.arguments.size(); i < count; ++i) {
            const int target = node.arguments[i];
            if (node.polynomial.operands[i].role != Role::output) continue;
            if (target == complete) add_parts(node, static_cast<int>(i), names);
            node.arguments[i] = new_value(target, "_cotangent");
            for (const std::size_t member : nodes) waiting_on_[at(target)].erase(member);
            parts_[at(target)].push_back(node.arguments[i]);
        }
        node.polynomial.paths = simplified_paths(node.polynomial);
        // Inputs come before outputs by convention.
        std::vector<int> order;
        for (const Role role : {Role::input, Role::output})
            for (std::size_t i = 0; i < node.arguments.size(); ++i)
                if (node.polynomial.operands[i].role == role) order.push_back(static_cast<int>(i));
        PolynomialNode ordered{permuted(node.polynomial, order), {}};
        for (const int i : order) ordered.arguments.push_back(node.arguments[at(i)]);
        add(std::move(ordered));
    }

    void add_parts(PolynomialNode& node, int output, std::set<std::string>& names) {
        std::vector<int>& parts = parts_[at(node.arguments[at(output)])];
        for (const int part : parts) {
            Operand operand = node.polynomial.operands[at(output)];
            operand.name = unique_name(operand.name + "_part", names);
            operand.role = Role::input;
            add_elementwise(node.polynomial, 1, {static_cast<int>(node.arguments.size())}, output, operand.segments);
            node.polynomial.operands.push_back(std::move(operand));
            node.arguments.push_back(part);
        }
        parts.clear();
    }

    std::vector<bool> active_;
    std::vector<PolynomialNode> waiting_;
    std::vector<std::vector<int>> parts_;            ///< per source value: result values that add up to what is known of its gradient
    std::vector<std::set<std::size_t>> waiting_on_;  ///< per source value: nodes that wait and will add to its gradient
    std::map<int, int> cotangents_;
};

class ForwardDerivation : ProgramDerivation {
 public:
    ForwardDerivation(const Program& program, std::span<const std::string> inputs) : ProgramDerivation(program, inputs) {}

    Program run() {
        tangents_.assign(source_.values.size(), -1);
        for (const int input : requested_) tangents_[at(input)] = new_input(input, "_tangent");
        for (const Node& node : source_.nodes) {
            if (const auto* polynomial = std::get_if<PolynomialNode>(&node)) forward(*polynomial);
            else forward(std::get<FunctionNode>(node));
        }
        for (const int output : source_.outputs) {
            int tangent = tangents_[at(output)];
            if (tangent < 0) {
                tangent = new_value(output, "");
                add_elementwise_node({}, tangent);
            }
            new_output(tangent, output, "_tangent");
        }
        return finish();
    }

 private:
    void forward(const PolynomialNode& node) {
        const PolynomialNode merged = united({&node});
        std::vector<int> inputs;
        for (std::size_t i = 0; i < merged.arguments.size(); ++i)
            if (merged.polynomial.operands[i].role == Role::input && tangents_[at(merged.arguments[i])] >= 0)
                inputs.push_back(static_cast<int>(i));
        if (inputs.empty()) return;
        const DerivedPolynomial derived = derive_forward(merged.polynomial, inputs);
        std::vector<bool> written(derived.origins.size(), false);
        for (const Path& path : derived.polynomial.paths) written[at(path.output().operand)] = true;
        std::vector<std::string> outputs;
        PolynomialNode tangents;
        for (std::size_t i = 0; i < written.size(); ++i)
            if (written[i]) outputs.push_back(derived.polynomial.operands[i].name);
        if (outputs.empty()) return;
        tangents.polynomial = only_outputs(derived.polynomial, outputs);
        for (const Operand& operand : tangents.polynomial.operands) {
            const Origin origin = derived.origins[at(derived.polynomial.find_operand(operand.name))];
            const int argument = merged.arguments[at(origin.operand)];
            if (operand.role == Role::output) tangents_[at(argument)] = new_value(argument, "_tangent");
            tangents.arguments.push_back(origin.kind == Origin::Kind::same ? argument : tangents_[at(argument)]);
        }
        add(std::move(tangents));
    }

    void forward(const FunctionNode& node) {
        const int tangent = tangents_[at(node.input)];
        if (tangent < 0) return;
        const std::vector<ElementwiseTerm> terms = times(derivative_of(node), tangent);
        if (terms.empty()) return;
        tangents_[at(node.output)] = new_value(node.output, "_tangent");
        add_elementwise_node(terms, tangents_[at(node.output)]);
    }

    std::vector<int> tangents_;  ///< per source value: its tangent in the result, -1: zero
};

}  // namespace

Program vjp(const Program& program, std::span<const std::string> inputs) { return ReverseDerivation(program, inputs).run(false); }
Program value_and_vjp(const Program& program, std::span<const std::string> inputs) { return ReverseDerivation(program, inputs).run(true); }
Program jvp(const Program& program, std::span<const std::string> inputs) { return ForwardDerivation(program, inputs).run(); }

}  // namespace clebsch
