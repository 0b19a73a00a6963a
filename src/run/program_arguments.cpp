#include "run/program_arguments.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "run/program_plan.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::string named(const std::string& name) { return "'" + name + "'"; }

}  // namespace

ProgramArguments::ProgramArguments(const Program& program, const std::vector<DType>& types, std::optional<DType> arithmetic)
    : given(program), spaces(row_spaces(program)), dtypes(types) {
    const std::size_t inputs = program.inputs.size(), count = inputs + program.outputs.size();
    if (dtypes.empty()) dtypes.assign(count, DType::float32);
    if (dtypes.size() != count)
        fail("expected one dtype for each of " + std::to_string(inputs) + " inputs and " + std::to_string(count - inputs) +
             " outputs, got " + std::to_string(dtypes.size()));
    const bool all_double = count > 0 && std::ranges::all_of(dtypes, [](DType dtype) { return dtype == DType::float64; });
    compute = arithmetic.value_or(all_double ? DType::float64 : DType::float32);
    if (compute != DType::float32 && compute != DType::float64)
        fail(std::string("expected float32 or float64 as the compute type, got ") + to_text(compute));
    for (std::size_t i = 0; i < count; ++i) {
        const Value& argument = program.values[at(i < inputs ? program.inputs[i] : program.outputs[i - inputs])];
        if (size_of(dtypes[i]) == 0)
            fail("operand " + named(argument.name) + ": dtype number " + std::to_string(static_cast<int>(dtypes[i])) + " is unknown");
        argument_spaces.push_back(space_of(argument.space));
        arguments.push_back({argument.name, argument.segments, argument.layout, i < inputs ? Role::input : Role::output, {}});
    }
    for (const Index& index : program.indices) {
        index_from.push_back(space_of(index.from));
        index_to.push_back(space_of(index.to));
    }
}

int ProgramArguments::space_of(const std::string& name) const {
    return name.empty() ? -1 : static_cast<int>(std::ranges::find(spaces, name) - spaces.begin());
}

std::int64_t ProgramArguments::rows_of(std::size_t argument, std::span<const std::int64_t> rows) const {
    return argument_spaces[argument] < 0 ? 1 : rows[at(argument_spaces[argument])];
}

void ProgramArguments::check_rows(std::span<const std::int64_t> rows) const {
    if (rows.size() != spaces.size()) {
        std::string names;
        for (const std::string& space : spaces) names += (names.empty() ? "" : ", ") + space;
        fail("expected a number of rows for each of the " + std::to_string(spaces.size()) + " row spaces (" + names + "), got " +
             std::to_string(rows.size()));
    }
    for (std::size_t s = 0; s < rows.size(); ++s)
        if (rows[s] < 0)
            fail("row space " + named(spaces[s]) + ": expected a number of rows of at least 0, got " + std::to_string(rows[s]));
}

void ProgramArguments::check(const Call& call, bool values) const {
    check_rows(call.rows);
    if (call.buffers.size() != arguments.size())
        fail("expected " + std::to_string(given.inputs.size()) + " inputs and " + std::to_string(given.outputs.size()) + " outputs, got " +
             std::to_string(call.buffers.size()) + " buffers");
    if (call.indices.size() != given.indices.size())
        fail("expected " + std::to_string(given.indices.size()) + " index arrays, got " + std::to_string(call.indices.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i) check_buffer(arguments[i], call.buffers[i], dtypes[i], rows_of(i, call.rows));
    for (std::size_t i = given.inputs.size(); i < arguments.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
            if (share_memory(arguments[i], call.buffers[i], arguments[k], call.buffers[k]))
                fail("operand " + named(arguments[i].name) + ": an output may share no memory with other operands, it overlaps " +
                     named(arguments[k].name));
    for (std::size_t i = 0; i < given.indices.size(); ++i)
        check_index(given.indices[i], call.indices[i], call.rows[at(index_from[i])], call.rows[at(index_to[i])], values);
}

double ProgramArguments::bytes(std::span<const std::int64_t> rows) const {
    double sum = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        sum += static_cast<double>(rows_of(i, rows)) * static_cast<double>(arguments[i].size()) * static_cast<double>(size_of(dtypes[i]));
    for (const int space : index_from) sum += static_cast<double>(space < 0 ? 1 : rows[at(space)]) * sizeof(std::int64_t);
    return sum;
}

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
