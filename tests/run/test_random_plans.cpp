// Plans against the reference on random descriptions, each through every kernel family. With the random programs of test_program_plan.cpp a
// run of the tests meets more than a thousand of them.
#include <doctest/doctest.h>

#include <random>

#include "describe/derivative.hpp"
#include "describe/text.hpp"
#include "support/coverage.hpp"
#include "support/magnitudes.hpp"
#include "support/random_descriptions.hpp"
#include "support/repetitions.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

constexpr int usual_polynomials = 600, usual_storages = 600;

/// The largest error of any output, relative to the magnitudes of its terms; infinite if anything outside the outputs was touched.
double error_against(const RunResult& result, const std::map<std::string, ReferenceArray>& reference,
                     const std::map<std::string, ReferenceArray>& scale) {
    if (!result.surroundings_intact) return INFINITY;
    double largest = 0;
    for (const auto& [name, numbers] : reference)
        largest = std::max(largest, error_in_magnitudes(result.outputs.at(name), numbers, scale.at(name)));
    return largest;
}

std::vector<std::string> input_names(const Polynomial& polynomial) {
    std::vector<std::string> names;
    for (const Operand& operand : polynomial.operands)
        if (operand.role == Role::input) names.push_back(operand.name);
    return names;
}

random::Limits small() {
    random::Limits limits;
    limits.work = 60'000;
    limits.path_work = 5'000;
    return limits;
}

/// What any few hundred random polynomials must have met: e3nn's channel modes and the modes of their derivatives, every row space and way
/// to address it, both layouts.
void check_descriptions(const Coverage& coverage) {
    CHECK(joined(coverage.missing(
              "mode", {"u,v,uvw->w", "u,v,uv->u", "u,v,uv->v", "u,u,uv->v", "u,u,u->u", "u,v,uv->uv", "u,v,(u<v)->(u<v)", "u,v,(u<v)w->w",
                       "u,v,w->uvw", "u,v->u", "u,u->u", "u,v->uv", "u,v->(u<v)", "u,->u", "u,,u->u", "u->u", "->"})) == "");
    CHECK(joined(coverage.missing("iteration space", {"edge", "node", "row", "''"})) == "");
    for (const char* role : {"input rows", "output rows"})
        CHECK(joined(coverage.missing(role, {"each", "shared", "sorted", "unsorted", "sorted chain of 2", "unsorted chain of 2"})) == "");
    CHECK(joined(coverage.missing("layout", {"mul_ir", "ir_mul"})) == "");
    CHECK(joined(coverage.missing("index", {"without masks", "with masked rows"})) == "");
}

}  // namespace

TEST_CASE("random polynomials and their derivatives run as the reference says, whichever family runs them") {
    const std::uint64_t seed = first_seed(20240);
    const int count = repetitions(usual_polynomials);
    MESSAGE(count << " polynomials from seed " << seed);
    Coverage coverage;
    double largest = 0;
    for (int i = 0; i < count; ++i) {
        random::Engine engine(seed + static_cast<std::uint64_t>(i));
        Polynomial polynomial = random::polynomial(engine, small());
        const int order = i % 8 == 7 ? 2 : i % 2;
        for (int k = 0; k < order; ++k) polynomial = vjp(polynomial, input_names(polynomial));
        coverage.add(polynomial);
        coverage.count("derivative order", std::to_string(order));
        const ReferenceInputs inputs = random::inputs(engine, polynomial, small());
        coverage.add(inputs);
        const auto reference = evaluate(polynomial, inputs), scale = magnitudes(polynomial, inputs, DType::float64);
        CAPTURE(seed + static_cast<std::uint64_t>(i));
        for (const char* family : {"", "lanes", "fold", "mix", "terms", "general"}) {
            CAPTURE(std::string(family));
            PlanOptions options{.family = family};
            options.dtypes.assign(polynomial.operands.size(), DType::float64);
            const PolynomialPlan plan(polynomial, options);
            for (const char* kernel : {"lanes", "fold", "mix", "terms", "general"})
                if (plan.explain().find(std::string("\n") + kernel + ": ") != std::string::npos) coverage.count("kernel", kernel);
            ThreadPool pool(2);
            const RunResult alone = run_plan(plan, inputs, {.padding = i % 4, .shift = i % 5 == 4 ? 4U : 0U});
            const double error = error_against(alone, reference, scale);
            largest = std::max(largest, error);
            if (error > 1e-14) FAIL_CHECK("error " << error << " in\n" << to_text(polynomial) << plan.explain());
            CHECK(run_plan(plan, inputs, {.parallel_for = pool.parallel_for()}).outputs == alone.outputs);
        }
    }
    MESSAGE(coverage.to_text() << "largest error: " << largest);
    if (count < usual_polynomials) return;
    check_descriptions(coverage);
    CHECK(joined(coverage.missing("kernel", {"lanes", "fold", "mix", "terms", "general"})) == "");
    CHECK(joined(coverage.missing("derivative order", {"0", "1", "2"})) == "");
}

TEST_CASE("random polynomials and their derivatives in float32 and mixed storage stay within rounding of the reference") {
    const std::uint64_t seed = first_seed(20240) + 100'000;
    const int count = repetitions(usual_storages);
    MESSAGE(count << " polynomials from seed " << seed);
    const DType all[] = {DType::float32, DType::bfloat16, DType::float64, DType::float16};
    Coverage coverage;
    double largest = 0;
    for (int i = 0; i < count; ++i) {
        random::Engine engine(seed + static_cast<std::uint64_t>(i));
        Polynomial polynomial = random::polynomial(engine, small());
        const int order = i % 8 == 7 ? 2 : i % 8 >= 4 ? 1 : 0;
        for (int k = 0; k < order; ++k) polynomial = vjp(polynomial, input_names(polynomial));
        coverage.count("derivative order", std::to_string(order));
        PlanOptions options{.compute = DType::float32};
        for (const Operand& operand : polynomial.operands)
            options.dtypes.push_back(operand.role == Role::output || i % 2 == 0 ? DType::float32 : all[engine() % 4]);
        const ReferenceInputs inputs = rounded_inputs(polynomial, random::inputs(engine, polynomial, small()), options.dtypes);
        coverage.add(polynomial);
        coverage.add(inputs);
        for (const DType dtype : options.dtypes) coverage.count("dtype", to_text(dtype));
        const auto reference = evaluate(polynomial, inputs), scale = magnitudes(polynomial, inputs, DType::float32);
        CAPTURE(seed + static_cast<std::uint64_t>(i));
        const PolynomialPlan plan(polynomial, options);
        const RunResult result = run_plan(plan, inputs, {.index_type = i % 3 == 0 ? IndexType::int32 : IndexType::int64});
        const double error = error_against(result, reference, scale);
        largest = std::max(largest, error);
        if (error > 2e-6) FAIL_CHECK("error " << error << " in\n" << to_text(polynomial) << plan.explain());
    }
    MESSAGE(coverage.to_text() << "largest error: " << largest);
    if (count < usual_storages) return;
    check_descriptions(coverage);
    CHECK(joined(coverage.missing("dtype", {"float32", "float64", "bfloat16", "float16"})) == "");
    CHECK(joined(coverage.missing("derivative order", {"0", "1", "2"})) == "");
}
