// Several GPUs in one process. With fewer than two, or without the compiler, these tests say so and pass.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "gpu/can_run.hpp"
#include "support/channelwise.hpp"
#include "support/network_layers.hpp"
#include "support/run_gpu.hpp"
#include "support/run_gpu_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

TEST_CASE("plans of every kind run on two GPUs at once, from a thread each and from one thread in turn") {
    if (!can_run_on_gpu()) return;
    if (gpu::device_count() < 2) {
        MESSAGE("skipped: there is one GPU");
        return;
    }
    const Polynomial polynomial = random::gradients(convolution(Irreps("32x0e+32x1o"), Irreps("1x0e+1x1o"), Irreps("0e+1o")), 1);
    const Program program =
        value_and_vjp(network_layers({.features = Irreps("20x0e+9x1o"), .harmonics = Irreps("0e+1o"), .hidden = 24, .layers = 1}),
                      std::vector<std::string>{"vectors"});
    const auto largest_error = [&](int device, std::uint64_t first, std::uint64_t count) {
        const gpu::PolynomialPlan plan(polynomial, {.device = device}),
            deterministic(polynomial, {.device = device, .deterministic = true});
        const gpu::ProgramPlan whole(program, {.device = device});
        double largest = 0;
        for (std::uint64_t seed = first; seed < first + count; ++seed) {
            random::Engine engine(seed);
            random::Limits limits;
            limits.work = 1e6;
            const ReferenceInputs inputs = rounded_inputs(polynomial, random::inputs(engine, polynomial, limits), plan.dtypes());
            const auto reference = evaluate(polynomial, inputs);
            for (const gpu::PolynomialPlan* one : {&plan, &deterministic})
                largest = std::max(largest, error_against(run_gpu(*one, inputs), reference));
            const ReferenceInputs given = rounded_inputs(program, random::inputs(engine, program, limits), whole.dtypes());
            largest = std::max(largest, error_against(run_gpu(whole, given), evaluate(program, given)));
        }
        return largest;
    };
    double errors[2] = {INFINITY, INFINITY};
    std::thread first([&] { errors[0] = largest_error(0, 0, 8); }), second([&] { errors[1] = largest_error(1, 100, 8); });
    first.join();
    second.join();
    for (const double error : errors) CHECK(error < 2e-5);
    for (const int device : {1, 0, 1}) CHECK(largest_error(device, 200, 2) < 2e-5);
}
