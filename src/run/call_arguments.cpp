#include "run/call_arguments.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::string named(const std::string& name) { return "'" + name + "'"; }

std::vector<std::string> spaces_of_operands(const Polynomial& polynomial) {
    std::vector<std::string> names;
    for (const Operand& operand : polynomial.operands) names.push_back(polynomial.space_of(operand));
    return names;
}

}  // namespace

CallArguments::CallArguments(std::vector<std::string> space_list, std::vector<Operand> operands,
                             const std::vector<std::string>& space_names, std::vector<Index> index_list, const std::vector<DType>& types,
                             std::optional<DType> arithmetic)
    : spaces(std::move(space_list)), arguments(std::move(operands)), dtypes(types), indices(std::move(index_list)) {
    if (dtypes.empty()) dtypes.assign(arguments.size(), DType::float32);
    if (dtypes.size() != arguments.size())
        fail("expected one dtype per operand (" + std::to_string(arguments.size()) + "), got " + std::to_string(dtypes.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (size_of(dtypes[i]) == 0)
            fail("operand " + named(arguments[i].name) + ": dtype number " + std::to_string(static_cast<int>(dtypes[i])) + " is unknown");
    for (const Operand& argument : arguments) sizes.push_back(argument.size());
    const bool all_double = !dtypes.empty() && std::ranges::all_of(dtypes, [](DType dtype) { return dtype == DType::float64; });
    compute = arithmetic.value_or(all_double ? DType::float64 : DType::float32);
    if (compute != DType::float32 && compute != DType::float64)
        fail(std::string("expected float32 or float64 as the compute type, got ") + to_text(compute));
    for (const std::string& name : space_names) argument_spaces.push_back(space_of(name));
    for (const Index& index : indices) {
        index_from.push_back(space_of(index.from));
        index_to.push_back(space_of(index.to));
    }
}

CallArguments::CallArguments(const Polynomial& polynomial, const std::vector<DType>& types, std::optional<DType> arithmetic)
    : CallArguments(row_spaces(polynomial), polynomial.operands, spaces_of_operands(polynomial), polynomial.indices, types, arithmetic) {}

int CallArguments::space_of(const std::string& name) const {
    const auto found = std::ranges::find(spaces, name);
    return found == spaces.end() ? -1 : static_cast<int>(found - spaces.begin());
}

std::int64_t CallArguments::rows_of(std::size_t argument, std::span<const std::int64_t> rows) const {
    return argument_spaces[argument] < 0 ? 1 : rows[at(argument_spaces[argument])];
}

void CallArguments::check_rows(std::span<const std::int64_t> rows) const {
    if (rows.size() != spaces.size()) {
        std::string names;
        for (const std::string& space : spaces) names += (names.empty() ? "" : ", ") + named(space);
        fail("expected the number of rows of each of " + std::to_string(spaces.size()) + " spaces (" + names + "), got " +
             std::to_string(rows.size()));
    }
    for (std::size_t s = 0; s < rows.size(); ++s) {
        if (spaces[s].empty() && rows[s] != 1) fail("the row space without a name has one row, got " + std::to_string(rows[s]));
        if (rows[s] < 0) fail("row space " + named(spaces[s]) + ": expected at least 0 rows, got " + std::to_string(rows[s]));
    }
}

void CallArguments::check(const Call& call, bool values) const {
    check_rows(call.rows);
    if (call.buffers.size() != arguments.size())
        fail("expected one buffer per operand (" + std::to_string(arguments.size()) + "), got " + std::to_string(call.buffers.size()));
    if (call.indices.size() != indices.size())
        fail("expected one array per index (" + std::to_string(indices.size()) + "), got " + std::to_string(call.indices.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i)
        check_buffer(arguments[i], sizes[i], call.buffers[i], dtypes[i], rows_of(i, call.rows));
    for (std::size_t i = 0; i < indices.size(); ++i)
        check_index(indices[i], call.indices[i], call.rows[at(index_from[i])], call.rows[at(index_to[i])], values);
    static thread_local std::vector<Extent> extents;
    extents.clear();
    for (std::size_t i = 0; i < arguments.size(); ++i) extents.push_back(extent_of(sizes[i], call.buffers[i]));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].role != Role::output) continue;
        for (std::size_t other = 0; other < arguments.size(); ++other) {
            const bool met = arguments[other].role == Role::output && other <= i;  // a pair of outputs once
            if (!met && share_memory(extents[i], extents[other]))
                fail("operand " + named(arguments[i].name) + ": an output may share no memory with other operands, it overlaps " +
                     named(arguments[other].name));
        }
    }
}

double CallArguments::bytes(std::span<const std::int64_t> rows) const {
    double sum = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        sum += static_cast<double>(rows_of(i, rows)) * static_cast<double>(sizes[i]) * static_cast<double>(size_of(dtypes[i]));
    for (const int space : index_from) sum += static_cast<double>(space < 0 ? 1 : rows[at(space)]) * sizeof(std::int64_t);
    return sum;
}

}  // namespace clebsch
