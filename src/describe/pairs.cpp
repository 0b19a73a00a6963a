#include "describe/pairs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "describe/derivative.hpp"
#include "describe/derivative_origins.hpp"
#include "describe/elementwise.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

class Pairing {
 public:
    Pairing(const Program& program, const PairNames& names)
        : names_(names), source_(simplified(program)), paired_(source_), parity_(source_.values.size()) {}

    /// Finds the parities of all that belongs to edges and makes the program whose gradient is wanted; false: not possible.
    bool rewrite() {
        const auto end_of_edges = [&](const std::string& name) {
            const auto found = std::ranges::find(source_.indices, name, &Index::name);
            return found != source_.indices.end() && found->from == names_.edges;
        };
        if (!end_of_edges(names_.sender) || !end_of_edges(names_.receiver)) return false;
        vectors_ = source_.find_value(names_.vectors);
        for (const int input : source_.inputs)
            if (of_edges(input) != (input == vectors_)) return false;
        for (const int output : source_.outputs)
            if (of_edges(output)) return false;
        parity_[at(vectors_)].assign(static_cast<std::size_t>(value(vectors_).size()), -1);

        paired_.nodes.clear();
        for (int v = 0; v < static_cast<int>(source_.values.size()); ++v)
            if (of_edges(v) && v != vectors_) paired_.values[at(v)].space = names_.pairs;
        paired_.indices.push_back({names_.pair, names_.edges, names_.pairs, false});
        paired_.indices.push_back(first());
        add_vectors_of_pairs();
        return std::ranges::all_of(source_.nodes, [&](const Node& node) { return add(node); });
    }

    PairedGradient gradient() const {
        Program program = value_and_vjp(paired_, std::vector<std::string>{names_.vectors});
        program.indices = paired_.indices;
        Program of_pairs = with_sums_over_edges(program, true);
        return {std::move(of_pairs), with_sums_over_edges(std::move(program), false)};
    }

 private:
    const Value& value(int position) const { return source_.values[at(position)]; }
    bool of_edges(int position) const { return value(position).space == names_.edges; }
    bool is_even(int position) const { return std::ranges::find(parity_[at(position)], -1) == parity_[at(position)].end(); }
    Index first() const { return {names_.first, names_.pairs, names_.edges, true}; }
    bool at_an_end(const Operand& operand) const {
        return !operand.rows.via.empty() && (operand.rows.via[0] == names_.sender || operand.rows.via[0] == names_.receiver);
    }
    bool is_sum(const Polynomial& polynomial) const {
        return polynomial.rows == names_.edges &&
               std::ranges::any_of(polynomial.operands, [&](const Operand& operand) { return at_an_end(operand); });
    }

    void add_vectors_of_pairs() {
        Value of_pairs = value(vectors_);
        std::set<std::string> taken;
        for (const Value& known : source_.values) taken.insert(known.name);
        of_pairs.name = unique_name(names_.vectors + "_of_pairs", taken);
        of_pairs.space = names_.pairs;
        vectors_of_pairs_ = static_cast<int>(paired_.values.size());
        paired_.values.push_back(std::move(of_pairs));
        PolynomialNode copy = elementwise_node(paired_.values, {{1, {vectors_of_pairs_}}}, vectors_of_pairs_);
        copy.arguments.front() = vectors_;
        copy.polynomial.operands.front().rows = row_of(names_.first);
        copy.polynomial.indices = {first()};
        paired_.nodes.emplace_back(std::move(copy));
    }

    bool add(const Node& node) {
        if (const auto* function = std::get_if<FunctionNode>(&node)) {
            if (of_edges(function->input) && !is_even(function->input)) return false;
            parity_[at(function->output)] = parity_[at(function->input)];
            paired_.nodes.push_back(node);
            return function->input != vectors_;
        }
        const auto& own = std::get<PolynomialNode>(node);
        for (std::size_t i = 0; i < own.arguments.size(); ++i)
            if (of_edges(own.arguments[i]) && own.polynomial.operands[i].rows.kind != Addressing::Kind::each) return false;
        if (own.polynomial.rows != names_.edges) {
            paired_.nodes.push_back(node);
            return true;
        }
        return is_sum(own.polynomial) ? add_sum(own) : add_local(own);
    }

    /// What the exchange does to the product of a path's factors, those at the ends aside: its sign, or 0: something else.
    int parity_of(const PolynomialNode& node, const Path& path) const {
        int parity = 1;
        for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
            const Factor& factor = path.factors[f];
            const int argument = node.arguments[at(factor.operand)];
            if (!of_edges(argument)) continue;
            const Operand& operand = node.polynomial.operands[at(factor.operand)];
            const auto begin = parity_[at(argument)].begin() + operand.offset(factor.segment);
            const auto end = begin + operand.segments[at(factor.segment)].size();
            parity *= std::find(begin, end, -*begin) == end ? *begin : 0;
        }
        return parity;
    }

    /// The node with rows of pairs; its operands are those of the first edge.
    PolynomialNode over_pairs(const PolynomialNode& node) const {
        PolynomialNode result = node;
        result.polynomial.rows = names_.pairs;
        bool through_first = false;
        for (Operand& operand : result.polynomial.operands) {
            if (operand.rows.kind != Addressing::Kind::indexed) continue;
            operand.rows.via.insert(operand.rows.via.begin(), names_.first);
            through_first = true;
        }
        if (through_first) result.polynomial.indices.push_back(first());
        std::ranges::replace(result.arguments, vectors_, vectors_of_pairs_);
        return result;
    }

    bool add_local(const PolynomialNode& node) {
        const auto outputs = [&](auto visit) {
            for (std::size_t i = 0; i < node.arguments.size(); ++i)
                if (node.polynomial.operands[i].role == Role::output) visit(node.polynomial.operands[i], node.arguments[i]);
        };
        bool local = true;
        outputs([&](const Operand& operand, int output) {
            local = local && operand.rows.kind == Addressing::Kind::each;
            parity_[at(output)].assign(static_cast<std::size_t>(operand.size()), 0);
        });
        if (!local) return false;
        for (const Path& path : node.polynomial.paths) {
            const int parity = parity_of(node, path);
            if (parity == 0) return false;
            const Factor& output = path.output();
            const Operand& operand = node.polynomial.operands[at(output.operand)];
            const auto begin = parity_[at(node.arguments[at(output.operand)])].begin() + operand.offset(output.segment);
            const auto end = begin + operand.segments[at(output.segment)].size();
            if (std::find(begin, end, -parity) != end) return false;
            std::fill(begin, end, parity);
        }
        outputs([&](const Operand&, int output) { std::ranges::replace(parity_[at(output)], 0, 1); });  // zeros are even, too
        paired_.nodes.emplace_back(over_pairs(node));
        return true;
    }

    /// A sum at the ends of both edges of a pair. Two of the node's operands are then one value, of which nothing but the gradient is
    /// taken: it reads the same cotangent through both.
    bool add_sum(const PolynomialNode& node) {
        PolynomialNode both = over_pairs(node);
        std::vector<Operand>& operands = both.polynomial.operands;
        std::set<std::string> operand_names;
        for (const Operand& operand : operands) operand_names.insert(operand.name);
        std::vector<int> reversed(operands.size());  // the operand of the reverse that an operand stands for
        int outputs = 0;
        for (std::size_t i = 0; i < reversed.size(); ++i) {
            const bool is_output = operands[i].role == Role::output;
            const bool moves = at_an_end(node.polynomial.operands[i]);
            if (is_output && (!moves || ++outputs > 1)) return false;
            reversed[i] = static_cast<int>(moves ? operands.size() : i);
            if (!moves) continue;
            Operand other = operands[i];
            other.name = unique_name(other.name + "_reverse", operand_names);
            other.rows.via[1] = other.rows.via[1] == names_.sender ? names_.receiver : names_.sender;
            operands.push_back(std::move(other));
            both.arguments.push_back(both.arguments[i]);
        }
        for (const Index& index : source_.indices)
            if ((index.name == names_.sender || index.name == names_.receiver) &&
                std::ranges::find(both.polynomial.indices, index.name, &Index::name) == both.polynomial.indices.end())
                both.polynomial.indices.push_back(index);
        for (const Path& path : node.polynomial.paths) {
            Path of_reverse = path;
            of_reverse.scale *= parity_of(node, path);
            if (of_reverse.scale == 0) return false;
            for (Factor& factor : of_reverse.factors) factor.operand = reversed[at(factor.operand)];
            both.polynomial.paths.push_back(std::move(of_reverse));
        }
        paired_.nodes.emplace_back(std::move(both));
        return true;
    }

    /// The program with the source's sums over edges instead of the sums over pairs that it was derived from. `of_pairs`: they read even
    /// values of the pairs.
    Program with_sums_over_edges(Program program, bool of_pairs) const {
        std::set<std::string> taken;
        for (const Value& known : program.values) taken.insert(known.name);
        std::vector<int> copies(source_.values.size(), -1);  // of the source's values of edges
        copies[at(vectors_)] = program.find_value(names_.vectors);
        const auto of_program = [&](int position) { return program.find_value(value(position).name); };
        const auto of_edge = [&](int position) {
            if (!of_edges(position)) return of_program(position);
            int& copy = copies[at(position)];
            if (copy < 0) {
                copy = static_cast<int>(program.values.size());
                program.values.push_back(value(position));
                program.values.back().name = unique_name(value(position).name + "_of_edge", taken);
            }
            return copy;
        };
        std::vector<Node> nodes;
        std::map<int, PolynomialNode> sums;  // by the value in the program
        for (const Node& node : source_.nodes) {
            if (const auto* function = std::get_if<FunctionNode>(&node)) {
                if (of_edges(function->input))
                    nodes.emplace_back(FunctionNode{function->function, of_edge(function->input), of_edge(function->output)});
                continue;
            }
            PolynomialNode own = std::get<PolynomialNode>(node);
            if (own.polynomial.rows != names_.edges) continue;
            const bool sum = is_sum(own.polynomial);
            bool from_pairs = false;
            for (std::size_t i = 0; i < own.arguments.size(); ++i) {
                const int argument = own.arguments[i];
                const bool of_pair = of_pairs && sum && of_edges(argument) && is_even(argument);
                own.arguments[i] = of_pair ? of_program(argument) : of_edge(argument);
                if (of_pair) own.polynomial.operands[i].rows = row_of(names_.pair);
                from_pairs = from_pairs || of_pair;
            }
            if (from_pairs) own.polynomial.indices.push_back({names_.pair, names_.edges, names_.pairs, false});
            if (!sum) nodes.emplace_back(std::move(own));
            else sums.emplace(output_of(own), std::move(own));
        }
        for (Node& node : program.nodes) {
            const auto* polynomial = std::get_if<PolynomialNode>(&node);
            const auto sum = polynomial == nullptr ? sums.end() : sums.find(output_of(*polynomial));
            nodes.push_back(sum == sums.end() ? std::move(node) : Node(sum->second));
        }
        program.nodes = std::move(nodes);
        return simplified(std::move(program));
    }

    static int output_of(const PolynomialNode& node) {
        const auto found = std::ranges::find(node.polynomial.operands, Role::output, &Operand::role);
        return node.arguments[static_cast<std::size_t>(found - node.polynomial.operands.begin())];
    }

    const PairNames& names_;
    const Program source_;
    Program paired_;                        ///< its values begin with those of source_, so positions agree
    std::vector<std::vector<int>> parity_;  ///< of every value of edges, of its numbers: 1 or -1
    int vectors_ = -1, vectors_of_pairs_ = -1;
};

}  // namespace

std::optional<PairedGradient> gradient_in_pairs(const Program& program, const PairNames& names) {
    validate(program);
    Pairing pairing(program, names);
    if (!pairing.rewrite()) return std::nullopt;
    return pairing.gradient();
}

}  // namespace clebsch
