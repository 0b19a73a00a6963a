#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.hpp"
#include "describe/program.hpp"
#include "describe/text.hpp"
#include "describe/text_random.hpp"
#include "support/two_layers.hpp"

using namespace clebsch;

namespace {

const std::string& text = testing::two_layers;

std::string message_of(const std::string& program) {
    try {
        parse_program(program);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::parse);
        return error.what();
    }
    return "accepted";
}

std::string error_with(const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    return message_of(changed);
}

bool contains(const std::string& message, const std::string& part) {
    const bool found = message.find(part) != std::string::npos;
    if (!found) MESSAGE("message was: " << message);
    return found;
}

}  // namespace

TEST_CASE("canonical text of a program reads back to itself") {
    const Program program = parse_program(text);
    CHECK(to_text(program) == text);
    CHECK(parse_program(to_text(program)) == program);
    CHECK(program.find_value("z") == 8);
    CHECK_THROWS_WITH_AS(program.find_value("y"), doctest::Contains("it has: x, unused, g"), Error);
}

TEST_CASE("a polynomial is a program of one node, and random ones survive the text") {
    for (std::uint64_t seed = 1000; seed < 1100; ++seed) {
        testing::RandomDescription random(seed);
        const Program program = as_program(random.polynomial());
        CAPTURE(seed);
        validate(program);
        const std::string printed = to_text(program);
        CAPTURE(printed);
        CHECK(parse_program(printed) == program);
        CHECK(to_text(parse_program(printed)) == printed);
    }
}

TEST_CASE("an invalid program is refused with the node, value and reason") {
    CHECK(contains(error_with("g = silu(x)", "g = silu(g2)"), "node 0 reads value 'g2' before it is written"));
    CHECK(contains(error_with("g2 = silu(x)", "g = silu(x)"), "node 1 writes value 'g', which is an input or already written"));
    CHECK(contains(error_with("g = silu(x)", "x = silu(w)"), "silu of value 'w' and its result 'x' differ in row space"));
    CHECK(contains(error_with("h = polynomial 0(g, w)", "h = polynomial 0(w, g)"), "operand 'a' is in space 'edge', value 'w' is shared"));
    CHECK(contains(error_with("value w: 8x", "value w: 9x"), "operand 'b' and value 'w' arrange their numbers differently"));
    CHECK(
        contains(error_with("h = polynomial 0(g, w)", "h = polynomial 0(g)"), "polynomial 0 has 1 outputs and 2 inputs, here are 1 and 1"));
    CHECK(contains(error_with("h = polynomial 0(g, w)", "h = polynomial 2(g, w)"), "column 16: there are 2 polynomials above"));
    CHECK(contains(error_with("outputs z, s", "outputs z, s, z"), "value 'z' is listed twice as an output"));
    CHECK(contains(error_with("outputs z, s", "outputs z, s, x"), "value 'x' is an input and an output"));
    CHECK(contains(error_with("s = sinc(2)(h)\n", ""), "output 's' of the program is written by no node"));
    CHECK(contains(error_with("sinc(2)", "sinc(2.5)"), "expected an integer from 0 to 64"));
    CHECK(contains(error_with("s = sinc", "s = gelu"), "expected a function, one of exp, log"));
    CHECK(contains(error_with("value s:", "value z:"), "line 13, column 7: there already is a value called 'z'"));
    CHECK(contains(error_with("edge -> node sorted\nvalue", "edge -> node\nvalue"), "node 5 uses index 'receiver'"));
    CHECK(contains(error_with("polynomial 1\n", "polynomial 7\n"), "this one is number 1"));
    CHECK(contains(error_with("end\n", "nd\n"),
                   "line 22, column 1: expected a line of the polynomial (index, input, output, path) or 'end', found 'nd'"));
    Program program = parse_program(text);
    std::get<FunctionNode>(program.nodes[0]).function.parameter = 2;
    CHECK_THROWS_WITH_AS(validate(program), doctest::Contains("node 0: silu has no parameter"), Error);
    program = parse_program(text);
    program.inputs[0] = 99;
    CHECK_THROWS_WITH_AS(validate(program), doctest::Contains("refers to value 99, there are 10"), Error);
}

TEST_CASE("a short text cannot make a large program: copies of polynomials are bounded") {
    std::string bomb =
        "clebsch program 0\nbasis e3nn-0.5\nvalue x: 1x0e mul_ir @ edge\nvalue z: 1x0e mul_ir @ edge\ninputs x\noutputs\npolynomial "
        "0\nrows edge\n"
        "input a: 1x0e mul_ir @ each\noutput b: 1x0e mul_ir @ each\n";
    for (int i = 0; i < 20000; ++i) bomb += "path: b.0 += a.0\n";
    bomb += "end\n";
    for (int i = 0; i < 20000; ++i) bomb += "z = polynomial 0(x)\n";
    CHECK(contains(message_of(bomb), "have more than 4194304 operands and paths"));
}

TEST_CASE("functions: text, and values where it matters") {
    for (const char* name : {"exp", "log", "sin", "cos", "tanh", "sigmoid", "silu", "softplus", "erf", "absolute", "sign", "relu", "step",
                             "power(-1.5)", "power(0.1)", "sinc(0)", "sinc(12)"}) {
        CHECK(to_text(parse_function(name)) == name);
    }
    CHECK_THROWS_WITH_AS(parse_function("power"), doctest::Contains("expected '('"), Error);
    CHECK_THROWS_WITH_AS(parse_function("silu(2)"), doctest::Contains("expected the end of the function"), Error);
    const auto value = [](const char* name, long double x) { return evaluate(parse_function(name), x); };
    CHECK(value("power(-1)", 0) == 0);
    CHECK(value("power(0)", 0) == 1);
    CHECK(value("power(0.5)", 2) == std::sqrt(2.0L));
    CHECK(value("step", 0) == 0);
    CHECK(value("sign", -2) == -1);
    CHECK(value("sinc(0)", 0) == 1);
    CHECK(value("sinc(1)", 0) == 0);
    CHECK(value("sinc(2)", 0) == doctest::Approx(-1.0 / 3));
    CHECK(value("sinc(4)", 0) == doctest::Approx(1.0 / 5));
    CHECK(value("silu", 1.5L) == doctest::Approx(1.5 / (1 + std::exp(-1.5))));
    CHECK(value("softplus", 800) == 800);
    CHECK(value("softplus", -800) == doctest::Approx(0));
    constexpr long double nan = std::numeric_limits<long double>::quiet_NaN(), infinity = std::numeric_limits<long double>::infinity();
    CHECK(value("step", nan) == 0);
    for (const char* name : {"exp", "log", "sin", "cos", "tanh", "sigmoid", "silu", "softplus", "erf", "absolute", "sign", "relu",
                             "power(-1.5)", "power(2)", "sinc(0)", "sinc(12)"}) {
        CAPTURE(std::string(name));
        CHECK(std::isnan(value(name, nan)));
    }
    CHECK(value("relu", -infinity) == 0);
    CHECK(value("relu", infinity) == infinity);
    for (const long double negative : {-2.0L, -infinity}) CHECK(std::isnan(value("power(0.5)", negative)));
    CHECK(value("power(2)", -infinity) == infinity);
}

TEST_CASE("derivatives of sin(x)/x agree with the integral of t^n cos(xt + n pi/2) over [0, 1]") {
    for (int n : {0, 1, 2, 3, 5, 8, 16}) {
        for (const long double x : {0.0L, 1e-6L, 0.3L, 0.99L, 1.01L, 1.36L, 2.5L, 3.9L, 4.1L, 6.8L, 7.0L, 12.0L, -2.5L}) {
            // Composite Gauss-Legendre, 3 points on 400 intervals.
            long double sum = 0;
            const int intervals = 400;
            for (int k = 0; k < intervals; ++k) {
                const long double middle = (k + 0.5L) / intervals, half = 0.5L / intervals;
                for (const auto& [node, weight] :
                     {std::pair{-std::sqrt(0.6L), 5.0L / 9}, std::pair{0.0L, 8.0L / 9}, std::pair{std::sqrt(0.6L), 5.0L / 9}}) {
                    const long double t = middle + half * node;
                    sum += half * weight * std::pow(t, n) * std::cos(x * t + n * std::numbers::pi_v<long double> / 2);
                }
            }
            CAPTURE(n);
            CAPTURE(static_cast<double>(x));
            CHECK(std::fabs(evaluate({FunctionKind::sinc, static_cast<double>(n)}, x) - sum) < 1e-15L);
        }
    }
}
