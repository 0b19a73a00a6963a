// Printing. The grammar is in docs/text.md, the reading in text_parse.cpp.
#include "describe/text.hpp"

#include <map>

#include "base/error.hpp"
#include "describe/text_cursor.hpp"

namespace clebsch {

std::string to_text(const Segment& segment) {
    return std::to_string(segment.multiplicity) + 'x' +
           (segment.irrep ? to_text(*segment.irrep) : '(' + std::to_string(segment.components) + ')');
}

std::string to_text(std::span<const Segment> segments) {
    if (segments.empty()) return "()";
    std::string text;
    for (const Segment& segment : segments) text += (text.empty() ? "" : "+") + to_text(segment);
    return text;
}

namespace {

const char* layout_text(Layout layout) { return layout == Layout::mul_ir ? " mul_ir @ " : " ir_mul @ "; }

std::string index_text(const Index& index) {
    return "index " + name_text(index.name) + ": " + name_text(index.from) + " -> " + name_text(index.to) +
           (index.sorted ? " sorted\n" : "\n");
}

std::string addressing_text(const Addressing& rows) {
    switch (rows.kind) {
        case Addressing::Kind::each:
            return "each";
        case Addressing::Kind::shared:
            return "shared";
        case Addressing::Kind::indexed:
            break;
    }
    std::string text;
    for (const std::string& index : rows.via) text += (text.empty() ? "" : " -> ") + name_text(index);
    return text;
}

std::string operand_text(const Operand& operand) {
    return (operand.role == Role::input ? "input " : "output ") + name_text(operand.name) + ": " + to_text(operand.segments) +
           layout_text(operand.layout) + addressing_text(operand.rows) + '\n';
}

/// Axes are called i, j, ... z, then i18, i19, ...
std::string axis_text(int axis) { return axis < 18 ? std::string(1, static_cast<char>('i' + axis)) : 'i' + std::to_string(axis); }

std::string factor_text(const Polynomial& polynomial, const Factor& factor) {
    if (factor.operand < 0 || static_cast<std::size_t>(factor.operand) >= polynomial.operands.size()) {
        fail("a path refers to operand " + std::to_string(factor.operand) + " of " + std::to_string(polynomial.operands.size()));
    }
    std::string text = name_text(polynomial.operands[static_cast<std::size_t>(factor.operand)].name) + '.' + std::to_string(factor.segment);
    if (factor.channels.empty() && factor.axis < 0) return text;
    text += '[' + factor.channels;
    if (factor.axis >= 0) text += '|' + axis_text(factor.axis);
    return text + ']';
}

std::string path_text(const Polynomial& polynomial, const Path& path) {
    if (path.factors.empty()) fail("a path has no factors, not even an output");
    std::string text = "path";
    for (const auto& [letter, extent] : path.extents) text += std::string(" ") + letter + '=' + std::to_string(extent);
    text += ": " + factor_text(polynomial, path.output()) + " += ";
    std::string product;
    const auto multiply = [&](const std::string& factor) { product += (product.empty() ? "" : " * ") + factor; };
    const bool one = path.coefficients == Coefficients();
    if (path.scale != 1.0 || (one && path.factors.size() == 1)) multiply(number_text(path.scale));
    if (!one) {
        std::string coefficients = path.coefficients.to_text();
        const int rank = static_cast<int>(path.coefficients.rank());
        for (int axis = 0; axis < rank; ++axis) coefficients += (axis == 0 ? "[" : ",") + axis_text(axis);
        multiply(rank > 0 ? coefficients + ']' : coefficients);
    }
    for (std::size_t i = 0; i + 1 < path.factors.size(); ++i) multiply(factor_text(polynomial, path.factors[i]));
    return text + product + '\n';
}

std::string body_text(const Polynomial& polynomial) {
    std::string text = "rows " + name_text(polynomial.rows) + '\n';
    for (const Index& index : polynomial.indices) text += index_text(index);
    for (const Operand& operand : polynomial.operands) text += operand_text(operand);
    for (const Path& path : polynomial.paths) text += path_text(polynomial, path);
    return text;
}

const Value& value_at(const Program& program, int position) {
    if (position < 0 || static_cast<std::size_t>(position) >= program.values.size()) {
        fail("a program refers to value " + std::to_string(position) + " of " + std::to_string(program.values.size()));
    }
    return program.values[static_cast<std::size_t>(position)];
}

void append_name(std::string& list, const std::string& name) { list += (list.empty() ? "" : ", ") + name_text(name); }

std::string names_text(const Program& program, const std::vector<int>& values) {
    std::string text;
    for (const int value : values) append_name(text, value_at(program, value).name);
    return text.empty() ? text : ' ' + text;
}

}  // namespace

std::string to_text(const Polynomial& polynomial) { return "clebsch polynomial 0\nbasis e3nn-0.5\n" + body_text(polynomial); }

std::string to_text(const Program& program) {
    std::string text = "clebsch program 0\nbasis e3nn-0.5\n";
    for (const Index& index : program.indices) text += index_text(index);
    for (const Value& value : program.values) {
        text += "value " + name_text(value.name) + ": " + to_text(value.segments) + layout_text(value.layout) +
                (value.space.empty() ? "shared" : name_text(value.space)) + '\n';
    }
    text += "inputs" + names_text(program, program.inputs) + "\noutputs" + names_text(program, program.outputs) + '\n';

    // Every distinct polynomial is written once, numbered in the order of first use.
    std::map<std::string, std::size_t> numbers;
    std::string definitions, nodes;
    for (const Node& node : program.nodes) {
        if (const auto* apply = std::get_if<PolynomialNode>(&node)) {
            const std::vector<Operand>& operands = apply->polynomial.operands;
            if (apply->arguments.size() != operands.size()) {
                fail("a node binds " + std::to_string(apply->arguments.size()) + " values to " + std::to_string(operands.size()) +
                     " operands");
            }
            const auto [known, is_new] = numbers.try_emplace(body_text(apply->polynomial), numbers.size());
            if (is_new) definitions += "polynomial " + std::to_string(known->second) + '\n' + known->first + "end\n";
            std::string results, arguments;
            for (std::size_t i = 0; i < operands.size(); ++i) {
                append_name(operands[i].role == Role::output ? results : arguments, value_at(program, apply->arguments[i]).name);
            }
            nodes.append(results)
                .append(" = polynomial ")
                .append(std::to_string(known->second))
                .append("(")
                .append(arguments)
                .append(")\n");
        } else {
            const auto& function = std::get<FunctionNode>(node);
            nodes += name_text(value_at(program, function.output).name) + " = " + to_text(function.function) + '(' +
                     name_text(value_at(program, function.input).name) + ")\n";
        }
    }
    return text + definitions + nodes;
}

Hash hash_of(const Polynomial& polynomial) { return hash_text(to_text(polynomial)); }
Hash hash_of(const Program& program) { return hash_text(to_text(program)); }

}  // namespace clebsch
