// Descriptions: from text or builders, their derivatives, and what a caller must know to call them.
#include "api/operation.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "api/guard.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/registry.hpp"
#include "describe/ordered.hpp"
#include "describe/text.hpp"
#include "run/call.hpp"
#include "run/program_plan.hpp"

namespace {

using namespace clebsch;
using api::guarded;
using api::require;

int position(const std::vector<std::string>& spaces, const std::string& space) {
    if (space.empty()) return -1;
    return static_cast<int>(std::find(spaces.begin(), spaces.end(), space) - spaces.begin());
}

clebsch_operation* release(Description description) { return std::make_unique<clebsch_operation>(std::move(description)).release(); }

std::vector<std::string> names_of(const char* const* inputs, size_t count) {
    if (count != 0) require(inputs, "inputs");
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
        if (inputs[i] == nullptr) fail("inputs[" + std::to_string(i) + "]: expected a name, got NULL");
        names.emplace_back(inputs[i]);
    }
    return names;
}

bool is_program_text(std::string_view text) {
    const size_t start = text.find("clebsch ");
    return start != std::string_view::npos && text.substr(start).starts_with("clebsch program");
}

}  // namespace

clebsch_operation::clebsch_operation(Description description) : value(std::move(description)) {
    if (const auto* polynomial = std::get_if<Polynomial>(&value)) {
        spaces = row_spaces(*polynomial);
        for (const Operand& operand : polynomial->operands)
            operands.push_back({operand.name, to_text(operand.segments), operand.role == Role::output, operand.layout, operand.size(),
                                position(spaces, polynomial->space_of(operand))});
        for (const Index& index : polynomial->indices)
            indices.push_back({index.name, position(spaces, index.from), position(spaces, index.to), index.sorted});
        return;
    }
    const Program& program = std::get<Program>(value);
    spaces = row_spaces(program);
    for (const auto* list : {&program.inputs, &program.outputs})
        for (const int v : *list) {
            const Value& array = program.values[static_cast<size_t>(v)];
            operands.push_back(
                {array.name, to_text(array.segments), list == &program.outputs, array.layout, array.size(), position(spaces, array.space)});
        }
    for (const Index& index : program.indices)
        indices.push_back({index.name, position(spaces, index.from), position(spaces, index.to), index.sorted});
}

clebsch_status clebsch_operation_parse(const char* text, clebsch_operation** operation) {
    return guarded([&] {
        require(text, "text");
        require(operation, "operation");
        const std::string_view view(text);
        *operation = is_program_text(view) ? release(parse_program(view)) : release(parse_polynomial(view));
    });
}

clebsch_status clebsch_operation_build(const char* name, const char* options, clebsch_operation** operation) {
    return guarded([&] {
        require(name, "name");
        require(operation, "operation");
        *operation = release(build_operation(name, parse_option_lines(options == nullptr ? "" : options)));
    });
}

clebsch_status clebsch_operation_vjp(const clebsch_operation* operation, const char* const* inputs, size_t count,
                                     clebsch_operation** derivative) {
    return guarded([&] {
        require(operation, "operation");
        require(derivative, "derivative");
        const std::vector<std::string> names = names_of(inputs, count);
        *derivative = std::visit([&](const auto& value) { return release(vjp(value, names)); }, operation->value);
    });
}

clebsch_status clebsch_operation_jvp(const clebsch_operation* operation, const char* const* inputs, size_t count,
                                     clebsch_operation** derivative) {
    return guarded([&] {
        require(operation, "operation");
        require(derivative, "derivative");
        const std::vector<std::string> names = names_of(inputs, count);
        *derivative = std::visit([&](const auto& value) { return release(jvp(value, names)); }, operation->value);
    });
}

clebsch_status clebsch_operation_in_order_of(const clebsch_operation* operation, const char* index, clebsch_operation** ordered) {
    return guarded([&] {
        require(operation, "operation");
        require(index, "index");
        require(ordered, "ordered");
        const auto* polynomial = std::get_if<Polynomial>(&operation->value);
        if (polynomial == nullptr) throw Error(ErrorKind::unsupported, "the order of an index: expected a polynomial, got a program");
        *ordered = release(in_order_of(*polynomial, index));
    });
}

void clebsch_operation_destroy(clebsch_operation* operation) { delete operation; }

clebsch_status clebsch_operation_text(const clebsch_operation* operation, char** text) {
    return guarded([&] {
        require(operation, "operation");
        require(text, "text");
        *text = api::copy_text(std::visit([](const auto& value) { return to_text(value); }, operation->value));
    });
}

clebsch_status clebsch_operation_hash(const clebsch_operation* operation, char hash[33]) {
    return guarded([&] {
        require(operation, "operation");
        require(hash, "hash");
        const std::string digits = to_text(std::visit([](const auto& value) { return hash_of(value); }, operation->value));
        std::memcpy(hash, digits.c_str(), 33);
    });
}

size_t clebsch_operation_operand_count(const clebsch_operation* operation) { return operation == nullptr ? 0 : operation->operands.size(); }

clebsch_status clebsch_operation_operand(const clebsch_operation* operation, size_t i, clebsch_operand_info* info) {
    return guarded([&] {
        require(operation, "operation");
        require(info, "info");
        api::require_size(info->size, sizeof(clebsch_operand_info), "clebsch_operand_info");
        if (i >= operation->operands.size())
            fail("i: expected an operand below " + std::to_string(operation->operands.size()) + ", got " + std::to_string(i));
        const api::OperandFacts& facts = operation->operands[i];
        info->name = facts.name.c_str();
        info->segments = facts.segments.c_str();
        info->is_output = facts.is_output;
        info->layout = facts.layout == Layout::ir_mul ? CLEBSCH_IR_MUL : CLEBSCH_MUL_IR;
        info->row_size = facts.row_size;
        info->space = facts.space;
    });
}

size_t clebsch_operation_space_count(const clebsch_operation* operation) { return operation == nullptr ? 0 : operation->spaces.size(); }

const char* clebsch_operation_space(const clebsch_operation* operation, size_t i) {
    return operation == nullptr || i >= operation->spaces.size() ? nullptr : operation->spaces[i].c_str();
}

size_t clebsch_operation_index_count(const clebsch_operation* operation) { return operation == nullptr ? 0 : operation->indices.size(); }

clebsch_status clebsch_operation_index(const clebsch_operation* operation, size_t i, const char** name, int* from, int* to, int* sorted) {
    return guarded([&] {
        require(operation, "operation");
        if (i >= operation->indices.size())
            fail("i: expected an index below " + std::to_string(operation->indices.size()) + ", got " + std::to_string(i));
        const api::IndexFacts& facts = operation->indices[i];
        if (name != nullptr) *name = facts.name.c_str();
        if (from != nullptr) *from = facts.from;
        if (to != nullptr) *to = facts.to;
        if (sorted != nullptr) *sorted = facts.sorted;
    });
}
