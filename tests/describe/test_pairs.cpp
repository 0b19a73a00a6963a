// Gradients with a row for an edge and its reverse: the same energies and forces as with a row for each, and which programs have them.
#include <doctest/doctest.h>

#include "describe/derivative.hpp"
#include "describe/pairs.hpp"
#include "describe/text.hpp"
#include "support/network_layers.hpp"
#include "support/paired_network.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

const std::vector<std::string> wanted = {"vectors"};

/// Edges' vectors to a number per node, by a polynomial without and one with the ends.
Program built(const std::vector<Segment>& vector, const Polynomial& local, const Polynomial& sum) {
    ProgramBuilder program;
    const int vectors = program.input("vectors", "edge", vector);
    return program.finish({program.apply("sum", sum, {program.apply("local", local, {vectors})})});
}

Polynomial powers(int least, int most) {
    Polynomial local;
    local.rows = "edge";
    local.operands = {make_operand({"x"}, {{3, 1, {}}}, Role::input), make_operand({"out"}, {{3, 1, {}}}, Role::output)};
    for (int power = least; power <= most; ++power) {
        std::vector<Factor> factors(static_cast<std::size_t>(power), {0, 0, "u", -1});
        factors.push_back({1, 0, "u", -1});
        add_path(local, factors, Coefficients(), 1.0, {{'u', 3}});
    }
    return local;
}

Polynomial summed(const Addressing& to) {
    Polynomial sum;
    sum.rows = "edge";
    sum.indices = {{"sender", "edge", "node", false}, {"receiver", "edge", "node", true}};
    sum.operands = {make_operand({"x"}, {{3, 1, {}}}, Role::input), make_operand({"out", Layout::mul_ir, to}, {{3, 1, {}}}, Role::output)};
    add_path(sum, {{0, 0, "u", -1}, {1, 0, "u", -1}}, Coefficients(), 1.0, {{'u', 3}});
    return sum;
}

}  // namespace

TEST_CASE("a gradient in pairs is that of both edges, at the first; values are the same") {
    const Program program = paired_network();
    const Program by_edge = value_and_vjp(program, wanted);
    const std::optional<PairedGradient> gradient = gradient_in_pairs(program);
    REQUIRE(gradient);
    for (const Program& paired : {gradient->of_pairs, gradient->made_again}) {
        CAPTURE(to_text(paired));
        CHECK(parse_program(to_text(paired)) == paired);
        for (const std::int64_t pairs : {0, 1, 20}) {
            const ReferenceInputs inputs = on_paired_graph(by_edge, 4, pairs, 7);
            const auto expected = evaluate(by_edge, inputs);
            const auto result = evaluate(paired, inputs);
            CHECK(relative_error(result.at("layer1.h"), expected.at("layer1.h")) < 1e-15);
            const std::vector<std::int64_t>&pair = inputs.indices.at("pair"), &first = inputs.indices.at("first_edge");
            ReferenceArray both(expected.at("vectors_gradient").size(), 0);
            for (std::size_t e = 0; e < pair.size(); ++e) {
                const auto to = static_cast<std::size_t>(first[static_cast<std::size_t>(pair[e])]);
                for (std::size_t k = 0; k < 3; ++k) both[3 * to + k] += (to == e ? 1 : -1) * expected.at("vectors_gradient")[3 * e + k];
            }
            CHECK(relative_error(result.at("vectors_gradient"), both) < 1e-15);
        }
    }
}

TEST_CASE("what belongs to an edge alone has a row per pair, sums on the way forth a row per edge") {
    const PairedGradient gradient = *gradient_in_pairs(paired_network());
    const auto spaces = [](const Program& program) {
        std::map<std::string, std::string> result;
        for (const Value& value : program.values) result[value.name] = value.space;
        return result;
    };
    auto of = spaces(gradient.of_pairs);
    CHECK(of.at("layer0.weights") == "pair");
    CHECK(of.at("layer1.scaled_cotangent") == "pair");
    CHECK(of.at("harmonics") == "pair");
    CHECK(of.at("harmonics_of_edge") == "edge");
    CHECK(!of.contains("layer0.weights_of_edge"));
    of = spaces(gradient.made_again);
    CHECK(of.at("layer0.weights") == "pair");
    CHECK(of.at("layer0.weights_of_edge") == "edge");
}

TEST_CASE("no pairs where something of an edge is neither even nor odd, or goes elsewhere than to an end") {
    const std::vector<Segment> three = {{3, 1, {}}};
    const auto possible = [](const Program& program) { return gradient_in_pairs(program).has_value(); };
    CHECK(possible(built(three, powers(2, 2), summed(row_of("receiver")))));
    CHECK(possible(built(three, powers(1, 1), summed(row_of("sender")))));
    CHECK(!possible(built(three, powers(1, 2), summed(row_of("receiver")))));  // x + x^2
    CHECK(!possible(built(three, powers(2, 2), summed(each_row()))));          // an output of edges
    CHECK(!possible(network_layers({.layers = 1})));                           // a matrix over even and odd harmonics

    Program program = built(three, powers(2, 2), summed(row_of("receiver")));
    program.inputs.push_back(static_cast<int>(program.values.size()));  // numbers of edges that say nothing of their reverse
    program.values.push_back({"other", "edge", three, Layout::mul_ir});
    CHECK(!possible(program));

    ProgramBuilder builder;
    const int vectors = builder.input("vectors", "edge", three);
    const int exponential = builder.apply("exponential", Function{FunctionKind::exp, 0}, vectors);
    CHECK(!possible(builder.finish({builder.apply("sum", summed(row_of("receiver")), {exponential})})));
}
