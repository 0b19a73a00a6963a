#include "describe/operations/program_builder.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "describe/elementwise.hpp"
#include "describe/operations/path_builder.hpp"

namespace clebsch {

int ProgramBuilder::add(Value value) {
    program_.values.push_back(std::move(value));
    return static_cast<int>(program_.values.size()) - 1;
}

void ProgramBuilder::add_index(const Index& index) {
    const auto known = std::ranges::find(program_.indices, index.name, &Index::name);
    if (known == program_.indices.end()) program_.indices.push_back(index);
}

int ProgramBuilder::input(const std::string& name, const std::string& space, std::vector<Segment> segments, Layout layout) {
    const int number = add({name, space, std::move(segments), layout});
    program_.inputs.push_back(number);
    return number;
}

std::vector<int> ProgramBuilder::apply(const std::vector<std::string>& names, const Polynomial& polynomial,
                                       const std::vector<int>& inputs) {
    PolynomialNode node{polynomial, {}};
    std::vector<int> outputs;
    std::size_t next = 0;
    for (const Operand& operand : polynomial.operands) {
        if (operand.role == Role::input) {
            if (next == inputs.size()) fail("program: operand '" + operand.name + "' got no value");
            node.arguments.push_back(inputs[next++]);
            continue;
        }
        if (outputs.size() == names.size()) fail("program: output operand '" + operand.name + "' got no name");
        outputs.push_back(add({names[outputs.size()], polynomial.space_of(operand), operand.segments, operand.layout}));
        node.arguments.push_back(outputs.back());
    }
    if (next != inputs.size() || outputs.size() != names.size()) fail("program: a polynomial got more values than it has operands");
    for (const Index& index : polynomial.indices) add_index(index);
    program_.nodes.emplace_back(std::move(node));
    return outputs;
}

int ProgramBuilder::apply(const std::string& name, const Polynomial& polynomial, const std::vector<int>& inputs) {
    return apply(std::vector<std::string>{name}, polynomial, inputs).front();
}

int ProgramBuilder::apply(const std::string& name, const Function& function, int input) {
    Value result = value(input);
    result.name = name;
    for (Segment& segment : result.segments) segment.irrep.reset();  // a function of components need not be an irrep any more
    const int output = add(std::move(result));
    program_.nodes.emplace_back(FunctionNode{function, input, output});
    return output;
}

std::vector<int> ProgramBuilder::apply(const std::string& name, const Program& program, const std::vector<int>& inputs) {
    if (inputs.size() != program.inputs.size())
        fail("program '" + name + "': expected " + std::to_string(program.inputs.size()) + " values, got " + std::to_string(inputs.size()));
    std::vector<int> numbers(program.values.size(), -1);
    for (std::size_t i = 0; i < inputs.size(); ++i) numbers[static_cast<std::size_t>(program.inputs[i])] = inputs[i];
    for (std::size_t v = 0; v < numbers.size(); ++v) {
        if (numbers[v] >= 0) continue;
        Value inner = program.values[v];
        const bool only = program.outputs.size() == 1 && program.outputs.front() == static_cast<int>(v);
        inner.name = only ? name : name + "." + inner.name;
        numbers[v] = add(std::move(inner));
    }
    const auto renumber = [&](int& value) { value = numbers[static_cast<std::size_t>(value)]; };
    for (Node node : program.nodes) {
        if (auto* function = std::get_if<FunctionNode>(&node)) {
            renumber(function->input);
            renumber(function->output);
        } else {
            for (int& value : std::get<PolynomialNode>(node).arguments) renumber(value);
        }
        program_.nodes.push_back(std::move(node));
    }
    for (const Index& index : program.indices) add_index(index);
    std::vector<int> outputs = program.outputs;
    for (int& value : outputs) renumber(value);
    return outputs;
}

int ProgramBuilder::sum(const std::string& name, const std::vector<int>& values) {
    if (values.empty()) fail("program: the sum '" + name + "' has no values");
    Value result = value(values.front());
    result.name = name;
    const int output = add(std::move(result));
    std::vector<ElementwiseTerm> terms;
    terms.reserve(values.size());
    for (const int number : values) terms.push_back({1, {number}});
    program_.nodes.emplace_back(elementwise_node(program_.values, terms, output));
    return output;
}

int ProgramBuilder::affine(const std::string& name, int number, double factor, double constant) {
    const Value& from = value(number);
    Polynomial polynomial;
    if (!from.space.empty()) polynomial.rows = from.space;
    const Addressing rows = from.space.empty() ? shared_row() : each_row();
    polynomial.operands = {make_operand({"x", from.layout, rows}, from.segments, Role::input),
                           make_operand({"out", from.layout, rows}, from.segments, Role::output)};
    for (std::size_t i = 0; i < from.segments.size(); ++i) {
        const int segment = static_cast<int>(i), components = from.segments[i].components;
        const std::vector<std::pair<char, std::int64_t>> extents = {{'u', from.segments[i].multiplicity}};
        add_path(polynomial, {{0, segment, "u", 0}, {1, segment, "u", 1}}, Coefficients::identity(components), factor, extents);
        std::vector<CoefficientEntry> ones;
        ones.reserve(static_cast<std::size_t>(components));
        for (int m = 0; m < components; ++m) ones.push_back({{m}, 1.0});
        add_path(polynomial, {{1, segment, "u", 0}}, Coefficients::literal({components}, std::move(ones)), constant, extents);
    }
    return apply(name, polynomial, {number});
}

Assembly::Assembly(ProgramBuilder& program, const std::string& rows, Operand output) : program_(program) {
    polynomial.rows = rows;
    polynomial.operands.push_back(std::move(output));
}

int Assembly::operand(int number) {
    const auto known = std::ranges::find(values_, number);
    if (known != values_.end()) return static_cast<int>(known - values_.begin()) + 1;
    const Value& value = program_.value(number);
    values_.push_back(number);
    polynomial.operands.push_back(
        make_operand({value.name, value.layout, value.space.empty() ? shared_row() : each_row()}, value.segments, Role::input));
    return static_cast<int>(values_.size());
}

int Assembly::finish() { return program_.apply(polynomial.operands[0].name, polynomial, values_); }

Program ProgramBuilder::finish(const std::vector<int>& outputs) {
    program_.outputs = outputs;
    validate(program_);
    return program_;
}

}  // namespace clebsch
