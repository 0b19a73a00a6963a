// What derivatives of polynomials look like: as many paths as by hand, names, rows, only what was asked for.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "derivative_support.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/tensor_product.hpp"
#include "describe/text.hpp"

using namespace clebsch;
using namespace clebsch::derivative_testing;

namespace {

const Irrep vector_irrep{1, Parity::odd};

Names operand_names(const Polynomial& polynomial, Role role) {
    Names names;
    for (const Operand& operand : polynomial.operands)
        if (operand.role == role) names.push_back(operand.name);
    return names;
}

/// out = scale * coefficients of `factors` times the one segment x of `components`, one channel.
Polynomial power_of(int factors, int components, int out_components, Coefficients coefficients, double scale = 1) {
    Polynomial polynomial;
    polynomial.operands = {{"x", {{1, components, {}}}, Layout::mul_ir, Role::input, each_row()},
                           {"y", {{1, out_components, {}}}, Layout::mul_ir, Role::output, each_row()}};
    Path path{{}, std::move(coefficients), scale, {}};
    const bool has_axes = path.coefficients.rank() > 0;
    for (int f = 0; f < factors; ++f) path.factors.push_back({0, 0, "", has_axes ? f : -1});
    path.factors.push_back({1, 0, "", has_axes ? factors : -1});
    polynomial.paths = {path};
    validate(polynomial);
    return polynomial;
}

template <class Description>
void check_derivatives(const Description& description, const Names& inputs, const ReferenceInputs& graph, std::uint64_t seed) {
    Source source(seed);
    ReferenceInputs call = graph;
    fill(call, description, source);
    const Deviations deviations = check(description, inputs, call, source);
    INFO("seed ", seed, "\n", to_text(description));
    CHECK(deviations.finite_differences < 1e-12L);
    CHECK(deviations.duality < 1e-15L);
}

ReferenceInputs rows(std::int64_t count) {
    ReferenceInputs call;
    call.rows = {{"row", count}};
    return call;
}

}  // namespace

TEST_CASE(
    "the derivative of a gather is a scatter: a convolution's gradients keep every operand's rows, three paths per path, nine in the "
    "second derivative") {
    const Irreps in("4x0e+3x1o+2x2e");
    const Polynomial forward = convolution(in, "0e+1o+2e", in);
    const std::size_t paths = forward.paths.size();
    REQUIRE(paths > 5);
    const Polynomial first = vjp(forward, Names{"x", "y", "weights"});
    CHECK(first.paths.size() == 3 * paths);
    CHECK(operand_names(first, Role::input) == Names{"x", "y", "weights", "out_cotangent"});
    CHECK(operand_names(first, Role::output) == Names{"x_gradient", "y_gradient", "weights_gradient"});
    for (const char* name : {"x", "y", "weights"}) {
        const Operand& operand = forward.operands[static_cast<std::size_t>(forward.find_operand(name))];
        const Operand& gradient = first.operands[static_cast<std::size_t>(first.find_operand(std::string(name) + "_gradient"))];
        CHECK(gradient.rows == operand.rows);
        CHECK(gradient.segments == operand.segments);
    }
    const Operand& cotangent = first.operands[static_cast<std::size_t>(first.find_operand("out_cotangent"))];
    CHECK(cotangent.rows == row_of("receiver"));

    const Polynomial second = vjp(first, Names{"x", "y", "weights", "out_cotangent"});
    CHECK(second.paths.size() == 9 * paths);
    CHECK(operand_names(second, Role::input) ==
          Names{"x", "y", "weights", "out_cotangent", "x_gradient_cotangent", "y_gradient_cotangent", "weights_gradient_cotangent"});
    CHECK(operand_names(second, Role::output) == Names{"x_gradient", "y_gradient", "weights_gradient", "out_cotangent_gradient"});
    for (const Path& path : second.paths) CHECK((path.coefficients.name().starts_with("cg(") || path.coefficients == Coefficients()));

    Source source(1);
    const ReferenceInputs graph = random_graph(source);
    for (const Polynomial& polynomial : {forward, first, second}) {
        Polynomial over_graph = polynomial;
        check_derivatives(over_graph, Names{"x", "y", "weights"}, graph, 2);
    }
}

TEST_CASE("only what is asked for is computed, and only what it depends on is read") {
    const Polynomial forward = convolution("4x0e+3x1o", "0e+1o", "0e+1o");
    const Polynomial gradient = vjp(forward, Names{"weights"});
    CHECK(gradient.paths.size() == forward.paths.size());
    CHECK(operand_names(gradient, Role::input) == Names{"x", "y", "out_cotangent"});

    const Polynomial linear = only_outputs(jvp(gradient, Names{"out_cotangent"}), Names{"weights_gradient_tangent"});
    CHECK(operand_names(linear, Role::input) == Names{"x", "y", "out_cotangent_tangent"});

    Polynomial two = power_of(2, 1, 1, {});  // y = x^2, and z = w of another row
    two.indices = {{"other", "row", "row", false}};
    two.operands.push_back({"w", {{1, 1, {}}}, Layout::mul_ir, Role::input, row_of("other")});
    two.operands.push_back({"z", {{1, 1, {}}}, Layout::mul_ir, Role::output, each_row()});
    two.paths.push_back({{{2, 0, "", -1}, {3, 0, "", -1}}, {}, 1.0, {}});
    const Polynomial of_x = vjp(two, Names{"x"});
    CHECK(operand_names(of_x, Role::input) == Names{"x", "y_cotangent"});
    CHECK(of_x.indices.empty());
    const Polynomial of_w = vjp(two, Names{"w"});
    CHECK(operand_names(of_w, Role::input) == Names{"z_cotangent"});
    CHECK(of_w.indices.size() == 1);
    const Polynomial z = only_outputs(two, Names{"z"});
    CHECK(operand_names(z, Role::input) == Names{"w"});
    CHECK(z.paths.size() == 1);
}

TEST_CASE("powers follow the product rule with one path each: u^3 has gradient 3 u^2, then 6 u, then 6") {
    Polynomial current = power_of(3, 1, 1, {}, 0.5);
    const double factors[] = {1.5, 3.0, 3.0};
    for (int order = 0; order < 3; ++order) {
        check_derivatives(current, Names{"x"}, rows(3), 5);
        current = vjp(current, Names{"x"});
        REQUIRE(current.paths.size() == 1);
        CHECK(current.paths[0].scale == factors[order]);
        CHECK(current.paths[0].factors.size() == 4u);  // 2 - order of x, cotangents, the gradient
    }
    CHECK(vjp(current, Names{"x_gradient_cotangent"}).paths.size() == 1);
}

TEST_CASE("symmetric coefficients stay named: harmonics of degree l have gradient l Y(x, .., x, .)") {
    for (int degree = 1; degree <= 6; ++degree) {
        const Polynomial forward = power_of(degree, 3, 2 * degree + 1, Coefficients::harmonic(degree));
        const Polynomial first = vjp(forward, Names{"x"});
        REQUIRE(first.paths.size() == 1);
        CHECK(first.paths[0].scale == degree);
        CHECK(first.paths[0].coefficients == Coefficients::harmonic(degree));
        const Names second_inputs = degree > 1 ? Names{"x", "y_cotangent"} : Names{"y_cotangent"};
        const Polynomial second = vjp(first, second_inputs);
        CHECK(second.paths.size() == second_inputs.size());
        for (const Path& path : second.paths) CHECK(path.coefficients == Coefficients::harmonic(degree));
        if (degree > 1) CHECK(second.paths[0].scale == degree * (degree - 1));
        check_derivatives(forward, Names{"x"}, rows(2), 7);
        check_derivatives(first, Names{"y_cotangent"}, rows(2), 8);
        check_derivatives(second, Names{"x_gradient_cotangent"}, rows(2), 9);
    }
}

TEST_CASE("a literal without symmetry gives one merged literal: T_ij x_i x_j has gradient (T + T') x") {
    const Polynomial forward =
        power_of(2, 2, 1, Coefficients::literal({2, 2, 1}, {{{0, 0, 0}, 3.0}, {{0, 1, 0}, 2.0}, {{1, 0, 0}, 5.0}}), 2.0);
    const Polynomial first = vjp(forward, Names{"x"});
    REQUIRE(first.paths.size() == 1);
    CHECK(reduced_entries(first.paths[0]).size() == 3);
    const std::vector<CoefficientEntry>& entries = first.paths[0].coefficients.entries();
    REQUIRE(entries.size() == 3);
    double sum = 0;
    for (const CoefficientEntry& entry : entries) sum += entry.value * first.paths[0].scale;
    CHECK(sum == 2.0 * (6.0 + 7.0 + 7.0));
    check_derivatives(forward, Names{"x"}, rows(3), 11);
}

TEST_CASE("parts that cancel disappear with what they read: the cross product of a vector with itself") {
    const Polynomial cross = power_of(2, 3, 3, Coefficients::cg(vector_irrep, vector_irrep, {1, Parity::even}));
    CHECK(simplified(cross).paths.empty());
    const Polynomial gradient = vjp(cross, Names{"x"});
    CHECK(gradient.paths.empty());
    CHECK(operand_names(gradient, Role::input).empty());
    CHECK(operand_names(gradient, Role::output) == Names{"x_gradient"});

    Polynomial channels = cross;  // sum over u, v of x_u times x_v: zero, too, and so are its two gradients together
    channels.operands[0].segments[0].multiplicity = 4;
    channels.paths[0].factors[0].channels = "u";
    channels.paths[0].factors[1].channels = "v";
    channels.paths[0].extents = {{'u', 4}, {'v', 4}};
    validate(channels);
    CHECK(vjp(channels, Names{"x"}).paths.empty());

    Polynomial difference = power_of(1, 1, 1, {});
    difference.paths.push_back(difference.paths[0]);
    difference.paths[1].scale = -1;
    CHECK(simplified(difference, false).operands.size() == 1);
}

TEST_CASE("paths that differ in the names of letters are one: the gradient of sum_uv x_u x_v has a single path") {
    Polynomial square = power_of(2, 3, 5, Coefficients::cg(vector_irrep, vector_irrep, {2, Parity::even}));
    square.operands[0].segments[0].multiplicity = 4;
    square.paths[0].factors[0].channels = "u";
    square.paths[0].factors[1].channels = "v";
    square.paths[0].extents = {{'u', 4}, {'v', 4}};
    const Polynomial gradient = vjp(square, Names{"x"});
    REQUIRE(gradient.paths.size() == 1);
    CHECK(gradient.paths[0].scale == 2);
    CHECK(gradient.paths[0].coefficients == square.paths[0].coefficients);
    check_derivatives(square, Names{"x"}, rows(2), 13);

    // With weights w_uv the two gradients differ: w_uv and w_vu.
    Polynomial weighted = square;
    weighted.operands.push_back({"w", {{16, 1, {}}}, Layout::mul_ir, Role::input, shared_row()});
    weighted.paths[0].factors.insert(weighted.paths[0].factors.begin(), {2, 0, "uv", -1});
    CHECK(vjp(weighted, Names{"x"}).paths.size() == 2);
    check_derivatives(weighted, Names{"x", "w"}, rows(3), 14);
}

TEST_CASE("pairs u < v keep their restriction wherever the letters end up") {
    for (const char* mode : {"uvu<v", "u<vw"}) {
        const Polynomial product = tensor_product("4x1o", "4x1o", Irreps(std::string(mode) == "uvu<v" ? "6x1e" : "3x1e"),
                                                  parse_instructions("0,0,0," + std::string(mode) + ",weighted"));
        const Polynomial first = vjp(product, Names{"x", "y", "weights"});
        CHECK(first.paths.size() == 3);
        for (const Path& path : first.paths) CHECK(restrictions(path).size() == 1);
        check_derivatives(product, Names{"x", "y", "weights"}, rows(2), 17);
        check_derivatives(first, Names{"x", "y", "weights", "out_cotangent"}, rows(2), 18);
    }
}

TEST_CASE("every channel mode, to second order") {
    for (const char* mode : {"uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw"}) {
        const std::string name = mode;
        const int in2 = name == "uvw" || name == "uvu" || name == "uvv" || name == "uvuv" ? 2 : 3;
        const int out = name == "uvv" ? 2 : name == "uvuv" ? 6 : 3;
        const Polynomial product = tensor_product("3x1o", Irreps(std::to_string(in2) + "x2e"), Irreps(std::to_string(out) + "x1o"),
                                                  parse_instructions("0,0,0," + name + ",weighted"));
        check_derivatives(product, Names{"x", "y", "weights"}, rows(2), 19);
        check_derivatives(vjp(product, Names{"x", "y", "weights"}), Names{"x", "y", "weights", "out_cotangent"}, rows(2), 20);
    }
}

TEST_CASE("a masked row has zero gradient, also through composed indices") {
    Polynomial pooled;
    pooled.rows = "edge";
    pooled.indices = {{"receiver", "edge", "node", true}, {"graph", "node", "graph", true}};
    pooled.operands = {{"x", {{2, 1, {}}}, Layout::mul_ir, Role::input, each_row()},
                       {"scale", {{2, 1, {}}}, Layout::mul_ir, Role::input, row_of({"receiver", "graph"})},
                       {"y", {{2, 1, {}}}, Layout::mul_ir, Role::output, row_of("receiver")}};
    pooled.paths = {{{{0, 0, "u", -1}, {1, 0, "u", -1}, {2, 0, "u", -1}}, {}, 1.0, {{'u', 2}}}};
    ReferenceInputs call;
    call.rows = {{"edge", 5}, {"node", 3}, {"graph", 2}};
    call.indices = {{"receiver", {0, 0, -1, 1, 2}}, {"graph", {0, -1, 1}}};
    const Polynomial gradient = vjp(pooled, Names{"x", "scale"});
    CHECK(gradient.operands[static_cast<std::size_t>(gradient.find_operand("scale_gradient"))].rows == row_of({"receiver", "graph"}));
    Source source(3);
    ReferenceInputs gradient_call = call;
    fill(gradient_call, gradient, source);
    const auto result = evaluate(gradient, gradient_call);
    for (int u = 0; u < 2; ++u) {
        for (const int edge : {2, 3})
            CHECK(result.at("x_gradient")[static_cast<std::size_t>(2 * edge + u)] == 0);  // no receiver; receiver without graph
        for (const int edge : {0, 1, 4}) CHECK(result.at("x_gradient")[static_cast<std::size_t>(2 * edge + u)] != 0);
    }
    check_derivatives(pooled, Names{"x", "scale"}, call, 23);
}

TEST_CASE("names stay distinct when an input already has the name") {
    Polynomial polynomial = power_of(2, 1, 1, {});
    polynomial.operands.push_back({"y_cotangent", {{1, 1, {}}}, Layout::mul_ir, Role::input, each_row()});
    polynomial.paths[0].factors.insert(polynomial.paths[0].factors.begin(), {2, 0, "", -1});
    const Polynomial gradient = vjp(polynomial, Names{"x"});
    CHECK(operand_names(gradient, Role::input) == Names{"x", "y_cotangent", "y_cotangent_2"});
    Polynomial current = polynomial;
    for (int order = 0; order < 4; ++order) {
        Names inputs;
        for (const Array& array : inputs_of(current)) inputs.push_back(array.name);
        current = order % 2 == 0 ? vjp(current, inputs) : jvp(current, inputs);
        CHECK_NOTHROW(validate(current));
    }
}

TEST_CASE("requests that make no sense name the operand") {
    const Polynomial polynomial = power_of(2, 1, 1, {});
    CHECK_THROWS_WITH_AS(vjp(polynomial, Names{"z"}), doctest::Contains("'z'"), Error);
    CHECK_THROWS_WITH_AS(vjp(polynomial, Names{"y"}), doctest::Contains("'y' is an output"), Error);
    CHECK_THROWS_WITH_AS(jvp(polynomial, Names{"x", "x"}), doctest::Contains("'x' is requested twice"), Error);
    CHECK_THROWS_WITH_AS(only_outputs(polynomial, Names{"x"}), doctest::Contains("'x' is an input"), Error);
    CHECK(vjp(polynomial, Names{}).operands.empty());
}
