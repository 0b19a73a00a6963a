// The kernel that was compiled with the library and reads its coefficients when it runs. Without nvcc at configuration, a GPU or its driver
// these tests say so and pass.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/operations/linear.hpp"
#include "describe/text.hpp"
#include "emit/text.hpp"
#include "gpu/can_run.hpp"
#include "run/gpu/table_kernel.hpp"
#include "support/channelwise.hpp"
#include "support/coverage.hpp"
#include "support/repetitions.hpp"
#include "support/run_gpu.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

bool can_run_tables() {
    if (gpu::table_image().empty()) MESSAGE("skipped: " << gpu::table_image_missing());
    else if (gpu::device_count() == 0) MESSAGE("skipped: " << gpu::driver_status().text);
    else return true;
    return false;
}

Polynomial some_polynomial(int order) {
    return random::gradients(convolution(Irreps("7x0e+7x1o"), Irreps("1x0e+1x1o"), Irreps("0e+1o")), order);
}

}  // namespace

TEST_CASE("the kernel that reads its coefficients compiles for every architecture") {
    if (!gpu::compiler_status().found) {
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    for (const char* target : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
        const gpu::Compiled compiled =
            gpu::compile(std::string(device_preamble()) + std::string(table_preamble()), "clebsch_table", gpu_target(target));
        CHECK(compiled.cubin.size() > 1000);
        CHECK(gpu::resources_of(compiled.log).spill_bytes <= 256);  // around its loops
    }
}

TEST_CASE("what the compiled kernel does not take, or a build without it, is said") {
    if (gpu::device_count() == 0) return;
    const gpu::PlanOptions options{.schedule = "table"};
    CHECK_THROWS_WITH_AS(gpu::PolynomialPlan(linear(Irreps("4x0e"), Irreps("3x0e")), options), doctest::Contains("not channel-wise"),
                         Error);
    if (gpu::table_image().empty())
        CHECK_THROWS_WITH_AS(gpu::PolynomialPlan(some_polynomial(0), options), doctest::Contains("no nvcc"), Error);
}

TEST_CASE("channel-wise polynomials and their derivatives run on the compiled kernel as the reference says") {
    if (!can_run_tables()) return;
    MESSAGE("seed " << first_seed(60'240));
    const DType all[] = {DType::float32, DType::float64, DType::bfloat16, DType::float16};
    Coverage coverage;
    for (int i = 0; i < repetitions(40); ++i) {
        random::Engine engine(first_seed(60'240) + static_cast<std::uint64_t>(i));
        const int order = i % 4;
        Polynomial polynomial = random::gradients(random::channelwise(engine, i % 5 == 0 ? 130 : 33, order == 3 ? 1 : 2), order);
        if (i % 6 == 5)
            for (Index& index : polynomial.indices) index.sorted = false;
        random::Limits limits;
        limits.rows = 60;
        limits.work = 1e6;
        std::vector<DType> dtypes(polynomial.operands.size(), all[i / 4 % 4]);
        if (i % 7 == 6)
            for (DType& dtype : dtypes) dtype = all[engine() % 4];
        const bool wide = std::ranges::find(dtypes, DType::float64) != dtypes.end();
        const gpu::PolynomialPlan plan(polynomial,
                                       {.dtypes = dtypes, .compute = wide ? DType::float64 : DType::float32, .schedule = "table"});
        CHECK(std::string(plan.schedule()) == "table");
        const ReferenceInputs stored = rounded_inputs(polynomial, random::inputs(engine, polynomial, limits), dtypes);
        const RunResult result = run_gpu(
            plan, stored,
            {.index_type = i % 2 == 0 ? IndexType::int64 : IndexType::int32, .padding = i % 3, .offset = i % 5, .launches = 1 + i % 2});
        CHECK(result.surroundings_intact);
        const auto reference = evaluate(polynomial, stored);
        for (std::size_t o = 0; o < dtypes.size(); ++o) {
            const Operand& operand = polynomial.operands[o];
            if (operand.role != Role::output) continue;
            coverage.count("stored", to_text(dtypes[o]));
            const double allowed = dtypes[o] == DType::bfloat16          ? 5e-3
                                   : dtypes[o] == DType::float16         ? 1e-3
                                   : wide && dtypes[o] == DType::float64 ? 1e-12
                                                                         : 5e-6;
            const double error = relative_error(result.outputs.at(operand.name), reference.at(operand.name));
            if (!(error < allowed))
                FAIL_CHECK("error " << error << " of " << operand.name << " in\n" << to_text(polynomial) << plan.explain());
        }
        coverage.add(stored);
        coverage.count("order", std::to_string(order));
        CHECK_FALSE(plan.index_error());
    }
    MESSAGE(coverage.to_text());
}

TEST_CASE("without the compiler plans say what they run on (run by the next test)" *
          doctest::skip(std::getenv("CLEBSCH_TEST_WITHOUT_COMPILER") == nullptr)) {
    if (gpu::device_count() == 0) return;
    REQUIRE_FALSE(gpu::compiler_status().found);
    if (gpu::table_image().empty()) {
        CHECK_THROWS_WITH_AS(gpu::PolynomialPlan{some_polynomial(0)}, doctest::Contains("no nvcc"), Error);
        return;
    }
    for (int order = 0; order < 3; ++order) {
        const Polynomial polynomial = some_polynomial(order);
        const gpu::PolynomialPlan plan(polynomial);
        CHECK(std::string(plan.schedule()) == "table");
        CHECK(plan.explain().find("neither CUDA's run-time compiler") != std::string::npos);
        random::Engine engine(static_cast<std::uint64_t>(order));
        random::Limits limits;
        limits.work = 1e6;
        const ReferenceInputs stored = rounded_inputs(polynomial, random::inputs(engine, polynomial, limits), plan.dtypes());
        CHECK(error_against(run_gpu(plan, stored), evaluate(polynomial, stored)) < 3e-6);
    }
    CHECK_THROWS_WITH_AS(gpu::PolynomialPlan(some_polynomial(0), {.deterministic = true}), doctest::Contains("fixed order"), Error);
    CHECK_THROWS_WITH_AS(gpu::PolynomialPlan(linear(Irreps("4x0e"), Irreps("3x0e"))), doctest::Contains("not channel-wise"), Error);
}

TEST_CASE("where there is neither compiler nor prebuilt kernel, the compiled kernel runs and says so once") {
    if (gpu::device_count() == 0) return;
    const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
    std::string folder = (std::filesystem::temp_directory_path() / "clebsch-table-XXXXXX").string();
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    const std::string log = folder + "/log", errors = folder + "/errors";
    const std::string command = "CLEBSCH_TEST_WITHOUT_COMPILER=1 CLEBSCH_NVRTC=/nowhere/libnvrtc.so CLEBSCH_CACHE= CLEBSCH_PREBUILT= '" +
                                own + "' -tc='without the compiler plans*' > " + log + " 2> " + errors;
    CHECK_MESSAGE(std::system(command.c_str()) == 0, read_file(log));
    const std::string said = read_file(errors);
    CHECK((said.find("clebsch: there is neither") != std::string::npos) == !gpu::table_image().empty());
    CHECK(said.find("clebsch:") == said.rfind("clebsch:"));
    std::filesystem::remove_all(folder);
}
