#pragma once
// A program: named values connected by polynomials and unary functions. Whole layers and models, and their derivatives, are programs.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch {

/// Unary functions, applied to every number. Each derivative is again a program over this list (docs/programs.md).
enum class FunctionKind : std::uint8_t {
    exp,
    log,
    sin,
    cos,
    tanh,
    sigmoid,
    silu,
    softplus,
    erf,
    absolute,
    sign,
    relu,
    step,   ///< 1 for x > 0, else 0; derivative 0
    power,  ///< x^parameter; 0 at x = 0 for a negative parameter (so that a zero-length edge has zero gradient)
    sinc,   ///< n-th derivative (n = parameter, an integer >= 0) of sin(x)/x, with its limit at 0
};
struct Function {
    FunctionKind kind = FunctionKind::exp;
    double parameter = 0;  ///< only power and sinc

    friend bool operator==(const Function&, const Function&) = default;
};
std::string to_text(const Function& function);  // "silu", "power(-0.5)"
Function parse_function(std::string_view text);
long double evaluate(const Function& function, long double x);

/// A named array: `space` is its row space ("" : one row, shared), segments as in an operand.
struct Value {
    std::string name;
    std::string space;
    std::vector<Segment> segments;
    Layout layout = Layout::mul_ir;

    std::int64_t size() const;
    friend bool operator==(const Value&, const Value&) = default;
};

/// Applies a polynomial: `arguments[i]` is the value bound to operand i (outputs included; each output value is written by exactly one
/// node). A value fits an operand of the same row space and the same memory (`same_arrangement`): 1312 weights fit 23 segments that add up
/// to them. The polynomial's row spaces and indices are the program's, by name.
struct PolynomialNode {
    Polynomial polynomial;
    std::vector<int> arguments;
    friend bool operator==(const PolynomialNode&, const PolynomialNode&) = default;
};
/// output = function(input), same space, segments and layout.
struct FunctionNode {
    Function function;
    int input = 0, output = 0;
    friend bool operator==(const FunctionNode&, const FunctionNode&) = default;
};
using Node = std::variant<PolynomialNode, FunctionNode>;

struct Program {
    std::vector<Index> indices;
    std::vector<Value> values;
    std::vector<int> inputs, outputs;  ///< positions in `values`; the order of buffers in a call is inputs, then outputs
    std::vector<Node> nodes;           ///< in an order in which every value is written before it is read

    int find_value(std::string_view name) const;  ///< throws, naming the values there are
    friend bool operator==(const Program&, const Program&) = default;
};

void validate(const Program& program);

/// A polynomial as a program of one node; values are named after operands.
Program as_program(const Polynomial& polynomial);

/// Removes nodes and values no output needs, merges equal nodes, keeps the order of inputs and outputs (inputs are kept even if unused).
Program simplified(Program program);

}  // namespace clebsch
