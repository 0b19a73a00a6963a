#include "describe/program.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/error.hpp"
#include "describe/arrangement.hpp"

namespace clebsch {
namespace {

std::string quoted(std::string_view name) { return '\'' + std::string(name) + '\''; }

/// As for operands of polynomials.
constexpr std::int64_t largest_size = std::int64_t{1} << 48;

[[noreturn]] void fail_name(const std::string& what, const std::string& name) {
    fail(what + ": expected a name (a letter or '_', then letters, digits, '_' or '.', at most 255 characters), got " +
         quoted(name.substr(0, 60)));
}

std::string space_text(const std::string& space) { return space.empty() ? "shared" : "in space " + quoted(space); }

void validate_segments(const Value& value) {
    std::int64_t size = 0;
    for (const Segment& segment : value.segments) {
        if (segment.multiplicity < 0 || segment.components < 1) {
            fail("value " + quoted(value.name) + ": a segment of " + std::to_string(segment.multiplicity) + " channels of " +
                 std::to_string(segment.components) + " components; expected at least 0 and 1");
        }
        if (segment.irrep && segment.irrep->dim() != segment.components) {
            fail("value " + quoted(value.name) + ": a segment of irrep " + to_text(*segment.irrep) + " has " +
                 std::to_string(segment.irrep->dim()) + " components, not " + std::to_string(segment.components));
        }
        if (segment.multiplicity > (largest_size - size) / segment.components) {
            fail("value " + quoted(value.name) + ": a row of more than 2^48 numbers is not supported (multiplicity " +
                 std::to_string(segment.multiplicity) + ")");
        }
        size += segment.size();
    }
}

/// Checks node by node which values exist already.
class ProgramCheck {
 public:
    explicit ProgramCheck(const Program& program) : program_(program), written_(program.values.size(), false) {}

    void run() {
        names();
        interface(program_.inputs, Role::input);
        interface(program_.outputs, Role::output);
        for (const int input : program_.inputs) written_[at(input)] = true;
        for (const int output : program_.outputs) {
            if (written_[at(output)]) fail("value " + quoted(name(output)) + " is an input and an output: an output is written by a node");
        }
        for (std::size_t i = 0; i < program_.nodes.size(); ++i) {
            where_ = "node " + std::to_string(i);
            if (const auto* node = std::get_if<PolynomialNode>(&program_.nodes[i])) {
                polynomial_node(*node);
            } else {
                function_node(std::get<FunctionNode>(program_.nodes[i]));
            }
        }
        for (const int output : program_.outputs) {
            if (!written_[at(output)]) fail("output " + quoted(name(output)) + " of the program is written by no node");
        }
    }

 private:
    static std::size_t at(int value) { return static_cast<std::size_t>(value); }
    const std::string& name(int value) const { return program_.values[at(value)].name; }

    void names() const {
        std::set<std::string_view> seen;
        for (const Index& index : program_.indices) {
            for (const std::string& word : {std::cref(index.name), std::cref(index.from), std::cref(index.to)})
                if (!is_name(word)) fail_name("index " + quoted(index.name), word);
            if (!seen.insert(index.name).second) fail("two indices of the program are called " + quoted(index.name));
        }
        seen.clear();
        for (const Value& value : program_.values) {
            if (!is_name(value.name)) fail_name("value", value.name);
            if (!value.space.empty() && !is_name(value.space)) fail_name("value " + quoted(value.name) + ", row space", value.space);
            if (!seen.insert(value.name).second) fail("two values of the program are called " + quoted(value.name));
            validate_segments(value);
        }
    }

    void in_range(int value, std::string_view where) const {
        if (value < 0 || at(value) >= program_.values.size()) {
            fail(std::string(where) + " refers to value " + std::to_string(value) + ", there are " +
                 std::to_string(program_.values.size()));
        }
    }

    void interface(const std::vector<int>& values, Role role) const {
        std::set<int> seen;
        for (const int value : values) {
            in_range(value, role == Role::input ? "the list of inputs" : "the list of outputs");
            if (!seen.insert(value).second)
                fail("value " + quoted(name(value)) + " is listed twice as an " + (role == Role::input ? "input" : "output"));
        }
    }

    void read(int value) const {
        if (!written_[at(value)]) fail(where_ + " reads value " + quoted(name(value)) + " before it is written");
    }

    void write(int value) {
        if (written_[at(value)]) fail(where_ + " writes value " + quoted(name(value)) + ", which is an input or already written");
        written_[at(value)] = true;
    }

    void function_node(const FunctionNode& node) {
        in_range(node.input, where_);
        in_range(node.output, where_);
        const Function& function = node.function;
        const std::string text = to_text(function);
        if (!std::isfinite(function.parameter)) fail(where_ + ": " + text + " has a parameter that is not finite");
        if (parse_function(text) != function) fail(where_ + ": " + text + " has no parameter");
        const Value& input = program_.values[at(node.input)];
        const Value& output = program_.values[at(node.output)];
        if (input.space != output.space || !same_arrangement(input.segments, input.layout, output.segments, output.layout)) {
            fail(where_ + ": " + text + " of value " + quoted(input.name) + " and its result " + quoted(output.name) +
                 " differ in row space, segments or layout");
        }
        read(node.input);
        write(node.output);
    }

    void polynomial_node(const PolynomialNode& node) {
        const Polynomial& polynomial = node.polynomial;
        try {
            validate(polynomial);
        } catch (const Error& error) { throw Error(error.kind(), where_ + ": " + error.what()); }
        if (node.arguments.size() != polynomial.operands.size()) {
            fail(where_ + " binds " + std::to_string(node.arguments.size()) + " values to " + std::to_string(polynomial.operands.size()) +
                 " operands");
        }
        for (const Index& index : polynomial.indices) {
            if (std::find(program_.indices.begin(), program_.indices.end(), index) == program_.indices.end()) {
                fail(where_ + " uses index " + quoted(index.name) + " from " + quoted(index.from) + " to " + quoted(index.to) +
                     (index.sorted ? " (sorted)" : "") + ", which the program does not have in this form");
            }
        }
        for (std::size_t i = 0; i < node.arguments.size(); ++i) {
            const Operand& operand = polynomial.operands[i];
            in_range(node.arguments[i], where_);
            const Value& value = program_.values[at(node.arguments[i])];
            if (!same_arrangement(value.segments, value.layout, operand.segments, operand.layout)) {
                fail(where_ + ": operand " + quoted(operand.name) + " and value " + quoted(value.name) +
                     " arrange their numbers differently (segments or layout); the operand has " + std::to_string(operand.size()) +
                     " numbers per row, the value " + std::to_string(value.size()));
            }
            if (const std::string& space = polynomial.space_of(operand); value.space != space) {
                fail(where_ + ": operand " + quoted(operand.name) + " is " + space_text(space) + ", value " + quoted(value.name) + " is " +
                     space_text(value.space));
            }
            if (operand.role == Role::input) read(node.arguments[i]);
        }
        for (std::size_t i = 0; i < node.arguments.size(); ++i) {
            if (polynomial.operands[i].role == Role::output) write(node.arguments[i]);
        }
    }

    const Program& program_;
    std::vector<bool> written_;
    std::string where_;
};

}  // namespace

std::int64_t Value::size() const {
    std::int64_t size = 0;
    for (const Segment& segment : segments) size += segment.size();
    return size;
}

int Program::find_value(std::string_view name) const {
    const auto found = std::find_if(values.begin(), values.end(), [&](const Value& value) { return value.name == name; });
    if (found != values.end()) return static_cast<int>(found - values.begin());
    std::string names;
    for (const Value& value : values) names += (names.empty() ? "" : ", ") + value.name;
    fail("the program has no value " + quoted(name) + ", it has: " + names);
}

void validate(const Program& program) { ProgramCheck(program).run(); }

Program as_program(const Polynomial& polynomial) {
    Program program;
    program.indices = polynomial.indices;
    PolynomialNode node{polynomial, {}};
    for (std::size_t i = 0; i < polynomial.operands.size(); ++i) {
        const Operand& operand = polynomial.operands[i];
        program.values.push_back({operand.name, polynomial.space_of(operand), operand.segments, operand.layout});
        node.arguments.push_back(static_cast<int>(i));
        (operand.role == Role::input ? program.inputs : program.outputs).push_back(static_cast<int>(i));
    }
    program.nodes.emplace_back(std::move(node));
    return program;
}

}  // namespace clebsch
