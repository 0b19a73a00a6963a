#include "support/random_descriptions.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "support/polynomial_builder.hpp"

namespace clebsch::random {
namespace {

/// Operands in another order: outputs need not come last.
Polynomial shuffled(Engine& engine, const Polynomial& polynomial) {
    std::vector<int> order(polynomial.operands.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), engine);
    std::vector<int> position(order.size());
    Polynomial result = polynomial;
    for (std::size_t i = 0; i < order.size(); ++i) {
        result.operands[i] = polynomial.operands[static_cast<std::size_t>(order[i])];
        position[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    }
    for (Path& path : result.paths)
        for (Factor& factor : path.factors) factor.operand = position[static_cast<std::size_t>(factor.operand)];
    return result;
}

/// Input operands no path uses are dropped (a program's values need not all be read by a node).
PolynomialNode without_unused(const Polynomial& polynomial, const std::vector<int>& arguments) {
    std::vector<bool> used(polynomial.operands.size(), false);
    for (const Path& path : polynomial.paths)
        for (const Factor& factor : path.factors) used[static_cast<std::size_t>(factor.operand)] = true;
    PolynomialNode node{polynomial, {}};
    node.polynomial.operands.clear();
    std::vector<int> position(used.size(), -1);
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (!used[i]) continue;
        position[i] = static_cast<int>(node.arguments.size());
        node.polynomial.operands.push_back(polynomial.operands[i]);
        node.arguments.push_back(arguments[i]);
    }
    for (Path& path : node.polynomial.paths)
        for (Factor& factor : path.factors) factor.operand = position[static_cast<std::size_t>(factor.operand)];
    return node;
}

class ProgramBuilder {
 public:
    ProgramBuilder(Engine& engine, const Limits& limits) : engine_(engine), limits_(limits) {
        limits_.paths = std::min(limits.paths, 3);
        limits_.outputs = std::min(limits.outputs, 2);
        program_.indices = random_indices(engine);
        spaces_ = {"node", "edge", "graph"};
        if (chance(engine, 0.2)) spaces_.push_back("");
    }

    Program build() {
        const int nodes = 1 + below(engine_, limits_.nodes);
        add_polynomial();
        while (static_cast<int>(program_.nodes.size()) < nodes) {
            if (chance(engine_, 0.45)) add_function();
            else add_polynomial();
        }
        for (const int value : written_)
            if (value == written_.back() || chance(engine_, 0.3)) program_.outputs.push_back(value);
        std::shuffle(program_.outputs.begin(), program_.outputs.end(), engine_);
        return program_;
    }

 private:
    Engine& engine_;
    Limits limits_;
    Program program_;
    std::vector<std::string> spaces_;
    std::vector<int> written_;

    int add_value(std::string prefix, const std::string& space, std::vector<Segment> segments, Layout layout) {
        program_.values.push_back({prefix + std::to_string(program_.values.size()), space, std::move(segments), layout});
        return static_cast<int>(program_.values.size()) - 1;
    }

    void add_polynomial() {
        const std::string rows = pick(engine_, spaces_);
        PolynomialBuilder builder(engine_, limits_, rows, reachable(program_.indices, rows));
        std::vector<int> arguments;
        for (std::size_t v = 0; v < program_.values.size(); ++v) {
            const Value& value = program_.values[v];
            if (!chance(engine_, 0.8) || !builder.reaches(value.space)) continue;
            builder.offer("v" + std::to_string(arguments.size()), value.segments, value.layout, value.space);
            arguments.push_back(static_cast<int>(v));
        }
        const int paths = 1 + below(engine_, limits_.paths);
        for (int i = 0; i < paths; ++i) builder.add_path();
        const Polynomial polynomial = builder.take();
        arguments.resize(polynomial.operands.size(), -1);
        PolynomialNode node = without_unused(polynomial, arguments);
        for (std::size_t i = 0; i < node.arguments.size(); ++i) {
            if (node.arguments[i] >= 0) continue;
            const Operand& operand = node.polynomial.operands[i];
            const bool input = operand.role == Role::input;
            std::vector<Segment> segments = operand.segments;
            const bool plain = std::ranges::all_of(segments, [](const Segment& segment) { return segment.components == 1; });
            if (plain && chance(engine_, 0.3)) segments = {{operand.size(), 1, std::nullopt}};  // the same memory, described otherwise
            node.arguments[i] =
                add_value(input ? "input" : "value", node.polynomial.space_of(operand), std::move(segments), operand.layout);
            (input ? program_.inputs : written_).push_back(node.arguments[i]);
        }
        program_.nodes.push_back(std::move(node));
    }

    int apply(Function function, int input) {
        const Value value = program_.values[static_cast<std::size_t>(input)];
        const int output = add_value("value", value.space, value.segments, value.layout);
        program_.nodes.push_back(FunctionNode{function, input, output});
        written_.push_back(output);
        return output;
    }

    void add_function() {
        int input = below(engine_, static_cast<int>(program_.values.size()));
        using Kind = FunctionKind;
        std::vector<Function> functions = {{Kind::exp, 0},    {Kind::log, 0},     {Kind::sin, 0},      {Kind::cos, 0},
                                           {Kind::tanh, 0},   {Kind::sigmoid, 0}, {Kind::silu, 0},     {Kind::softplus, 0},
                                           {Kind::erf, 0},    {Kind::power, 2},   {Kind::power, -0.5}, {Kind::power, 1.5},
                                           {Kind::power, -1}, {Kind::sinc, 0},    {Kind::sinc, 1},     {Kind::sinc, 2}};
        if (!limits_.smooth_only)
            functions.insert(functions.end(), {{Kind::absolute, 0}, {Kind::sign, 0}, {Kind::relu, 0}, {Kind::step, 0}});
        const Function function = pick(engine_, functions);
        // Arguments inside the domain and results of moderate size.
        if (function.kind == Kind::log || (function.kind == Kind::power && function.parameter != 2))
            input = apply({Kind::softplus, 0}, input);
        if (function.kind == Kind::exp) input = apply({Kind::tanh, 0}, input);
        apply(function, input);
    }
};

std::int64_t random_rows(Engine& engine, const Limits& limits, double work_per_row) {
    const double affordable = limits.work / std::max(1.0, work_per_row);
    const auto most = static_cast<int>(std::clamp<double>(affordable, 2, static_cast<double>(std::max<std::int64_t>(2, limits.rows))));
    if (chance(engine, 0.08)) return 0;
    if (chance(engine, 0.1)) return 1;
    return 1 + below(engine, most);
}

void fill_indices(Engine& engine, const std::vector<Index>& indices, ReferenceInputs& inputs) {
    for (const Index& index : indices) {
        std::vector<std::int64_t>& values = inputs.indices[index.name];
        const std::int64_t from = inputs.rows.at(index.from), to = inputs.rows.at(index.to);
        if (to == 0) {
            values.assign(static_cast<std::size_t>(from), -1);
            continue;
        }
        for (std::int64_t i = 0; i < from; ++i) values.push_back(below(engine, static_cast<int>(to)));
        if (index.sorted) std::ranges::sort(values);
        if (!chance(engine, 0.3)) continue;
        for (std::int64_t& value : values)
            if (chance(engine, 0.15)) value = -1;
    }
}

ReferenceArray normal_array(Engine& engine, std::int64_t count) {
    ReferenceArray array(static_cast<std::size_t>(count));
    for (long double& number : array) number = normal(engine);
    return array;
}

void add_spaces(Engine& engine, const Limits& limits, std::map<std::string, double>& work, const std::vector<Index>& indices,
                ReferenceInputs& inputs) {
    for (const Index& index : indices) work[index.from], work[index.to];
    for (const auto& [space, per_row] : work)
        if (!space.empty()) inputs.rows[space] = random_rows(engine, limits, per_row);
    fill_indices(engine, indices, inputs);
}

std::int64_t rows_in(const ReferenceInputs& inputs, const std::string& space) { return space.empty() ? 1 : inputs.rows.at(space); }

}  // namespace

double work_per_row(const Path& path) {
    double work = static_cast<double>(path.coefficients.entries().size());
    for (const auto& [letter, extent] : path.extents) work *= static_cast<double>(extent);
    return work;
}

double work_per_row(const Polynomial& polynomial) {
    double work = 0;
    for (const Path& path : polynomial.paths) work += work_per_row(path);
    return work;
}

Polynomial polynomial(Engine& engine, const Limits& limits) {
    const int where = below(engine, 12);
    const std::string rows = where < 6 ? "edge" : where < 9 ? "node" : where < 11 ? "row" : "";
    PolynomialBuilder builder(engine, limits, rows, reachable(random_indices(engine), rows));
    const int paths = 1 + below(engine, limits.paths);
    for (int i = 0; i < paths; ++i) builder.add_path();
    return shuffled(engine, builder.take());
}

Program program(Engine& engine, const Limits& limits) { return ProgramBuilder(engine, limits).build(); }

ReferenceInputs inputs(Engine& engine, const Polynomial& polynomial, const Limits& limits) {
    ReferenceInputs result;
    std::map<std::string, double> work = {{polynomial.rows, work_per_row(polynomial)}};
    add_spaces(engine, limits, work, polynomial.indices, result);
    for (const Operand& operand : polynomial.operands)
        if (operand.role == Role::input)
            result.arrays[operand.name] = normal_array(engine, rows_in(result, polynomial.space_of(operand)) * operand.size());
    return result;
}

ReferenceInputs inputs(Engine& engine, const Program& program, const Limits& limits) {
    ReferenceInputs result;
    std::map<std::string, double> work;
    for (const Value& value : program.values) work[value.space];
    for (const Node& node : program.nodes)
        if (const auto* polynomial = std::get_if<PolynomialNode>(&node))
            work[polynomial->polynomial.rows] += work_per_row(polynomial->polynomial);
    add_spaces(engine, limits, work, program.indices, result);
    for (const int input : program.inputs) {
        const Value& value = program.values[static_cast<std::size_t>(input)];
        result.arrays[value.name] = normal_array(engine, rows_in(result, value.space) * value.size());
    }
    return result;
}

}  // namespace clebsch::random
