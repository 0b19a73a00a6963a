#include "run/program_arguments.hpp"

#include "run/program_plan.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::vector<Operand> operands_of(const Program& program) {
    std::vector<Operand> operands;
    for (const auto& [values, role] : {std::pair{&program.inputs, Role::input}, {&program.outputs, Role::output}})
        for (const int v : *values) {
            const Value& value = program.values[at(v)];
            operands.push_back({value.name, value.segments, value.layout, role, {}});
        }
    return operands;
}

std::vector<std::string> spaces_of_arguments(const Program& program) {
    std::vector<std::string> names;
    for (const std::vector<int>* values : {&program.inputs, &program.outputs})
        for (const int value : *values) names.push_back(program.values[at(value)].space);
    return names;
}

}  // namespace

ProgramArguments::ProgramArguments(const Program& program, const std::vector<DType>& types, std::optional<DType> arithmetic)
    : CallArguments(row_spaces(program), operands_of(program), spaces_of_arguments(program), program.indices, types, arithmetic),
      given(program) {}

std::vector<std::pair<int, int>> add_copies(Program& program, const std::vector<bool>& needed, std::vector<DType>& dtypes, DType compute) {
    std::vector<int> copy(program.values.size(), -1);
    std::vector<std::pair<int, int>> pairs;
    for (std::size_t v = 0; v < copy.size(); ++v) {
        if (!needed[v] || dtypes[v] == compute) continue;
        copy[v] = static_cast<int>(program.values.size());
        pairs.emplace_back(static_cast<int>(v), copy[v]);
        Value other = program.values[v];
        other.name += std::string("_as_") + to_text(compute);
        program.values.push_back(std::move(other));
        dtypes.push_back(compute);
    }
    const auto use = [&](int& value) {
        if (at(value) < copy.size() && copy[at(value)] >= 0) value = copy[at(value)];
    };
    for (Node& node : program.nodes) {
        if (auto* function = std::get_if<FunctionNode>(&node)) {
            use(function->input);
            use(function->output);
        } else {
            for (int& value : std::get<PolynomialNode>(node).arguments) use(value);
        }
    }
    return pairs;
}

}  // namespace clebsch
