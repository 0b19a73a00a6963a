// Plans against the reference on random descriptions, each through every kernel family.
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "describe/derivative.hpp"
#include "describe/text.hpp"
#include "support/coverage.hpp"
#include "support/random_descriptions.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

/// The largest norm-wise error of any output; infinite if anything outside the outputs was touched.
double error_against(const RunResult& result, const std::map<std::string, ReferenceArray>& reference) {
    if (!result.surroundings_intact) return INFINITY;
    double largest = 0;
    for (const auto& [name, numbers] : reference) largest = std::max(largest, relative_error(result.outputs.at(name), numbers));
    return largest;
}

std::uint64_t first_seed() {
    const char* text = std::getenv("CLEBSCH_TEST_SEED");
    return text == nullptr ? 20240 : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> input_names(const Polynomial& polynomial) {
    std::vector<std::string> names;
    for (const Operand& operand : polynomial.operands)
        if (operand.role == Role::input) names.push_back(operand.name);
    return names;
}

int repetitions(int usual) {
    const char* text = std::getenv("CLEBSCH_TEST_REPETITIONS");
    return text == nullptr ? usual : std::atoi(text);
}

}  // namespace

TEST_CASE("random polynomials and their derivatives run as the reference says, whichever family runs them") {
    const std::uint64_t seed = first_seed();
    MESSAGE("seed " << seed);
    random::Limits limits;
    limits.work = 60'000;
    limits.path_work = 5'000;
    Coverage coverage;
    for (int i = 0; i < repetitions(160); ++i) {
        random::Engine engine(seed + static_cast<std::uint64_t>(i));
        Polynomial polynomial = random::polynomial(engine, limits);
        const int order = i % 8 == 7 ? 2 : i % 2;
        for (int k = 0; k < order; ++k) polynomial = vjp(polynomial, input_names(polynomial));
        coverage.add(polynomial);
        coverage.count("derivative order", std::to_string(order));
        const ReferenceInputs inputs = random::inputs(engine, polynomial, limits);
        const auto reference = evaluate(polynomial, inputs);
        CAPTURE(seed + static_cast<std::uint64_t>(i));
        for (const char* family : {"", "lanes", "fold", "mix", "terms", "general"}) {
            CAPTURE(family);
            PlanOptions options{.family = family};
            options.dtypes.assign(polynomial.operands.size(), DType::float64);
            const PolynomialPlan plan(polynomial, options);
            for (const char* kernel : {"lanes", "fold", "mix", "terms", "general"})
                if (plan.explain().find(std::string("\n") + kernel + ": ") != std::string::npos) coverage.count("kernel", kernel);
            ThreadPool pool(2);
            const RunResult alone = run_plan(plan, inputs, {.padding = i % 4});
            const double error = error_against(alone, reference);
            if (error > 1e-11) FAIL_CHECK("error " << error << " in\n" << to_text(polynomial) << plan.explain());
            CHECK(run_plan(plan, inputs, {.parallel_for = pool.parallel_for()}).outputs == alone.outputs);
        }
    }
    MESSAGE(coverage.to_text());
    if (repetitions(160) < 160) return;
    CHECK(coverage.missing("kernel", {"lanes", "fold", "mix", "terms", "general"}).empty());
    CHECK(coverage.missing("derivative order", {"0", "1", "2"}).empty());
    CHECK(coverage.missing("layout", {"mul_ir", "ir_mul"}).empty());
    CHECK(coverage.missing("output rows", {"each", "shared", "sorted", "unsorted"}).empty());
}

TEST_CASE("random polynomials in float32 and mixed storage stay within rounding of the reference") {
    const std::uint64_t seed = first_seed() + 100'000;
    MESSAGE("seed " << seed);
    random::Limits limits;
    limits.work = 60'000;
    limits.path_work = 5'000;
    const DType all[] = {DType::float32, DType::bfloat16, DType::float64, DType::float16};
    for (int i = 0; i < repetitions(100); ++i) {
        random::Engine engine(seed + static_cast<std::uint64_t>(i));
        const Polynomial polynomial = random::polynomial(engine, limits);
        PlanOptions options{.compute = DType::float32};
        for (std::size_t o = 0; o < polynomial.operands.size(); ++o)
            options.dtypes.push_back(i % 2 == 0 ? DType::float32 : all[engine() % 4]);
        for (std::size_t o = 0; o < polynomial.operands.size(); ++o)
            if (polynomial.operands[o].role == Role::output) options.dtypes[o] = DType::float32;
        const ReferenceInputs inputs = rounded_inputs(polynomial, random::inputs(engine, polynomial, limits), options.dtypes);
        const auto reference = evaluate(polynomial, inputs);
        CAPTURE(seed + static_cast<std::uint64_t>(i));
        const PolynomialPlan plan(polynomial, options);
        const RunResult result = run_plan(plan, inputs, {.index_type = i % 3 == 0 ? IndexType::int32 : IndexType::int64});
        const double error = error_against(result, reference);
        // Outputs in which products cancel lose digits; random descriptions have such.
        if (error > 2e-5) FAIL_CHECK("error " << error << " in\n" << to_text(polynomial) << plan.explain());
    }
}
