#include "model/tabulate.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/program_builder.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// Inputs of a node, and its output when it is the only one and everything is seen row by row or is shared.
struct Flow {
    std::vector<int> reads;
    int writes = -1;  ///< -1: not such a node
};

Flow flow_of(const Program& program, const Node& node) {
    if (const auto* function = std::get_if<FunctionNode>(&node)) return {{function->input}, function->output};
    const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
    Flow flow;
    bool local = true;
    int outputs = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const Operand& operand = polynomial.operands[i];
        if (operand.role == Role::input) {
            flow.reads.push_back(arguments[i]);
            local = local && operand.rows.kind != Addressing::Kind::indexed;
        } else {
            flow.writes = arguments[i];
            ++outputs;
            local = local && operand.rows.kind == Addressing::Kind::each && program.values[at(arguments[i])].space == polynomial.rows;
        }
    }
    if (!local || outputs != 1) flow.writes = -1;
    return flow;
}

bool is_plain(const Value& value) {
    return std::ranges::all_of(value.segments, [](const Segment& segment) { return segment.components == 1; });
}

/// What one number per row determines.
struct Cone {
    int number = -1;
    std::vector<int> nodes;   ///< from the number to the values
    std::vector<int> values;  ///< wide, and read outside or outputs of the program
    std::int64_t numbers = 0;
};

Cone cone_of(const Program& program, const std::vector<Flow>& flows, int number, std::int64_t least_numbers) {
    const std::string& space = program.values[at(number)].space;
    Cone cone{.number = number, .nodes = {}, .values = {}, .numbers = 0};
    std::set<int> inside = {number}, shared;
    for (const int input : program.inputs)
        if (program.values[at(input)].space.empty()) shared.insert(input);
    std::set<int> nodes;
    for (std::size_t n = 0; n < flows.size(); ++n) {
        const Flow& flow = flows[n];
        if (flow.writes < 0 || program.values[at(flow.writes)].space != space || flow.reads.empty()) continue;
        const bool follows = std::ranges::all_of(flow.reads, [&](int value) { return inside.contains(value) || shared.contains(value); });
        const bool starts = std::ranges::any_of(flow.reads, [&](int value) { return inside.contains(value); });
        if (!follows || !starts) continue;
        inside.insert(flow.writes);
        nodes.insert(static_cast<int>(n));
    }
    std::set<int> wanted(program.outputs.begin(), program.outputs.end());
    for (std::size_t n = 0; n < flows.size(); ++n)
        if (!nodes.contains(static_cast<int>(n))) wanted.insert(flows[n].reads.begin(), flows[n].reads.end());
    for (const int n : nodes) {
        const Value& value = program.values[at(flows[at(n)].writes)];
        if (!wanted.contains(flows[at(n)].writes) || value.size() < least_numbers || !is_plain(value)) continue;
        cone.values.push_back(flows[at(n)].writes);
        cone.numbers += value.size();
    }
    cone.nodes.assign(nodes.begin(), nodes.end());
    return cone;
}

Cone widest_cone(const Program& program, const std::vector<Flow>& flows, std::int64_t least_numbers) {
    Cone best;
    for (const Flow& flow : flows) {
        if (flow.writes < 0 || program.values[at(flow.writes)].size() != 1) continue;
        Cone cone = cone_of(program, flows, flow.writes, least_numbers);
        if (!cone.values.empty() && cone.numbers >= best.numbers) best = std::move(cone);
    }
    return best;
}

/// Without the inputs from the second on that no node reads.
Program without_unused_inputs(const Program& program) {
    Program result = simplified(program);
    std::set<int> read(result.outputs.begin(), result.outputs.end());
    for (const Node& node : result.nodes)
        for (const int value : flow_of(result, node).reads) read.insert(value);
    const int first = result.inputs.front();
    std::erase_if(result.inputs, [&](int input) { return input != first && !read.contains(input); });
    return simplified(std::move(result));
}

Program functions_of(const Program& program, const Cone& cone) {
    Program functions;
    functions.values = program.values;
    functions.inputs = {cone.number};
    for (const int input : program.inputs)
        if (program.values[at(input)].space.empty()) functions.inputs.push_back(input);
    functions.outputs = cone.values;
    for (const int n : cone.nodes) functions.nodes.push_back(program.nodes[at(n)]);
    functions = without_unused_inputs(functions);
    validate(functions);
    return functions;
}

/// Builds nodes behind the ones a program has.
class Rewrite {
 public:
    Rewrite(const Program& given, std::string space, const TabulateOptions& options)
        : program(given), space_(std::move(space)), options_(options) {
        program.nodes.clear();
        if (std::ranges::find(given.indices, options.piece, &Index::name) != given.indices.end())
            fail("tabulate: the program has an index '" + options.piece + "' already");
        program.indices.push_back(index());
    }

    int input(const std::string& name, std::vector<Segment> segments) {
        const int value = add({name, options_.piece, std::move(segments), Layout::mul_ir});
        program.inputs.push_back(value);
        return value;
    }

    /// 1, x, x^2, ... of x = slope number + offset.
    int powers(int number, int frame) {
        const std::string& name = options_.piece;
        Polynomial affine = polynomial({make_operand({"number"}, {{1, 1, {}}}, Role::input),
                                        make_operand({"frame", Layout::mul_ir, row_of(name)}, {{1, 1, {}}, {1, 1, {}}}, Role::input),
                                        make_operand({"x"}, {{1, 1, {}}}, Role::output)});
        affine.indices = {index()};
        add_path(affine, {{0, 0, "", -1}, {1, 0, "", -1}, {2, 0, "", -1}}, Coefficients(), 1.0, {});
        add_path(affine, {{1, 1, "", -1}, {2, 0, "", -1}}, Coefficients(), 1.0, {});
        const int x = apply(name + ".x", affine, {number, frame});

        // x^(4 i + j) = (x^4)^i x^j
        const int high = (options_.coefficients + 3) / 4;
        const int lows = std::min(4, options_.coefficients);
        const int low = first_powers(name + ".low_powers", x, lows);
        if (high == 1) return low;
        Polynomial fourth = polynomial({make_operand({"x"}, {{1, 1, {}}}, Role::input), make_operand({"out"}, {{1, 1, {}}}, Role::output)});
        add_path(fourth, {{0, 0, "", -1}, {0, 0, "", -1}, {0, 0, "", -1}, {0, 0, "", -1}, {1, 0, "", -1}}, Coefficients(), 1.0, {});
        const int highs = first_powers(name + ".high_powers", apply(name + ".fourth_power", fourth, {x}), high);
        const int count = options_.coefficients;
        Polynomial outer =
            polynomial({make_operand({"low"}, {{1, 4, {}}}, Role::input), make_operand({"high"}, {{1, high, {}}}, Role::input),
                        make_operand({"powers"}, {{1, count, {}}}, Role::output)});
        std::vector<CoefficientEntry> entries;
        entries.reserve(static_cast<std::size_t>(count));
        for (int k = 0; k < count; ++k) entries.push_back({{k % 4, k / 4, k}, 1.0});
        add_path(outer, {{0, 0, "", 0}, {1, 0, "", 1}, {2, 0, "", 2}}, Coefficients::literal({4, high, count}, std::move(entries)), 1.0,
                 {});
        return apply(name + ".powers", outer, {low, highs});
    }

    /// Writes `value` as powers times the rows of a table.
    void look_up(int value, int powers, int table) {
        LinearOptions linear;
        linear.rows = space_;
        linear.indices = {index()};
        linear.weights.rows = row_of(options_.piece);
        program.nodes.emplace_back(PolynomialNode{dense(options_.coefficients, program.values[at(value)].size(), /*fan_in=*/false, linear),
                                                  {powers, table, value}});
    }

    Program program;

 private:
    Index index() const { return {options_.piece, space_, options_.piece, false}; }
    Polynomial polynomial(std::vector<Operand> operands) const {
        Polynomial result;
        result.rows = space_;
        result.operands = std::move(operands);
        return result;
    }
    int add(Value value) {
        if (std::ranges::find(program.values, value.name, &Value::name) != program.values.end())
            fail("tabulate: the program has a value '" + value.name + "' already");
        program.values.push_back(std::move(value));
        return static_cast<int>(program.values.size()) - 1;
    }
    int apply(const std::string& name, const Polynomial& polynomial, std::vector<int> arguments) {
        const Operand& output = polynomial.operands.back();
        arguments.push_back(add({name, space_, output.segments, output.layout}));
        program.nodes.emplace_back(PolynomialNode{polynomial, arguments});
        return arguments.back();
    }
    int first_powers(const std::string& name, int x, int count) {
        Polynomial powers =
            polynomial({make_operand({"x"}, {{1, 1, {}}}, Role::input), make_operand({"powers"}, {{1, count, {}}}, Role::output)});
        for (int k = 0; k < count; ++k) {
            std::vector<Factor> factors(static_cast<std::size_t>(k), {0, 0, "", -1});
            factors.push_back({1, 0, "", 0});
            add_path(powers, std::move(factors), Coefficients::literal({count}, {{{k}, 1.0}}), 1.0, {});
        }
        return apply(name, powers, {x});
    }

    std::string space_;
    const TabulateOptions& options_;
};

}  // namespace

std::optional<Tabulation> tabulate(const Program& program, const TabulateOptions& options) {
    if (options.coefficients < 2 || options.coefficients > 16)
        fail("tabulate: expected 2 to 16 coefficients, got " + std::to_string(options.coefficients));
    validate(program);
    const Program given = simplified(program);
    std::vector<Flow> flows;
    for (const Node& node : given.nodes) flows.push_back(flow_of(given, node));
    const Cone cone = widest_cone(given, flows, options.least_numbers);
    if (cone.values.empty()) return std::nullopt;

    const Value& number = given.values[at(cone.number)];
    Tabulation result{.number = number.name, .space = number.space, .functions = functions_of(given, cone), .tabulated = {}, .tables = {}};
    Rewrite rewrite(given, number.space, options);
    const int frame = rewrite.input(options.piece + ".frame", {{1, 1, {}}, {1, 1, {}}});
    std::vector<int> tables;
    for (const int value : cone.values) {
        result.tables.push_back(options.piece + "." + given.values[at(value)].name);
        tables.push_back(rewrite.input(result.tables.back(), {{options.coefficients * given.values[at(value)].size(), 1, {}}}));
    }
    for (std::size_t n = 0; n < given.nodes.size(); ++n) {
        if (std::ranges::find(cone.values, flows[n].writes) != cone.values.end()) continue;
        rewrite.program.nodes.push_back(given.nodes[n]);
        if (flows[n].writes != cone.number) continue;
        const int powers = rewrite.powers(cone.number, frame);
        for (std::size_t v = 0; v < cone.values.size(); ++v) rewrite.look_up(cone.values[v], powers, tables[v]);
    }
    result.tabulated = without_unused_inputs(rewrite.program);
    validate(result.tabulated);
    return result;
}

}  // namespace clebsch
