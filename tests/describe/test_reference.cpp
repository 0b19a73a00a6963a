// The reference gives the numbers that direct formulas written by hand give.
#include <doctest/doctest.h>

#include <cmath>
#include <ctime>
#include <random>

#include "algebra/harmonics.hpp"
#include "algebra/wigner.hpp"
#include "base/error.hpp"
#include "describe/reference.hpp"

using namespace clebsch;

namespace {

ReferenceArray normal(std::size_t count, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> distribution;
    ReferenceArray array(count);
    for (long double& number : array) number = distribution(engine);
    return array;
}

double largest_difference(const ReferenceArray& a, const ReferenceArray& b) {
    REQUIRE(a.size() == b.size());
    long double largest = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::fabs(a[i] - b[i]));
        size = std::max(size, std::fabs(b[i]));
    }
    REQUIRE(size > 0);
    return static_cast<double>(largest / size);
}

Operand operand(const char* name, const char* irreps, Role role = Role::input, Addressing rows = each_row(),
                Layout layout = Layout::mul_ir) {
    return {name, segments_of(Irreps(irreps)), layout, role, std::move(rows)};
}

std::string error_of(const Polynomial& polynomial, const ReferenceInputs& inputs) {
    try {
        evaluate(polynomial, inputs);
    } catch (const Error& error) { return error.what(); }
    return "no error";
}

/// A convolution over edges: x[sender] (4x1o) times y[edge] (1x2e) with weights[edge] to 4x1o, summed at the receiver.
Polynomial convolution(Layout layout) {
    Polynomial polynomial;
    polynomial.rows = "edge";
    polynomial.indices = {{"sender", "edge", "node", false}, {"receiver", "edge", "node", true}};
    polynomial.operands = {operand("x", "4x1o", Role::input, row_of("sender"), layout), operand("y", "1x2e"), operand("weights", "4x0e"),
                           operand("out", "4x1o", Role::output, row_of("receiver"), layout)};
    Path path;
    path.factors = {{0, 0, "u", 0}, {1, 0, "", 1}, {2, 0, "u", -1}, {3, 0, "u", 2}};
    path.coefficients = Coefficients::cg({1, Parity::odd}, {2, Parity::even}, {1, Parity::odd});
    path.scale = 0.75;
    path.extents = {{'u', 4}};
    polynomial.paths = {path};
    return polynomial;
}

}  // namespace

TEST_CASE("a convolution gathers senders, couples channel-wise and sums at receivers, in both layouts; -1 masks an edge") {
    const std::vector<std::int64_t> sender = {0, 2, 1, -1, 2, 0}, receiver = {0, 0, 1, 1, 1, -1};
    const ReferenceArray x = normal(3 * 12, 1), y = normal(6 * 5, 2), weights = normal(6 * 4, 3);
    for (const Layout layout : {Layout::mul_ir, Layout::ir_mul}) {
        const auto at = [&](std::int64_t row, int u, int i) {
            return static_cast<std::size_t>(row * 12 + (layout == Layout::mul_ir ? u * 3 + i : i * 4 + u));
        };
        ReferenceArray expected(3 * 12, 0);
        for (std::size_t edge : {0u, 1u, 2u, 4u})
            for (int u = 0; u < 4; ++u)
                for (const CouplingEntry& c : wigner_3j(1, 2, 1))
                    expected[at(receiver[edge], u, c.k)] += 0.75L * c.value * x[at(sender[edge], u, c.i)] *
                                                            y[edge * 5 + static_cast<std::size_t>(c.j)] *
                                                            weights[edge * 4 + static_cast<std::size_t>(u)];
        const auto outputs = evaluate(
            convolution(layout),
            {{{"edge", 6}, {"node", 3}}, {{"sender", sender}, {"receiver", receiver}}, {{"x", x}, {"y", y}, {"weights", weights}}});
        CHECK(largest_difference(outputs.at("out"), expected) < 1e-18);
        for (int i = 0; i < 12; ++i) CHECK(outputs.at("out")[static_cast<std::size_t>(24 + i)] == 0);  // node 2 receives nothing
    }
}

TEST_CASE("letters: mixing, broadcasts and restricted pairs follow einsum over u < v") {
    Polynomial polynomial;
    polynomial.operands = {operand("a", "3x0e"),
                           operand("b", "3x0e"),
                           operand("w", "6x0e", Role::input, shared_row()),
                           operand("mixed", "2x0e", Role::output),
                           operand("pairs", "3x0e", Role::output),
                           operand("wide", "6x0e", Role::output)};
    const auto path = [](std::vector<Factor> factors, std::vector<std::pair<char, std::int64_t>> extents) {
        Path result;
        result.factors = std::move(factors);
        result.extents = std::move(extents);
        return result;
    };
    polynomial.paths = {
        path({{0, 0, "u", -1}, {1, 0, "v", -1}, {2, 0, "(u<v)w", -1}, {3, 0, "w", -1}}, {{'u', 3}, {'v', 3}, {'w', 2}}),
        path({{0, 0, "u", -1}, {1, 0, "v", -1}, {4, 0, "(u<v)", -1}}, {{'u', 3}, {'v', 3}}),
        path({{0, 0, "u", -1}, {5, 0, "zu", -1}}, {{'u', 3}, {'z', 2}}),
    };
    const ReferenceArray a = normal(2 * 3, 4), b = normal(2 * 3, 5), w = normal(6, 6);
    const auto outputs = evaluate(polynomial, {{{"row", 2}}, {}, {{"a", a}, {"b", b}, {"w", w}}});
    ReferenceArray mixed(4, 0), pairs(6, 0), wide(12, 0);
    const int pair_of[3][3] = {{-1, 0, 1}, {-1, -1, 2}, {-1, -1, -1}};  // numpy.triu_indices(3, 1)
    for (std::size_t row = 0; row < 2; ++row)
        for (std::size_t u = 0; u < 3; ++u) {
            for (std::size_t z = 0; z < 2; ++z) wide[row * 6 + z * 3 + u] += a[row * 3 + u];
            for (std::size_t v = u + 1; v < 3; ++v) {
                const auto pair = static_cast<std::size_t>(pair_of[u][v]);
                pairs[row * 3 + pair] += a[row * 3 + u] * b[row * 3 + v];
                for (std::size_t c = 0; c < 2; ++c) mixed[row * 2 + c] += a[row * 3 + u] * b[row * 3 + v] * w[pair * 2 + c];
            }
        }
    CHECK(largest_difference(outputs.at("mixed"), mixed) < 1e-18);
    CHECK(largest_difference(outputs.at("pairs"), pairs) < 1e-18);
    CHECK(largest_difference(outputs.at("wide"), wide) < 1e-18);
}

TEST_CASE("powers of one operand: harmonic(l) of a vector is Y_l") {
    const ReferenceArray vectors = normal(5 * 3, 7);
    for (int l = 0; l <= 12; ++l) {
        Polynomial polynomial;
        polynomial.operands = {operand("r", "1o"), {"y", {{1, 2 * l + 1, std::nullopt}}, Layout::mul_ir, Role::output, each_row()}};
        Path path;
        for (int axis = 0; axis < l; ++axis) path.factors.push_back({0, 0, "", axis});
        path.factors.push_back({1, 0, "", l});
        path.coefficients = Coefficients::harmonic(l);
        polynomial.paths = {path};
        const ReferenceArray y = evaluate(polynomial, {{{"row", 5}}, {}, {{"r", vectors}}}).at("y");
        for (std::size_t row = 0; row < 5; ++row) {
            const double r[3] = {static_cast<double>(vectors[row * 3]), static_cast<double>(vectors[row * 3 + 1]),
                                 static_cast<double>(vectors[row * 3 + 2])};
            const std::vector<double> all = spherical_harmonics(l, r, false, HarmonicsNormalization::component);
            double size = 0;
            for (int m = 0; m <= 2 * l; ++m) size = std::max(size, std::abs(all[static_cast<std::size_t>(l * l + m)]));
            for (int m = 0; m <= 2 * l; ++m) {
                INFO("l = ", l, ", m = ", m, ", row ", row);
                const double difference =
                    std::abs(static_cast<double>(y[row * static_cast<std::size_t>(2 * l + 1) + static_cast<std::size_t>(m)]) -
                             all[static_cast<std::size_t>(l * l + m)]);
                CHECK(difference < 1e-12 * size);  // expanded monomials lose digits in double at high l; the reference sums in long double
            }
        }
    }
}

TEST_CASE(
    "indices compose: edges are summed per graph of their receiver; a mask anywhere along the chain drops the edge from that path only") {
    Polynomial polynomial;
    polynomial.rows = "edge";
    polynomial.indices = {{"receiver", "edge", "node", false}, {"graph", "node", "graph", false}};
    polynomial.operands = {operand("a", "2x0e"), operand("per_graph", "2x0e", Role::output, row_of({"receiver", "graph"})),
                           operand("total", "2x0e", Role::output, shared_row()), operand("copy", "2x0e", Role::output)};
    for (int output = 1; output <= 3; ++output) {
        Path path;
        path.factors = {{0, 0, "u", -1}, {output, 0, "u", -1}};
        path.extents = {{'u', 2}};
        polynomial.paths.push_back(path);
    }
    const ReferenceArray a = {1, 2, 4, 8, 16, 32, 64, 128};
    const auto outputs =
        evaluate(polynomial, {{{"edge", 4}, {"node", 3}, {"graph", 2}}, {{"receiver", {2, 0, -1, 1}}, {"graph", {1, -1, 1}}}, {{"a", a}}});
    CHECK(outputs.at("per_graph") == ReferenceArray{0, 0, 5, 10});
    CHECK(outputs.at("total") == ReferenceArray{85, 170});
    CHECK(outputs.at("copy") == a);
}

TEST_CASE("paths without inputs are constants per row, no rows give zeros, no paths give zeros") {
    Polynomial polynomial;
    polynomial.rows = "edge";
    polynomial.indices = {{"receiver", "edge", "node", false}};
    polynomial.operands = {{"degree", {{2, 3, std::nullopt}}, Layout::ir_mul, Role::output, row_of("receiver")},
                           operand("untouched", "1o", Role::output)};
    Path path;
    path.factors = {{0, 0, "u", 0}};
    path.coefficients = Coefficients::literal({3}, {{{0}, 1.0}, {{2}, -3.0}});
    path.scale = 2;
    path.extents = {{'u', 2}};
    polynomial.paths = {path};
    const auto outputs = evaluate(polynomial, {{{"edge", 3}, {"node", 2}}, {{"receiver", {1, 1, -1}}}, {}});
    CHECK(outputs.at("degree") == ReferenceArray{0, 0, 0, 0, 0, 0, 4, 4, 0, 0, -12, -12});
    CHECK(outputs.at("untouched") == ReferenceArray(9, 0));
    const auto empty = evaluate(polynomial, {{{"edge", 0}, {"node", 2}}, {{"receiver", {}}}, {}});
    CHECK(empty.at("degree") == ReferenceArray(12, 0));
    CHECK(empty.at("untouched").empty());
}

TEST_CASE("a program evaluates node by node: silu of a sum over edges, squared") {
    Program program;
    program.indices = {{"receiver", "edge", "node", true}};
    program.values = {{"a", "edge", {{2, 1, std::nullopt}}, Layout::mul_ir},
                      {"sum", "node", {{2, 1, std::nullopt}}, Layout::mul_ir},
                      {"activated", "node", {{2, 1, std::nullopt}}, Layout::mul_ir},
                      {"square", "node", {{2, 1, std::nullopt}}, Layout::mul_ir}};
    program.inputs = {0};
    program.outputs = {3, 1};
    const std::vector<Segment> pair = {{2, 1, std::nullopt}};
    Path pass, square;
    pass.factors = {{0, 0, "u", -1}, {1, 0, "u", -1}};
    square.factors = {{0, 0, "u", -1}, {0, 0, "u", -1}, {1, 0, "u", -1}};
    pass.extents = square.extents = {{'u', 2}};
    Polynomial sum{"edge",
                   program.indices,
                   {{"in", pair, Layout::mul_ir, Role::input, each_row()}, {"out", pair, Layout::mul_ir, Role::output, row_of("receiver")}},
                   {pass}};
    Polynomial power{"node",
                     {},
                     {{"in", pair, Layout::mul_ir, Role::input, each_row()}, {"out", pair, Layout::mul_ir, Role::output, each_row()}},
                     {square}};
    program.nodes = {PolynomialNode{sum, {0, 1}}, FunctionNode{{FunctionKind::silu, 0}, 1, 2}, PolynomialNode{power, {2, 3}}};
    const ReferenceArray a = normal(6, 8);
    const auto outputs = evaluate(program, {{{"edge", 3}, {"node", 2}}, {{"receiver", {0, 1, 1}}}, {{"a", a}}});
    const ReferenceArray sums = {a[0], a[1], a[2] + a[4], a[3] + a[5]};
    ReferenceArray squares;
    for (const long double s : sums) squares.push_back(std::pow(s / (1 + std::exp(-s)), 2.0L));
    CHECK(largest_difference(outputs.at("sum"), sums) < 1e-18);
    CHECK(largest_difference(outputs.at("square"), squares) < 1e-18);
}

TEST_CASE("what a call lacks or gets wrong is named") {
    const Polynomial polynomial = convolution(Layout::mul_ir);
    const ReferenceInputs good = {{{"edge", 2}, {"node", 2}},
                                  {{"sender", {0, 1}}, {"receiver", {0, 1}}},
                                  {{"x", normal(24, 1)}, {"y", normal(10, 2)}, {"weights", normal(8, 3)}}};
    CHECK(error_of(polynomial, good) == "no error");
    const auto with = [&](auto&& change) {
        ReferenceInputs inputs = good;
        change(inputs);
        return error_of(polynomial, inputs);
    };
    CHECK(with([](ReferenceInputs& i) { i.rows.erase("node"); }).find("space 'node' is missing") != std::string::npos);
    CHECK(with([](ReferenceInputs& i) { i.rows["edge"] = -3; }).find("expected at least 0 rows, got -3") != std::string::npos);
    CHECK(with([](ReferenceInputs& i) { i.indices.erase("sender"); }) == "index 'sender': the array is missing");
    CHECK(with([](ReferenceInputs& i) { i.indices["sender"] = {0}; }) ==
          "index 'sender': expected a value for each of 2 rows of 'edge', got 1");
    CHECK(with([](ReferenceInputs& i) {
              i.indices["sender"] = {0, 2};
          }) == "index 'sender': value 2 at position 1 is outside the 2 rows of 'node' (-1 masks a row)");
    CHECK(with([](ReferenceInputs& i) { i.indices["sender"] = {0, -2}; }).find("value -2 at position 1") != std::string::npos);
    CHECK(with([](ReferenceInputs& i) {
              i.indices["receiver"] = {1, 0};
          }) == "index 'receiver': declared sorted, but value 0 at position 1 follows 1");
    CHECK(with([](ReferenceInputs& i) { i.arrays.erase("weights"); }) == "operand 'weights': the array is missing");
    CHECK(with([](ReferenceInputs& i) { i.arrays["y"].pop_back(); }) == "operand 'y': expected 2 rows of 5 numbers, got 9 numbers");
}

TEST_CASE("the reference is fast enough to be used: 100 edges, 128 channels, lmax 3 take well under a second") {
    const Irreps x("128x0e+128x1o+128x2e+128x3o"), y("0e+1o+2e+3o");
    Polynomial polynomial;
    polynomial.rows = "edge";
    polynomial.indices = {{"sender", "edge", "node", false}, {"receiver", "edge", "node", true}};
    polynomial.operands = {{"x", segments_of(x), Layout::ir_mul, Role::input, row_of("sender")},
                           {"y", segments_of(y), Layout::ir_mul, Role::input, each_row()},
                           {"out", segments_of(x), Layout::ir_mul, Role::output, row_of("receiver")}};
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b)
            for (int c = 0; c < 4; ++c) {
                const auto first = static_cast<std::size_t>(a), second = static_cast<std::size_t>(b), third = static_cast<std::size_t>(c);
                if (!couples(x[first].irrep, y[second].irrep, x[third].irrep)) continue;
                Path path;
                path.factors = {{0, a, "u", 0}, {1, b, "", 1}, {2, c, "u", 2}};
                path.coefficients = Coefficients::cg(x[first].irrep, y[second].irrep, x[third].irrep);
                path.extents = {{'u', 128}};
                polynomial.paths.push_back(path);
            }
    std::vector<std::int64_t> sender(100), receiver(100);
    for (std::size_t e = 0; e < 100; ++e) {
        sender[e] = static_cast<std::int64_t>((e * 7) % 10);
        receiver[e] = static_cast<std::int64_t>(e / 10);
    }
    const std::clock_t start = std::clock();  // processor time: a busy machine may give us little of it
    const auto outputs = evaluate(polynomial, {{{"edge", 100}, {"node", 10}},
                                               {{"sender", sender}, {"receiver", receiver}},
                                               {{"x", normal(10 * 2048, 1)}, {"y", normal(1600, 2)}}});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    MESSAGE("reference: ", seconds, " s");
    CHECK(outputs.at("out").size() == 20480);
    CHECK(seconds < 5);  // a bound for sanitizer builds
}
