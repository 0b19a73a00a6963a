// Sums in a fixed order on a GPU: the same bits every time, and the reference's numbers. Without a GPU or its compiler these tests say so
// and pass.
#include <doctest/doctest.h>

#include "describe/operations/linear.hpp"
#include "describe/text.hpp"
#include "gpu/can_run.hpp"
#include "support/channelwise.hpp"
#include "support/coverage.hpp"
#include "support/magnitudes.hpp"
#include "support/network_layers.hpp"
#include "support/repetitions.hpp"
#include "support/run_gpu.hpp"
#include "support/run_gpu_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

/// Several launches: equal bits, and close to the reference.
template <class Plan, class Description>
void check_repeated(const Plan& plan, const Description& description, const ReferenceInputs& inputs, double allowed, int launches = 3,
                    const DeviceRun& options = {}) {
    const ReferenceInputs stored = rounded_inputs(description, inputs, plan.dtypes());
    const RunResult first = run_gpu(plan, stored, options);
    for (int again = 1; again < launches; ++again) CHECK(run_gpu(plan, stored, options).outputs == first.outputs);
    const double error = error_against(first, evaluate(description, stored));
    if (!(error < allowed)) FAIL_CHECK("error " << error << " in\n" << to_text(description) << plan.explain());
    CHECK_FALSE(plan.index_error());
}

/// A graph with a node of very many edges, masked ones, and nodes without edges; `sorted`: receivers in order.
ReferenceInputs graph(random::Engine& engine, const Polynomial& polynomial, std::int64_t edges, std::int64_t nodes, std::int64_t hub) {
    ReferenceInputs inputs;
    inputs.rows = {{"edge", edges}, {"node", nodes}};
    std::vector<std::int64_t>&receiver = inputs.indices["receiver"], &sender = inputs.indices["sender"];
    for (std::int64_t e = 0; e < edges; ++e) {
        const std::int64_t node = e < hub ? 3 : 4 + (e - hub) * (nodes - 6) / std::max<std::int64_t>(1, edges - hub);
        receiver.push_back(e % 11 == 3 || (e > 700 && e < 900) ? -1 : node);
        sender.push_back(e % 13 == 5 ? -1 : e % 3 == 0 ? 7 : static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(nodes)));
    }
    std::normal_distribution<double> normal;
    for (const Operand& operand : polynomial.operands) {
        if (operand.role != Role::input) continue;
        const std::string space = polynomial.space_of(operand);
        const std::int64_t rows = space.empty() ? 1 : space == "edge" ? edges : nodes;
        for (std::int64_t i = 0; i < rows * operand.size(); ++i) inputs.arrays[operand.name].push_back(normal(engine));
    }
    return inputs;
}

}  // namespace

TEST_CASE("deterministic: random polynomials and their derivatives") {
    if (!can_run_on_gpu()) return;
    MESSAGE("seed " << first_seed(93'000));
    Coverage coverage;
    for (int i = 0; i < repetitions(60); ++i) {
        const std::uint64_t seed = first_seed(93'000) + static_cast<std::uint64_t>(i);
        random::Engine engine(seed);
        random::Limits limits;
        limits.work = i % 2 == 0 ? 60'000 : 4e6;
        limits.path_work = 5'000;
        const int order = i % 7 == 6 ? 2 : i / 2 % 2;
        const Polynomial polynomial =
            random::gradients(i % 2 == 0 ? random::polynomial(engine, limits) : random::channelwise(engine, 48, 2), order);
        const ReferenceInputs inputs = random::inputs(engine, polynomial, limits);
        coverage.add(polynomial);
        coverage.add(inputs);
        CAPTURE(seed);
        const bool wide = i % 3 != 2;
        const DType dtype = wide ? DType::float64 : DType::float32;
        const gpu::PolynomialPlan plan(
            polynomial, {.dtypes = std::vector<DType>(polynomial.operands.size(), dtype), .compute = dtype, .deterministic = true});
        coverage.count("schedule", plan.schedule());
        check_repeated(plan, polynomial, inputs, wide ? 1e-11 : 2e-5, 2,
                       {.index_type = i % 2 == 0 ? IndexType::int64 : IndexType::int32, .padding = i % 4, .offset = i % 3});
    }
    MESSAGE(coverage.to_text());
}

TEST_CASE("deterministic: a node with 50,000 edges, masked edges, nodes without edges, to second derivatives") {
    if (!can_run_on_gpu()) return;
    for (const char* irreps : {"32x0e+32x1o", "20x0e+5x1o"})
        for (int order = 0; order < 3; ++order)
            for (const char* schedule : {"", "general"}) {
                random::Engine engine(11);
                const Polynomial polynomial = random::gradients(convolution(Irreps(irreps), Irreps("1x0e+1x1o"), Irreps("0e+1o")), order);
                const bool hub = order == 0 && irreps[0] == '3';  // the reference is slow
                const ReferenceInputs inputs = graph(engine, polynomial, hub ? 52'000 : 6'000, 50, hub ? 50'000 : 4'500);
                const gpu::PolynomialPlan plan(polynomial, {.schedule = schedule, .deterministic = true});
                CAPTURE(order);
                CAPTURE(std::string(schedule));
                check_repeated(plan, polynomial, inputs, 2e-5, 5);
            }
}

TEST_CASE("deterministic: receivers that are not sorted, weights shared by all rows") {
    if (!can_run_on_gpu()) return;
    for (int order = 0; order < 3; ++order) {
        ConvolutionOptions options;
        options.weights.rows = shared_row();
        Polynomial polynomial = convolution(Irreps("32x0e+32x1o"), Irreps("1x0e+1x1o"), Irreps("0e+1o"), options);
        for (Index& index : polynomial.indices) index.sorted = false;
        polynomial = random::gradients(polynomial, order);
        random::Engine engine(12);
        ReferenceInputs inputs = graph(engine, polynomial, 6'000, 50, 3'000);
        std::ranges::shuffle(inputs.indices["receiver"], engine);
        for (const bool deterministic : {true, false}) {
            const gpu::PolynomialPlan plan(polynomial, {.deterministic = deterministic});
            CAPTURE(order);
            check_repeated(plan, polynomial, inputs, 5e-5, deterministic ? 5 : 1);
        }
    }
}

TEST_CASE("deterministic: 16-bit storage is rounded once") {
    if (!can_run_on_gpu()) return;
    for (const DType dtype : {DType::bfloat16, DType::float16}) {
        random::Engine engine(13);
        const Polynomial polynomial = random::gradients(convolution(Irreps("32x0e+32x1o"), Irreps("1x0e+1x1o"), Irreps("0e+1o")), 1);
        const ReferenceInputs inputs = graph(engine, polynomial, 6'000, 50, 4'500);
        const gpu::PolynomialPlan plan(
            polynomial,
            {.dtypes = std::vector<DType>(polynomial.operands.size(), dtype), .compute = DType::float32, .deterministic = true});
        check_repeated(plan, polynomial, inputs, dtype == DType::bfloat16 ? 4e-3 : 5e-4);
    }
}

TEST_CASE("deterministic: no edges, no nodes, one edge, millions of nodes") {
    if (!can_run_on_gpu()) return;
    const Polynomial polynomial = random::gradients(convolution(Irreps("8x0e"), Irreps("1x0e"), Irreps("0e")), 1);
    const gpu::PolynomialPlan plan(polynomial, {.deterministic = true});
    for (const auto& [given_edges, nodes] : {std::pair{0, 5}, {0, 0}, {1, 1}, {900, 70'000}}) {
        const auto& edges = given_edges;
        random::Engine engine(14);
        ReferenceInputs inputs;
        inputs.rows = {{"edge", edges}, {"node", nodes}};
        for (std::int64_t e = 0; e < edges; ++e) {
            inputs.indices["receiver"].push_back(e * nodes / edges);
            inputs.indices["sender"].push_back(static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(nodes)));
        }
        inputs.indices["receiver"];
        inputs.indices["sender"];
        std::normal_distribution<double> normal;
        for (const Operand& operand : polynomial.operands)
            if (operand.role == Role::input) {
                ReferenceArray& numbers = inputs.arrays[operand.name];
                for (std::int64_t i = 0; i < (polynomial.space_of(operand) == "edge" ? edges : nodes) * operand.size(); ++i)
                    numbers.push_back(normal(engine));
            }
        CAPTURE(edges);
        check_repeated(plan, polynomial, inputs, 1e-5, 2);
    }
}

TEST_CASE("deterministic: programs, matrix products' weights among what is differentiated by") {
    if (!can_run_on_gpu()) return;
    for (int order = 1; order < 3; ++order) {
        Program program = network_layers({.features = Irreps("33x0e+20x1o"), .harmonics = Irreps("0e+1o"), .hidden = 40, .layers = 1});
        for (int o = 0; o < order; ++o) program = value_and_vjp(program, std::vector<std::string>{"vectors", "layer0.mixing"});
        random::Engine engine(31);
        random::Limits limits;
        limits.rows = 300;
        limits.work = 3e7;
        const ReferenceInputs inputs = random::inputs(engine, program, limits);
        const gpu::ProgramPlan plan(program, {.deterministic = true});
        const ReferenceInputs stored = rounded_inputs(program, inputs, plan.dtypes());
        const RunResult first = run_gpu(plan, stored);
        for (int again = 0; again < 4; ++again) CHECK(run_gpu(plan, stored).outputs == first.outputs);
        double largest = 0;
        const auto scale = magnitudes(program, stored, DType::float32);
        for (const auto& [name, numbers] : evaluate(program, stored))
            largest = std::max(largest, error_in_magnitudes(first.outputs.at(name), numbers, scale.at(name)));
        CHECK(largest < 2e-6);
    }
}

TEST_CASE("a sorted index that decreases is reported") {
    if (!can_run_on_gpu()) return;
    const Polynomial polynomial = convolution(Irreps("32x0e"), Irreps("1x0e"), Irreps("0e"));
    random::Engine engine(15);
    ReferenceInputs inputs = graph(engine, polynomial, 300, 20, 20);
    for (const bool deterministic : {false, true}) {
        const gpu::PolynomialPlan plan(polynomial, {.schedule = "stream", .deterministic = deterministic});
        run_gpu(plan, inputs);
        CHECK_FALSE(plan.index_error());
        ReferenceInputs unsorted = inputs;
        unsorted.indices["receiver"][100] = 19;
        run_gpu(plan, unsorted);
        CHECK(plan.index_error());
    }
}
