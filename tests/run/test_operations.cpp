// Plans of what people run, on every instruction set of this machine, against the reference: all named problems to second derivatives, all
// builders to third ones; and the symmetry that all of it is for.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "describe/operations/named_problems.hpp"
#include "describe/text.hpp"
#include "support/any_description.hpp"
#include "support/magnitudes.hpp"
#include "support/operation_samples.hpp"
#include "support/random_descriptions.hpp"
#include "support/repetitions.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

struct Storage {
    DType dtype;
    double bound;
};

/// Multiply-adds of the reference for one row.
double work_per_row(const Description& description) {
    double work = 0;
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) return random::work_per_row(*polynomial);
    for (const Node& node : std::get<Program>(description).nodes)
        if (const auto* applied = std::get_if<PolynomialNode>(&node)) work += random::work_per_row(applied->polynomial);
    return work;
}

}  // namespace

TEST_CASE("named problems, forward, first and second derivatives: 1e-13 in float64 and 2e-6 in float32 of the reference's norm") {
    std::mt19937_64 random(20261130);
    double largest[2] = {0, 0};
    int compared = 0;
    for (std::size_t p = 0; p < named_problems().size(); p += static_cast<std::size_t>(one_in(5))) {
        const NamedProblem& problem = named_problems()[p];
        CAPTURE(problem.label);
        Description description = named_problem(problem.label);
        for (int order = 0; order <= 2; ++order) {
            CAPTURE(order);
            if (order > 0) description = gradient_of(description);
            // More rows than a vector has lanes where the reference is not too slow; always an edge to another node.
            const auto rows = static_cast<std::int64_t>(std::clamp(3e6 / work_per_row(description), 2.0, 19.0));
            const ReferenceInputs call = random_call(
                description, random, {{"row", rows}, {"edge", rows}, {"node", std::min<std::int64_t>(rows, 5)}, {"element", 2}});
            const Arrays reference = evaluate(description, call);
            for (const Storage storage : {Storage{DType::float64, 1e-13}, {DType::float32, 2e-6}})
                for (const InstructionSet isa : available_instruction_sets()) {
                    const Arrays found = run(description, call, storage.dtype, isa);
                    for (const auto& [name, numbers] : reference) {
                        const double error = relative_error(found.at(name), numbers);
                        double& most = largest[storage.dtype == DType::float32];
                        most = std::max(most, error);
                        ++compared;
                        if (!(error < storage.bound))
                            FAIL_CHECK(name << " in " << std::string(to_text(storage.dtype)) << ", " << to_text(isa) << ": " << error);
                    }
                }
        }
    }
    CHECK(largest[1] > 1e-8);  // something was rounded
    MESSAGE(compared << " outputs, largest error in float64 " << largest[0] << ", in float32 " << largest[1]);
}

TEST_CASE("every builder of the registry, to third derivatives, runs as the reference says") {
    std::mt19937_64 random(20261201);
    double largest[2] = {0, 0};
    for (const Sample& sample : samples()) {
        CAPTURE(label(sample));
        Description description = build(sample);
        for (int order = 0; order <= 3; ++order) {
            CAPTURE(order);
            if (order > 0) description = gradient_of(description);
            const ReferenceInputs call =
                random_call(description, random, {{"row", 11}, {"edge", 13}, {"node", 5}, {"graph", 2}, {"element", 3}});
            const Arrays reference = evaluate(description, call);
            for (const Storage storage : {Storage{DType::float64, 1e-14}, {DType::float32, 2e-6}}) {
                const Arrays scale = magnitudes(description, call, storage.dtype);
                for (const InstructionSet isa : available_instruction_sets()) {
                    const Arrays found = run(description, call, storage.dtype, isa);
                    for (const auto& [name, numbers] : reference) {
                        const double error = error_in_magnitudes(found.at(name), numbers, scale.at(name));
                        double& most = largest[storage.dtype == DType::float32];
                        most = std::max(most, error);
                        if (!(error < storage.bound))
                            FAIL_CHECK(name << " in " << std::string(to_text(storage.dtype)) << ", " << to_text(isa) << ": " << error);
                    }
                }
            }
        }
    }
    MESSAGE("largest error in float64 " << largest[0] << ", in float32 " << largest[1]);
}

TEST_CASE("to l = 6, outputs and gradients of plans in float64 turn with their inputs to 1e-12, inversions included") {
    const std::string all = "3x0e+2x1o+2x2e+3o+4e+5o+6e", pseudo = "2x0o+1e+2o+2x3e+4o+5e+6o";
    const std::pair<const char*, OptionTexts> cases[] = {
        {"convolution",
         {{"in", all + "+" + pseudo}, {"edge", "0e+1o+2e+3o+4e+5o+6e"}, {"out", "0e+1o+2e+3o+4e+5o+6e+0o+1e+2o+3e+4o+5e+6o"}}},
        {"fully_connected", {{"in1", all}, {"in2", "0e+1o+2e+3o+4e+5o+6e"}, {"out", all + "+" + pseudo}, {"weights", "per_row"}}},
        {"full_product", {{"in1", "2x3o+6e"}, {"in2", "5o+4o"}}},
        {"tensor_square", {{"in", "2x1o+3e+6e"}, {"out", "2x0e+2e+4e+6e"}}},
        {"linear", {{"in", all + "+" + pseudo}, {"out", "5x0e+3x1o+2x2e+2x3o+3x4e+2x5o+2x6e+3x0o+2x6o"}}},
        {"symmetric_contraction", {{"in", "2x0e+2x1o+2x2e+2x3o"}, {"out", "2x0e+2x1o+2x2e+2x6e"}, {"correlation", "3"}}},
        {"symmetric_contraction", {{"in", "2x0e+2x4e+2x5o+2x6e"}, {"out", "2x0e+2x1o+2x6e"}, {"correlation", "2"}}},
        {"spherical_harmonics", {{"irreps", "0e+1o+2e+3o+4e+5o+6e"}, {"normalize", "true"}}},
        {"spherical_harmonics", {{"irreps", "0e+1o+2e+3o+4e+5o+6e"}, {"normalize", "false"}}},
        {"norm_activation", {{"irreps", "2x0e+2x1o+5o+6e"}, {"function", "sigmoid"}}},
        {"gate",
         {{"scalars", "2x0e"}, {"scalar_functions", "silu"}, {"gates", "4x0e"}, {"gate_functions", "sigmoid"}, {"gated", "2x3o+5e+6e"}}},
    };
    std::mt19937_64 random(20261202);
    double largest = 0;
    for (const auto& one : cases) {
        CAPTURE(std::string(one.first));
        Description description = build_operation(one.first, one.second);
        for (int order = 0; order <= 1; ++order) {
            CAPTURE(order);
            if (order > 0) description = gradient_of(description);
            const ReferenceInputs call = random_call(description, random);
            for (const bool improper : {false, true})
                for (const InstructionSet isa : available_instruction_sets()) {
                    if (one_in(2) == 2 && improper != (isa == available_instruction_sets().back())) continue;
                    const double error = equivariance_deviation(
                        description, call, random_rotation(random, improper),
                        [&](const ReferenceInputs& turned) { return run(description, turned, DType::float64, isa); });
                    largest = std::max(largest, error);
                    if (!(error < 1e-12)) FAIL_CHECK("error " << error << ", " << to_text(isa));
                }
        }
    }
    MESSAGE("largest deviation " << largest);
}
