// Derivatives of programs: functions, sums of gradients in one node, values with several uses, zero-length vectors.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "derivative_support.hpp"
#include "describe/derivative.hpp"
#include "describe/elementwise.hpp"
#include "describe/text.hpp"

using namespace clebsch;
using namespace clebsch::derivative_testing;

namespace {

/// Builds programs value by value.
struct Builder {
    Program program;

    int input(const std::string& name, std::vector<Segment> segments, const std::string& space = "row", Layout layout = Layout::mul_ir) {
        program.inputs.push_back(static_cast<int>(program.values.size()));
        program.values.push_back({name, space, std::move(segments), layout});
        return program.inputs.back();
    }
    int value_like(const std::string& name, int like) {
        program.values.push_back(program.values[static_cast<std::size_t>(like)]);
        program.values.back().name = name;
        return static_cast<int>(program.values.size()) - 1;
    }
    int function(const std::string& name, Function function, int input) {
        const int output = value_like(name, input);
        program.nodes.push_back(FunctionNode{function, input, output});
        return output;
    }
    /// Sum of products, number by number.
    int elementwise(const std::string& name, const std::vector<ElementwiseTerm>& terms) {
        const int output = value_like(name, terms[0].factors[0]);
        program.nodes.push_back(elementwise_node(program.values, terms, output));
        return output;
    }
    Program finish(const std::vector<int>& outputs) {
        program.outputs = outputs;
        validate(program);
        return program;
    }
};

template <class NodeType>
std::ptrdiff_t count(const Program& program) {
    return std::ranges::count_if(program.nodes, [](const Node& node) { return std::holds_alternative<NodeType>(node); });
}
std::ptrdiff_t count(const Program& program, FunctionKind kind) {
    return std::ranges::count_if(program.nodes, [&](const Node& node) {
        const auto* function = std::get_if<FunctionNode>(&node);
        return function != nullptr && function->function.kind == kind;
    });
}

ReferenceInputs rows(std::int64_t count) {
    ReferenceInputs call;
    call.rows = {{"row", count}};
    return call;
}

void check_program(const Program& program, const Names& inputs, const ReferenceInputs& known, std::uint64_t seed) {
    Source source(seed);
    ReferenceInputs call = known;
    fill(call, program, source);
    INFO("seed ", seed, "\n", to_text(program));
    const Deviations deviations = check(program, inputs, call, source);
    CHECK(deviations.finite_differences < 1e-12L);
    CHECK(deviations.duality < 1e-15L);
}

Names input_names(const Program& program) {
    Names names;
    for (const Array& array : inputs_of(program)) names.push_back(array.name);
    return names;
}

}  // namespace

TEST_CASE("every function of the list, to third order, against finite differences") {
    const std::vector<Function> functions = {
        {FunctionKind::exp},        {FunctionKind::log},        {FunctionKind::sin},       {FunctionKind::cos},
        {FunctionKind::tanh},       {FunctionKind::sigmoid},    {FunctionKind::silu},      {FunctionKind::softplus},
        {FunctionKind::erf},        {FunctionKind::absolute},   {FunctionKind::sign},      {FunctionKind::relu},
        {FunctionKind::step},       {FunctionKind::power, 0},   {FunctionKind::power, 1},  {FunctionKind::power, 2},
        {FunctionKind::power, 5},   {FunctionKind::power, 2.5}, {FunctionKind::power, -1}, {FunctionKind::power, -0.5},
        {FunctionKind::power, 0.5}, {FunctionKind::sinc, 0},    {FunctionKind::sinc, 3}};
    for (const Function& function : functions) {
        Builder builder;
        const int x = builder.input("x", {{3, 1, {}}, {2, 3, {}}, {1, 5, {}}});
        Program current = builder.finish({builder.function("y", function, x)});
        const bool positive_only = function.kind == FunctionKind::log || function.kind == FunctionKind::power;
        for (int order = 1; order <= 3; ++order) {
            Source source(static_cast<std::uint64_t>(order));
            ReferenceInputs call = rows(4);
            call.arrays["x"] = source.normals(4 * 14);
            for (long double& number : call.arrays["x"]) {  // away from kinks and poles
                number = std::copysign(0.3L + std::fabs(number), number);
                if (positive_only) number = std::fabs(number);
            }
            fill(call, current, source);
            INFO(to_text(function), ", order ", order);
            const Deviations deviations = check(current, Names{"x"}, call, source);
            CHECK(deviations.finite_differences < 1e-11L);  // poles at 0 are 0.3 away: the sixth-order error of x^-5.5 is not small
            CHECK(deviations.duality < 1e-15L);
            current = order == 2 ? jvp(current, Names{"x"}) : vjp(current, Names{"x"});
            const Names left = input_names(current);
            if (std::ranges::find(left, "x") == left.end()) break;  // the derivative does not depend on x any more
        }
    }
}

TEST_CASE("derivatives of piecewise constant functions are zero and need no input") {
    for (const FunctionKind kind : {FunctionKind::sign, FunctionKind::step}) {
        Builder builder;
        const Program gradient = vjp(builder.finish({builder.function("y", {kind}, builder.input("x", {{2, 1, {}}}))}), Names{"x"});
        CHECK(gradient.inputs.empty());
        CHECK(evaluate(gradient, rows(2)).at("x_gradient") == ReferenceArray(4, 0));
    }
}

TEST_CASE("a vector of length zero has zero gradient, in every order: normalised harmonics") {
    Builder builder;
    const int x = builder.input("x", {{1, 3, {}}});
    auto node = [&](const std::string& name, int components, const std::vector<int>& factors, Coefficients coefficients,
                    std::vector<int> axes) {
        builder.program.values.push_back({name, "row", {{1, components, {}}}, Layout::mul_ir});
        PolynomialNode added;
        added.polynomial.rows = "row";
        Path path{{}, std::move(coefficients), 1, {}};
        for (std::size_t f = 0; f <= factors.size(); ++f) {
            const bool last = f == factors.size();
            const int value = last ? static_cast<int>(builder.program.values.size()) - 1 : factors[f];
            added.polynomial.operands.push_back({"o" + std::to_string(f), builder.program.values[static_cast<std::size_t>(value)].segments,
                                                 Layout::mul_ir, last ? Role::output : Role::input, each_row()});
            added.arguments.push_back(value);
            path.factors.push_back({static_cast<int>(f), 0, "", axes[f]});
        }
        added.polynomial.paths = {path};
        builder.program.nodes.emplace_back(added);
        return static_cast<int>(builder.program.values.size()) - 1;
    };
    const int square = node("square", 1, {x, x}, Coefficients::identity(3), {0, 1, -1});
    const int inverse = builder.function("inverse", {FunctionKind::power, -0.5}, square);
    const int unit = node("unit", 3, {x, inverse}, Coefficients::identity(3), {0, -1, 1});
    const int harmonics = node("harmonics", 5, {unit, unit}, Coefficients::harmonic(2), {0, 1, 2});
    const Program program = builder.finish({harmonics});

    Program current = program;
    for (int order = 1; order <= 3; ++order) {
        check_program(current, Names{"x"}, rows(3), 31);
        current = order == 3 ? jvp(current, Names{"x"}) : vjp(current, Names{"x"});
        Source source(static_cast<std::uint64_t>(order));
        ReferenceInputs call = rows(2);
        call.arrays["x"] = source.normals(6);
        for (int i = 0; i < 3; ++i) call.arrays["x"][static_cast<std::size_t>(i)] = 0;
        fill(call, current, source);
        for (const auto& result : evaluate(current, call)) {
            const std::string& name = result.first;
            const ReferenceArray& array = result.second;
            const std::size_t size = array.size() / 2;
            long double other = 0;
            for (std::size_t i = 0; i < array.size(); ++i) {
                INFO("order ", order, ", ", name, ", number ", i);
                REQUIRE(std::isfinite(array[i]));
                if (i < size) CHECK(array[i] == 0);
                if (i >= size) other += std::fabs(array[i]);
            }
            CHECK(other > 0);
        }
    }
}

TEST_CASE("gradients of a value used several times over its own rows are summed by one node") {
    Builder builder;
    const int x = builder.input("x", {{4, 1, {}}});
    const int a = builder.function("a", {FunctionKind::sin}, x);
    const int b = builder.function("b", {FunctionKind::silu}, x);
    const int y = builder.elementwise("y", {{1, {a, b}}, {2, {x, x, a}}});
    const Program program = builder.finish({y});
    const Program gradient = vjp(program, Names{"x"});
    // sin, silu, cos, sigmoid; gradients of a, b (one polynomial) and of x (product, sin' and silu' together).
    CHECK(count<FunctionNode>(gradient) == 4);
    CHECK(count<PolynomialNode>(gradient) == 2);
    check_program(program, Names{"x"}, rows(3), 37);
    check_program(gradient, Names{"x", "y_cotangent"}, rows(3), 38);
}

TEST_CASE("gradients from edges and nodes: what the edges scatter is added by the node that runs over nodes") {
    Builder builder;
    builder.program.indices = {{"sender", "edge", "node", false}, {"receiver", "edge", "node", true}};
    const int x = builder.input("x", {{4, 1, {}}}, "node");
    const int w = builder.input("w", {{4, 1, {}}}, "");
    builder.program.values.push_back({"pairs", "node", {{4, 1, {}}}, Layout::mul_ir});
    PolynomialNode edges;
    edges.polynomial.rows = "edge";
    edges.polynomial.indices = builder.program.indices;
    edges.polynomial.operands = {{"i", {{4, 1, {}}}, Layout::mul_ir, Role::input, row_of("sender")},
                                 {"j", {{4, 1, {}}}, Layout::mul_ir, Role::input, row_of("receiver")},
                                 {"w", {{4, 1, {}}}, Layout::mul_ir, Role::input, shared_row()},
                                 {"out", {{4, 1, {}}}, Layout::mul_ir, Role::output, row_of("receiver")}};
    edges.polynomial.paths = {{{{0, 0, "u", -1}, {1, 0, "u", -1}, {2, 0, "u", -1}, {3, 0, "u", -1}}, {}, 1.0, {{'u', 4}}}};
    edges.arguments = {x, x, w, 2};
    builder.program.nodes.emplace_back(edges);
    const int w2 = builder.function("w2", {FunctionKind::sin}, w);
    builder.program.values.push_back({"y", "node", {{4, 1, {}}}, Layout::mul_ir});
    PolynomialNode nodes;
    nodes.polynomial.rows = "node";
    nodes.polynomial.operands = {{"x", {{4, 1, {}}}, Layout::mul_ir, Role::input, each_row()},
                                 {"p", {{4, 1, {}}}, Layout::mul_ir, Role::input, each_row()},
                                 {"w2", {{4, 1, {}}}, Layout::mul_ir, Role::input, shared_row()},
                                 {"y", {{4, 1, {}}}, Layout::mul_ir, Role::output, each_row()}};
    nodes.polynomial.paths = {{{{0, 0, "u", -1}, {1, 0, "u", -1}, {2, 0, "u", -1}, {3, 0, "u", -1}}, {}, 1.0, {{'u', 4}}},
                              {{{0, 0, "u", -1}, {3, 0, "u", -1}}, {}, 0.5, {{'u', 4}}}};
    nodes.arguments = {x, 2, w2, 4};
    builder.program.nodes.emplace_back(nodes);
    const Program program = builder.finish({4});
    Source source(41);
    ReferenceInputs graph = random_graph(source);
    graph.indices.erase("reverse");
    graph.indices.erase("graph");
    check_program(program, Names{"x", "w"}, graph, 42);
    const Program gradient = vjp(program, Names{"x", "w"});
    for (std::uint64_t seed = 43; seed < 46; ++seed) check_program(gradient, Names{"x", "w", "y_cotangent"}, graph, seed);

    // w2 and pairs once more, gradients over nodes (needed before those over edges, so its part of x cannot wait), gradients over edges (x
    // as sender and as receiver), and the sum of the three parts.
    const Program of_x = vjp(program, Names{"x"});
    CHECK(count<FunctionNode>(of_x) == 1);
    CHECK(count<PolynomialNode>(of_x) == 4);
    CHECK(gradient.values[static_cast<std::size_t>(gradient.outputs[1])].space.empty());
}

TEST_CASE("equal parts of forward and derivative are computed once, dead ones not at all") {
    Builder builder;
    const int x = builder.input("x", {{4, 1, {}}});
    const int s = builder.function("s", {FunctionKind::sigmoid}, x);
    const int y = builder.function("y", {FunctionKind::silu}, x);
    const int z = builder.elementwise("z", {{1, {s, y}}});
    const Program gradient = vjp(builder.finish({z}), Names{"x"});
    CHECK(count(gradient, FunctionKind::sigmoid) == 1);
    CHECK(count(gradient, FunctionKind::silu) == 1);

    Builder sum;
    const int a = sum.input("a", {{4, 1, {}}}), b = sum.input("b", {{4, 1, {}}});
    const int f = sum.function("f", {FunctionKind::silu}, b);
    const Program of_a = vjp(sum.finish({sum.elementwise("c", {{3, {a}}, {1, {f}}})}), Names{"a"});
    CHECK(of_a.nodes.size() == 1);
    CHECK(input_names(of_a) == Names{"c_cotangent"});
}

TEST_CASE("every requested gradient is an output, zero or copied where need be") {
    Builder builder;
    const int a = builder.input("a", {{2, 3, {}}}), b = builder.input("b", {{2, 1, {}}});
    const Program program = builder.finish({builder.elementwise("y", {{1, {a}}})});
    (void)b;
    const Program gradient = vjp(program, Names{"b", "a"});
    REQUIRE(gradient.outputs.size() == 2);
    CHECK_NOTHROW(validate(gradient));
    ReferenceInputs call = rows(2);
    call.arrays["y_cotangent"] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const auto result = evaluate(gradient, call);
    CHECK(result.at("b_gradient") == ReferenceArray(4, 0));
    CHECK(result.at("a_gradient") == call.arrays["y_cotangent"]);
    const Program tangent = jvp(program, Names{"b"});
    CHECK(tangent.inputs.empty());
    CHECK(evaluate(tangent, rows(1)).at("y_tangent") == ReferenceArray(6, 0));
}

TEST_CASE("a value bound to several segments of an operand: the last matrix of a network is a convolution's weights") {
    Builder builder;
    const int x = builder.input("x", {{2, 1, {}}, {3, 2, {}}});
    const int w = builder.function("w", {FunctionKind::silu}, builder.input("v", {{5, 1, {}}}));
    builder.program.values.push_back({"y", "row", {{2, 1, {}}, {3, 2, {}}}, Layout::ir_mul});
    PolynomialNode node;
    node.polynomial.operands = {{"x", {{2, 1, {}}, {3, 2, {}}}, Layout::mul_ir, Role::input, each_row()},
                                {"w", {{2, 1, {}}, {3, 1, {}}}, Layout::mul_ir, Role::input, each_row()},
                                {"y", {{2, 1, {}}, {3, 2, {}}}, Layout::ir_mul, Role::output, each_row()}};
    node.polynomial.paths = {{{{0, 0, "u", -1}, {1, 0, "u", -1}, {2, 0, "u", -1}}, {}, 1.5, {{'u', 2}}},
                             {{{0, 1, "u", 0}, {1, 1, "u", -1}, {2, 1, "u", 1}}, Coefficients::identity(2), -0.5, {{'u', 3}}}};
    node.arguments = {x, w, 3};
    builder.program.nodes.emplace_back(node);
    const Program program = builder.finish({3});
    check_program(program, Names{"x", "v"}, rows(4), 51);
    check_program(vjp(program, Names{"x", "v"}), Names{"x", "v", "y_cotangent"}, rows(4), 52);
}

TEST_CASE("a function's input and output may cut the same memory into different segments") {
    Builder builder;
    const int x = builder.input("x", {{2, 3, {}}, {1, 3, {}}, {4, 1, {}}, {3, 1, {}}});
    builder.program.values.push_back({"y", "row", {{3, 3, {}}, {7, 1, {}}}, Layout::mul_ir});
    builder.program.nodes.push_back(FunctionNode{{FunctionKind::silu}, x, 1});
    const Program program = builder.finish({1});
    check_program(program, Names{"x"}, rows(3), 53);
    check_program(vjp(program, Names{"x"}), Names{"x", "y_cotangent"}, rows(3), 54);
}

TEST_CASE("a program of one polynomial has the polynomial's derivative") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Source source(seed);
        const Polynomial polynomial = random_polynomial(source);
        const Names inputs = random_inputs(polynomial, source);
        const Polynomial expected = vjp(polynomial, inputs);
        const Program gradient = vjp(as_program(polynomial), inputs);
        ReferenceInputs call = random_graph(source);
        fill(call, expected, source);
        fill(call, gradient, source);
        INFO("seed ", seed, "\n", to_text(polynomial));
        const auto a = evaluate(expected, call), b = evaluate(gradient, call);
        for (const std::string& name : inputs) CHECK(a.at(name + "_gradient") == b.at(name + "_gradient"));
    }
}

TEST_CASE("names of a program's derivatives stay distinct in any nesting, and errors name the value") {
    Builder builder;
    const int x = builder.input("x", {{2, 1, {}}});
    const int c = builder.input("y_cotangent", {{2, 1, {}}});
    Program current = builder.finish({builder.elementwise("y", {{1, {builder.function("x_gradient", {FunctionKind::sin}, x), c}}})});
    const Program first = vjp(current, Names{"x"});
    CHECK(input_names(first) == Names{"x", "y_cotangent", "y_cotangent_2"});
    CHECK(first.values[static_cast<std::size_t>(first.outputs[0])].name == "x_gradient");
    for (int order = 0; order < 4; ++order) {
        check_program(current, input_names(current), rows(1), 61);
        current = order % 2 == 0 ? vjp(current, input_names(current)) : jvp(current, input_names(current));
        CHECK_NOTHROW(validate(current));
    }
    CHECK_THROWS_WITH_AS(vjp(first, Names{"nothing"}), doctest::Contains("'nothing'"), Error);
    CHECK_THROWS_WITH_AS(vjp(first, Names{"x_gradient"}), doctest::Contains("'x_gradient' is not an input"), Error);
    CHECK_THROWS_WITH_AS(jvp(first, Names{"x", "x"}), doctest::Contains("'x' is requested twice"), Error);
}

TEST_CASE("value and gradient in one program are those of the program and of its vjp") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        Source source(seed);
        const Program program = random_program(source);
        const Names inputs = random_inputs(program, source);
        const Program both = value_and_vjp(program, inputs), gradient = vjp(program, inputs);
        ReferenceInputs call = random_graph(source);
        fill(call, program, source);
        fill(call, both, source);
        fill(call, gradient, source);
        const auto got = evaluate(both, call);
        CHECK(got.size() == program.outputs.size() + gradient.outputs.size());
        for (const auto& [name, array] : evaluate(program, call)) CHECK(got.at(name) == array);
        for (const auto& [name, array] : evaluate(gradient, call)) CHECK(got.at(name) == array);
    }
}
