// The generator that other tests rely on covers what it promises, and every description it makes is valid and can be evaluated.
#include <doctest/doctest.h>

#include <cmath>

#include "describe/reference.hpp"
#include "describe/text.hpp"
#include "support/coverage.hpp"
#include "support/random_descriptions.hpp"

using namespace clebsch;

namespace {

std::string joined(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += (text.empty() ? "" : "  ") + item;
    return text;
}

}  // namespace

TEST_CASE("random polynomials are valid, evaluate to finite numbers, and cover modes, row spaces, layouts, coefficients and sizes") {
    Coverage coverage;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        random::Engine engine(seed);
        const Polynomial polynomial = random::polynomial(engine);
        INFO("seed ", seed, "\n", to_text(polynomial));
        REQUIRE_NOTHROW(validate(polynomial));
        coverage.add(polynomial);
        if (seed % 3 != 0) continue;
        const ReferenceInputs inputs = random::inputs(engine, polynomial);
        coverage.add(inputs);
        for (const auto& [name, array] : evaluate(polynomial, inputs))
            for (const long double number : array) REQUIRE(std::isfinite(number));
    }
    MESSAGE(coverage.to_text());
    CHECK(joined(coverage.missing(
              "mode", {"u,v,uvw->w", "u,v,uv->u", "u,v,uv->v", "u,u,uv->v",  "u,u,u->u", "u,v,uv->uv", "u,v,(u<v)->(u<v)", "u,v,(u<v)w->w",
                       "u,v->u",     "u,u->u",    "u,v->uv",   "u,v->(u<v)", "u,->u",    "u,,u->u",    "u,v,w->uvw",       "u,uv->v",
                       "u,vu->v",    "u->u",      "u->",       "->u",        "->",       "uv->vu"})) == "");
    CHECK(joined(coverage.missing("input rows", {"each", "shared", "sorted", "unsorted", "sorted chain of 2", "unsorted chain of 2"})) ==
          "");
    CHECK(joined(coverage.missing("output rows", {"each", "shared", "sorted", "unsorted", "sorted chain of 2", "unsorted chain of 2"})) ==
          "");
    CHECK(joined(coverage.missing("layout", {"mul_ir", "ir_mul"})) == "");
    CHECK(joined(coverage.missing("segment", {"irrep", "plain"})) == "");
    CHECK(joined(coverage.missing("coefficients", {"one", "identity", "cg", "cg04", "harmonic", "symmetric", "literal of rank 1",
                                                   "literal of rank 2", "literal of rank 3", "literal of rank 4"})) == "");
    CHECK(joined(coverage.missing("channels", {"1", "2", "3", "5", "8", "13", "16", "33"})) == "");
    CHECK(joined(coverage.missing("power of an operand", {"0", "1", "2", "3", "4"})) == "");
    CHECK(joined(coverage.missing("outputs", {"1", "2", "3"})) == "");
    CHECK(joined(coverage.missing("rows of a space", {"0", "1", "2-7", "8-31", "32+"})) == "");
    CHECK(joined(coverage.missing("index", {"without masks", "with masked rows"})) == "");
}

TEST_CASE("random programs are valid, keep their values of moderate size, and cover functions") {
    Coverage coverage;
    long huge = 0, numbers = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        random::Engine engine(seed);
        const Program program = random::program(engine);
        INFO("seed ", seed, "\n", to_text(program));
        REQUIRE_NOTHROW(validate(program));
        coverage.add(program);
        if (seed % 2 != 0) continue;
        const ReferenceInputs inputs = random::inputs(engine, program);
        coverage.add(inputs);
        for (const auto& [name, array] : evaluate(program, inputs))
            for (const long double number : array) {
                REQUIRE(std::isfinite(number));
                huge += std::fabs(number) > 1e4L;
                ++numbers;
            }
    }
    MESSAGE(coverage.to_text());
    CHECK(numbers > 10'000);
    CHECK(huge * 100 < numbers);
    CHECK(joined(coverage.missing("function", {"exp", "log", "sin", "cos", "tanh", "sigmoid", "silu", "softplus", "erf", "absolute", "sign",
                                               "relu", "step", "power", "sinc"})) == "");
}
