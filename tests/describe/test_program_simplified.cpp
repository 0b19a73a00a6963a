#include <doctest/doctest.h>

#include "describe/program.hpp"
#include "describe/text.hpp"
#include "support/two_layers.hpp"

using namespace clebsch;

namespace {

const std::string& text = testing::two_layers;

}  // namespace

TEST_CASE("simplification removes what no output needs, merges equal nodes and keeps the interface") {
    const Program program = simplified(parse_program(text));
    validate(program);
    REQUIRE(program.nodes.size() == 4);
    CHECK(std::get<FunctionNode>(program.nodes[0]).function.kind == FunctionKind::silu);
    const auto& product = std::get<PolynomialNode>(program.nodes[2]);
    CHECK(product.arguments[0] == product.arguments[1]);
    CHECK(program.values.size() == 7);
    CHECK(program.values[static_cast<std::size_t>(program.inputs[0])].name == "x");
    CHECK(program.values[static_cast<std::size_t>(program.inputs[1])].name == "w");
    CHECK(program.values[static_cast<std::size_t>(program.inputs[2])].name == "unused");
    CHECK(program.values[static_cast<std::size_t>(program.outputs[0])].name == "z");
    CHECK(program.values[static_cast<std::size_t>(program.outputs[1])].name == "s");
    CHECK(simplified(program) == program);
}

TEST_CASE("of two equal results an output of the program keeps its name; two outputs stay two") {
    std::string changed = text;
    changed.replace(changed.find("outputs z, s"), 12, "outputs h2, s");
    Program program = simplified(parse_program(changed));
    validate(program);
    CHECK(program.values[static_cast<std::size_t>(program.outputs[0])].name == "h2");
    CHECK(program.nodes.size() == 3);  // silu, polynomial 0 written as h2, sinc of h2
    changed.replace(changed.find("outputs h2, s"), 13, "outputs h2, h");
    program = simplified(parse_program(changed));
    validate(program);
    CHECK(program.nodes.size() == 3);  // silu, polynomial 0 twice
}

TEST_CASE("simplification drops unread outputs of a node and the inputs only they needed") {
    std::string changed = text;
    changed.replace(changed.find("output c: 8x(1) mul_ir @ each\n"), 30,
                    "input unread: 8x(1) mul_ir @ each\noutput c: 8x(1) mul_ir @ each\noutput e: 8x(1) mul_ir @ each\n");
    changed.replace(changed.find("end\n"), 4, "path u=8: e.0[u] += unread.0[u]\nend\n");
    changed.replace(changed.find("h = polynomial 0(g, w)"), 22, "h, dead = polynomial 0(g, w, t)");
    changed.replace(changed.find("h2 = polynomial 0(g2, w)"), 24, "h2 = silu(g2)");
    changed.replace(changed.find("dead = power(-0.5)(g2)"), 22, "t = exp(g2)");
    changed.replace(changed.find("value w:"), 8, "value t: 8x(1) mul_ir @ edge\nvalue w:");
    const Program program = simplified(parse_program(changed));
    validate(program);
    CHECK(program.nodes.size() == 5);  // silu, polynomial 0 without `unread` and `e`, silu of g, polynomial 1, sinc: no exp
    CHECK(std::get<PolynomialNode>(program.nodes[1]).polynomial.operands.size() == 3);
}
