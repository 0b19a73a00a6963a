// Any description, any derivative: finite differences and duality, three orders deep.
#include <doctest/doctest.h>

#include <cmath>

#include "derivative_support.hpp"
#include "describe/derivative.hpp"
#include "describe/text.hpp"

using namespace clebsch;
using namespace clebsch::derivative_testing;

namespace {

constexpr long double finite_difference_tolerance = 1e-12L;  // exact to h^6; long double rounding over h = 1e-3 leaves about 1e-16
constexpr long double duality_tolerance = 1e-15L;

template <class Description>
void check_three_orders(const Description& description, Source& source, std::uint64_t seed, const ReferenceInputs& graph) {
    Description current = description;
    std::string history;
    for (int order = 1; order <= 3; ++order) {
        ReferenceInputs call = graph;
        fill(call, current, source);
        const Names inputs = random_inputs(current, source);
        if (inputs.empty()) return;
        const Deviations deviations = check(current, inputs, call, source);
        INFO("seed ", seed, ", order ", order, " after", history, "\n", to_text(description));
        CHECK(deviations.finite_differences < finite_difference_tolerance);
        CHECK(deviations.duality < duality_tolerance);
        const bool reverse = source.below(3) > 0;
        current = reverse ? vjp(current, inputs) : jvp(current, inputs);
        history += reverse ? " vjp" : " jvp";
    }
}

}  // namespace

TEST_CASE("derivatives of random polynomials agree with finite differences and are adjoint to each other, to third order") {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        Source source(seed);
        const Polynomial polynomial = random_polynomial(source);
        validate(polynomial);
        check_three_orders(polynomial, source, seed, random_graph(source));
    }
}

TEST_CASE("derivatives of random programs agree with finite differences and are adjoint to each other, to third order") {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        Source source(seed);
        const Program program = random_program(source);
        validate(program);
        check_three_orders(program, source, seed, random_graph(source));
    }
}

TEST_CASE("simplifying keeps values, is idempotent and leaves no path that the next one repeats") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        Source source(seed);
        const Polynomial polynomial = random_polynomial(source);
        const Polynomial simple = simplified(polynomial);
        INFO("seed ", seed, "\n", to_text(polynomial));
        CHECK(simplified(simple) == simple);
        CHECK(simple.operands == polynomial.operands);
        ReferenceInputs call = random_graph(source);
        fill(call, polynomial, source);
        const auto expected = evaluate(polynomial, call), got = evaluate(simple, call);
        for (const auto& [name, array] : expected)
            for (std::size_t i = 0; i < array.size(); ++i)
                CHECK(std::fabs(array[i] - got.at(name)[i]) < 1e-13L * (1 + std::fabs(array[i])));
    }
}
