#include "tool/sample_check.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "describe/derivative.hpp"

namespace clebsch::tool {
namespace {

ReferenceArray rows_of(const Array& array, const std::vector<std::int64_t>& rows) {
    ReferenceArray numbers;
    numbers.reserve(rows.size() * static_cast<std::size_t>(array.size()));
    for (const std::int64_t row : rows)
        for (std::int64_t i = 0; i < array.size(); ++i) numbers.push_back(array.get(row * array.size() + i));
    return numbers;
}

ReferenceArray rows_of(const ReferenceArray& numbers, std::int64_t size, const std::vector<std::int64_t>& rows) {
    ReferenceArray kept;
    for (const std::int64_t row : rows) kept.insert(kept.end(), numbers.begin() + row * size, numbers.begin() + (row + 1) * size);
    return kept;
}

/// Which edges an output needs: summed by `sender`, or any other.
bool by_sender(const Description& description, const std::string& output) {
    const auto* polynomial = std::get_if<Polynomial>(&description);
    if (polynomial == nullptr) return false;
    const Addressing& rows = polynomial->operands[static_cast<std::size_t>(polynomial->find_operand(output))].rows;
    return rows.kind == Addressing::Kind::indexed && rows.via.front() == "sender";
}

Description only(const Description& description, const std::vector<std::string>& outputs) {
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) return only_outputs(*polynomial, outputs);
    return description;
}

}  // namespace

double sample_error(const Workload& workload, Arrays& arrays, const Topology& topology, const Sample& sample) {
    std::vector<std::string> received, sent;
    for (const Argument& argument : workload.arguments()) {
        if (argument.role == Role::input) continue;
        if (argument.space.empty()) fail("output '" + argument.name + "' sums over all edges, which a sample cannot check");
        (by_sender(workload.description(), argument.name) ? sent : received).push_back(argument.name);
    }
    double worst = 0;
    for (const auto& [outputs, edges] : {std::pair(received, sample.received), std::pair(sent, sample.sent)}) {
        if (outputs.empty()) continue;
        const Description description = only(workload.description(), outputs);
        ReferenceInputs inputs;
        inputs.rows = topology.rows;
        inputs.rows["edge"] = static_cast<std::int64_t>(edges.size());
        for (const Index& index : indices_of(description)) {
            const std::vector<std::int64_t>& all = topology.indices.at(index.name);
            for (const std::int64_t edge : edges) inputs.indices[index.name].push_back(all[static_cast<std::size_t>(edge)]);
        }
        for (const Argument& argument : arguments_of(description)) {
            if (argument.role == Role::output) continue;
            const Array& array = *arrays.find(argument.name, Role::input);
            inputs.arrays[argument.name] = argument.space == "edge" ? rows_of(array, edges) : array.numbers();
        }
        const auto expected = std::visit([&](const auto& value) { return evaluate(value, inputs); }, description);
        for (const Argument& argument : arguments_of(description)) {
            if (argument.role == Role::input) continue;
            const Array& array = *arrays.find(argument.name, Role::output);
            const ReferenceArray& numbers = expected.at(argument.name);
            const double error = argument.space == "edge"
                                     ? relative_error(rows_of(array, edges), numbers)
                                     : relative_error(rows_of(array, sample.nodes), rows_of(numbers, argument.size, sample.nodes));
            if (!(error <= worst)) worst = error;
        }
    }
    return worst;
}

}  // namespace clebsch::tool
