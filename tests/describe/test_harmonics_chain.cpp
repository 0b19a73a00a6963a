#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "describe/derivative.hpp"
#include "describe/harmonics_chain.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/text.hpp"
#include "support/random_descriptions.hpp"

using namespace clebsch;

namespace {

bool has_high_harmonics(const Program& program) {
    for (const Node& node : program.nodes)
        if (const auto* polynomial = std::get_if<PolynomialNode>(&node))
            for (const Path& path : polynomial->polynomial.paths)
                for (int degree = 3; degree <= 12; ++degree)
                    if (path.coefficients.name() == Coefficients::harmonic(degree).name()) return true;
    return false;
}

void check_same_meaning(const Program& program, unsigned seed) {
    random::Engine engine(seed);
    const Program chained = with_harmonic_chains(program);
    CAPTURE(to_text(chained));
    validate(chained);
    CHECK_FALSE(has_high_harmonics(chained));
    random::Limits limits;
    limits.rows = 6;
    ReferenceInputs inputs = random::inputs(engine, program, limits);
    const auto expected = evaluate(program, inputs), got = evaluate(chained, inputs);
    REQUIRE(expected.size() == got.size());
    for (const auto& [given_name, numbers] : expected) {
        const auto& name = given_name;
        long double difference = 0, norm = 0;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            difference += std::pow(numbers[i] - got.at(name)[i], 2);
            norm += numbers[i] * numbers[i];
        }
        CAPTURE(name);
        CHECK(std::sqrt(difference) <= 1e-14L * std::sqrt(norm));
    }
}

}  // namespace

TEST_CASE("chains give the values and all derivatives of harmonics, of raw and of normalised vectors") {
    for (const int lmax : {3, 4, 6}) {
        const Irreps irreps = Irreps::spherical_harmonics(lmax);
        for (const Program& values :
             {as_program(spherical_harmonics(irreps)), normalized_harmonics(irreps, {.normalization = HarmonicsNormalization::integral})}) {
            check_same_meaning(values, 1);
            const std::string vector[] = {"vector"};
            const Program gradient = vjp(values, vector);
            check_same_meaning(gradient, 2);
            check_same_meaning(jvp(values, vector), 3);
            if (lmax > 4) continue;
            const std::string both[] = {"vector", "harmonics_cotangent"};
            check_same_meaning(vjp(gradient, both), 4);
            check_same_meaning(jvp(vjp(gradient, vector), vector), 5);
        }
    }
    check_same_meaning(normalized_harmonics("1x12e+2x7o+1x9o"), 6);
}

TEST_CASE("one chain serves all degrees: values to lmax need Y_2 to Y_lmax once") {
    const Program chained = with_harmonic_chains(as_program(spherical_harmonics(Irreps::spherical_harmonics(6))));
    CHECK(chained.nodes.size() == 1 + 5 + 1);  // the squared length, Y_2 .. Y_6, then the output
}

TEST_CASE("random programs keep their meaning, harmonics or not") {
    for (unsigned seed = 0; seed < 60; ++seed) {
        random::Engine engine(seed);
        random::Limits limits;
        limits.smooth_only = true;
        limits.work = 50'000;
        CAPTURE(seed);
        const Program program = random::program(engine, limits);
        const Program chained = with_harmonic_chains(program);
        validate(chained);
        const ReferenceInputs inputs = random::inputs(engine, program, limits);
        const auto expected = evaluate(program, inputs), got = evaluate(chained, inputs);
        for (const auto& [name, numbers] : expected)
            for (std::size_t i = 0; i < numbers.size(); ++i)
                CHECK(std::fabs(numbers[i] - got.at(name)[i]) <= 1e-12L * (1 + std::fabs(numbers[i])));
    }
}
