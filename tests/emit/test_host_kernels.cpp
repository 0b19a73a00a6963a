// Emitted kernels, run on the host thread by thread, against the reference.
#include <doctest/doctest.h>

#include <random>

#include "describe/text.hpp"
#include "emit/emitted.hpp"
#include "support/channelwise.hpp"
#include "support/coverage.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

void compare(const std::vector<EmittedCase>& cases) {
    const auto results = run_emitted(cases);
    for (std::size_t i = 0; i < cases.size(); ++i)
        for (const auto& [name, numbers] : evaluate(cases[i].polynomial, cases[i].inputs)) {
            const double error = relative_error(results[i].at(name), numbers);
            if (error > 1e-11)
                FAIL_CHECK("case " << i << ", output " << name << ": error " << error << " in\n" << to_text(cases[i].polynomial));
        }
}

}  // namespace

TEST_CASE("general kernels of random polynomials and their derivatives give the reference's numbers") {
    if (!has_host_compiler()) return;
    constexpr std::uint64_t seed = 70'240;
    MESSAGE("seed " << seed);
    random::Limits limits;
    limits.work = 6'000;
    limits.path_work = 1'000;
    limits.rows = 12;
    std::vector<EmittedCase> cases;
    Coverage coverage;
    for (std::uint64_t i = 0; i < 16; ++i) {
        random::Engine engine(seed + i);
        const Polynomial polynomial = random::gradients(random::polynomial(engine, limits), i % 8 == 7 ? 2 : static_cast<int>(i % 2));
        coverage.add(polynomial);
        cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "general"});
    }
    MESSAGE(coverage.to_text());
    compare(cases);
}

TEST_CASE("stream kernels of convolutions and products give the reference's numbers on ragged, masked graphs") {
    if (!has_host_compiler()) return;
    constexpr std::uint64_t seed = 80'240;
    MESSAGE("seed " << seed);
    std::vector<EmittedCase> cases;
    Coverage coverage;
    for (std::uint64_t i = 0; cases.size() < 9 && i < 60; ++i) {
        random::Engine engine(seed + i);
        const int order = static_cast<int>(cases.size() % 3);
        const Polynomial polynomial = random::gradients(random::channelwise(engine, cases.size() % 2 == 0 ? 40 : 32, 2), order);
        GpuProblem problem{.polynomial = polynomial,
                           .storage = std::vector<GpuNumber>(polynomial.operands.size(), GpuNumber::float64),
                           .compute = GpuNumber::float64,
                           .target = gpu_target("sm_90")};
        std::string why_not;
        if (!schedule_stream(problem, why_not)) continue;
        if (cases.size() % 3 != 2 && polynomial.indices.empty()) continue;  // most of them on graphs
        random::Limits limits;
        limits.rows = 70;
        limits.work = 4e5;
        cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "stream"});
        coverage.add(polynomial);
        coverage.add(cases.back().inputs);
        coverage.count("order", std::to_string(order));
    }
    CHECK(cases.size() == 9);
    MESSAGE(coverage.to_text());
    compare(cases);
}
