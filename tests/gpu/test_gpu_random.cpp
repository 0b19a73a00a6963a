// Random descriptions on the GPU for as long as somebody likes: CLEBSCH_TEST_SECONDS in the environment says how long (1200 is what a
// release takes), CLEBSCH_TEST_SEED from which seed on. Without a GPU or its compiler only what would be drawn is tested.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>

#include "base/error.hpp"
#include "describe/text.hpp"
#include "gpu/can_run.hpp"
#include "support/gpu_draw.hpp"
#include "support/magnitudes.hpp"
#include "support/repetitions.hpp"
#include "support/run_gpu.hpp"
#include "support/run_gpu_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Rounding of the arithmetic, in units of magnitudes, and of an output as it is stored.
double allowed_error(DType compute, DType stored) {
    const double sums = compute == DType::float64 ? 1e-13 : 4e-6;
    return sums + (stored == DType::bfloat16 ? 4e-3 : stored == DType::float16 ? 5e-4 : stored == DType::float32 ? 1e-7 : 0);
}

std::map<std::string, DType> output_dtypes(const Polynomial& polynomial, const std::vector<DType>& dtypes) {
    std::map<std::string, DType> outputs;
    for (std::size_t o = 0; o < dtypes.size(); ++o)
        if (polynomial.operands[o].role == Role::output) outputs[polynomial.operands[o].name] = dtypes[o];
    return outputs;
}
std::map<std::string, DType> output_dtypes(const Program& program, const std::vector<DType>& dtypes) {
    std::map<std::string, DType> outputs;
    for (std::size_t o = 0; o < program.outputs.size(); ++o)
        outputs[program.values[static_cast<std::size_t>(program.outputs[o])].name] = dtypes[program.inputs.size() + o];
    return outputs;
}

/// Whether float16, which ends at 65,504, holds such numbers.
bool fits_float16(const ReferenceArray& numbers) {
    return std::ranges::all_of(numbers, [](long double number) { return std::fabs(number) < 6e4L; });
}

/// Where numbers differ by more than rounding, for whoever looks for the reason.
std::string differences(const ReferenceArray& found, const ReferenceArray& expected, const ReferenceArray& scale, double allowed) {
    std::string text;
    std::size_t count = 0, last = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (std::fabs(found[i] - expected[i]) <= 4 * allowed * scale[i]) continue;
        if (count++ < 12)
            text += "\n  number " + std::to_string(i) + ": " + std::to_string(static_cast<double>(found[i])) + ", expected " +
                    std::to_string(static_cast<double>(expected[i]));
        last = i;
    }
    return ": " + std::to_string(count) + " of " + std::to_string(found.size()) + " numbers, the last one " + std::to_string(last) + text;
}

/// What is wrong with a plan's numbers; empty: nothing.
template <class Plan, class Description>
std::string compare(const Plan& plan, const Description& description, const GpuDraw& draw) {
    for (const ReferenceInputs& inputs : draw.inputs) {
        const RunResult result = run_gpu(plan, inputs, draw.run);
        if (!result.surroundings_intact) return "something beside the outputs was written";
        if (plan.index_error()) return "an index was reported";
        const auto reference = evaluate(description, inputs), scale = magnitudes(description, inputs, draw.compute);
        for (const auto& [name, dtype] : output_dtypes(description, draw.dtypes)) {
            if (dtype == DType::float16 && !fits_float16(reference.at(name))) continue;
            const double error = error_in_magnitudes(result.outputs.at(name), reference.at(name), scale.at(name));
            const double allowed = allowed_error(draw.compute, dtype);
            if (error < allowed) continue;
            const std::string text = "error " + std::to_string(error) + " of " + name +
                                     differences(result.outputs.at(name), reference.at(name), scale.at(name), allowed);
            int again = 0;
            for (int launch = 0; launch < 5; ++launch)
                again += run_gpu(plan, inputs, draw.run).outputs.at(name) == result.outputs.at(name) ? 1 : 0;
            return text + "\n" + std::to_string(again) + " of 5 further launches gave the same numbers,";
        }
        if (draw.deterministic && run_gpu(plan, inputs, draw.run).outputs != result.outputs) return "other bits in a second launch";
    }
    return "";
}

/// What is wrong with a draw; empty: nothing.
std::string check_draw(const GpuDraw& draw, Coverage& coverage) {
    if (const auto* program = std::get_if<Program>(&draw.description)) {
        const gpu::ProgramPlan plan(
            *program,
            {.dtypes = draw.dtypes, .compute = draw.compute, .compute_again = draw.compute_again, .deterministic = draw.deterministic});
        const std::string wrong = compare(plan, *program, draw);
        return wrong.empty() ? wrong : wrong + " in\n" + to_text(*program) + plan.explain();
    }
    const auto& polynomial = std::get<Polynomial>(draw.description);
    gpu::PlanOptions options{
        .dtypes = draw.dtypes, .compute = draw.compute, .schedule = draw.schedule, .deterministic = draw.deterministic};
    const auto planned = [&] {
        try {
            return gpu::PolynomialPlan(polynomial, options);
        } catch (const Error& error) {
            if (!draw.schedule.starts_with("stream") || error.kind() != ErrorKind::unsupported) throw;
            options.schedule = "";  // a forced schedule may not take it
            return gpu::PolynomialPlan(polynomial, options);
        }
    };
    const gpu::PolynomialPlan plan = planned();
    coverage.count("schedule", plan.schedule());
    const std::string wrong = compare(plan, polynomial, draw);
    return wrong.empty() ? wrong : wrong + " in\n" + to_text(polynomial) + plan.explain();
}

std::string text_of(const GpuDraw& draw) {
    std::string text = "arithmetic " + std::string(to_text(draw.compute)) + ", storage";
    for (const DType dtype : draw.dtypes) text += std::string(" ") + to_text(dtype);
    return text + (draw.deterministic ? ", deterministic" : "") + ", padding " + std::to_string(draw.run.padding) + ", offset " +
           std::to_string(draw.run.offset) + ", schedule '" + draw.schedule + "'";
}

}  // namespace

TEST_CASE("random descriptions for GPUs have every dtype, layout, order, index, mask and multiplicity among them") {
    Coverage coverage;
    for (std::uint64_t seed = 0; seed < 300; ++seed) add(coverage, draw_for_gpu(first_seed(7'000) + seed));
    CHECK(lacking(coverage) == "");
}

TEST_CASE("random descriptions on the GPU for CLEBSCH_TEST_SECONDS" * doctest::skip(std::getenv("CLEBSCH_TEST_SECONDS") == nullptr)) {
    if (!can_run_on_gpu()) return;
    const double seconds = std::strtod(std::getenv("CLEBSCH_TEST_SECONDS"), nullptr);
    const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    const std::uint64_t seed = first_seed(now + static_cast<std::uint64_t>(getpid()) * 1'000'003);
    MESSAGE("seed " << seed);
    const Clock::time_point start = Clock::now();
    Coverage coverage;
    long count = 0, wrong = 0;
    for (; seconds_since(start) < seconds; ++count) {
        const std::uint64_t own = seed + static_cast<std::uint64_t>(count);
        const GpuDraw draw = draw_for_gpu(own);
        add(coverage, draw);
        std::string found;
        try {
            found = check_draw(draw, coverage);
        } catch (const std::exception& error) {
            const std::string text = std::visit([](const auto& known) { return to_text(known); }, draw.description);
            found = std::string("thrown: ") + error.what() + "\nin\n" + text;
        }
        if (found.empty()) continue;
        ++wrong;
        FAIL_CHECK("seed " << own << " (" << text_of(draw) << "): " << found);
    }
    const double rate = static_cast<double>(count) / seconds_since(start);
    MESSAGE(count << " descriptions from seed " << seed << " in " << seconds_since(start) << " s, " << rate << " a second, " << wrong
                  << " wrong\n"
                  << coverage.to_text());
    if (count >= 300) CHECK(lacking(coverage) == "");
}
