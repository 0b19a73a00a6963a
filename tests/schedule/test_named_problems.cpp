// Named problems are what the library is measured by: none of them, and none of their derivatives, is left to the general loops.
#include <doctest/doctest.h>

#include "describe/operations/named_problems.hpp"
#include "describe/operations/tensor_square.hpp"
#include "schedule/cpu.hpp"
#include "support/channelwise.hpp"

using namespace clebsch;

TEST_CASE("no named problem falls back to general loops, to the second derivative") {
    int polynomials = 0;
    for (const NamedProblem& problem : named_problems()) {
        const Description description = named_problem(problem.label);
        const auto* const polynomial = std::get_if<Polynomial>(&description);
        if (polynomial == nullptr) continue;
        ++polynomials;
        for (const int order : {0, 1, 2}) {
            CAPTURE(problem.label);
            CAPTURE(order);
            const std::string text = "\n" + choose_kernels(random::gradients(*polynomial, order), default_instruction_set()).explain;
            CHECK(text.find("\ngeneral") == std::string::npos);
        }
    }
    CHECK(polynomials >= 40);
}

TEST_CASE("what is left to general loops says why") {
    const auto explained = [](const Polynomial& polynomial, const std::string& family) {
        return choose_kernels(polynomial, default_instruction_set(), family).explain;
    };
    const std::string square = explained(tensor_square(Irreps("32x0e+16x1o")), "");
    CAPTURE(square);
    CHECK(square.find("; coefficients meet channels of several letters") != std::string::npos);
    const auto convolution = std::get<Polynomial>(named_problem("nequix-main"));
    CHECK(explained(convolution, "general").find("; no family but 'general' was asked") != std::string::npos);
    CHECK(explained(convolution, "").find("was asked") == std::string::npos);
}
