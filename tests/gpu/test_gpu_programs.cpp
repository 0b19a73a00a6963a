// Programs on a GPU against the reference. Without a GPU or its compiler these tests say so and pass.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/program_builder.hpp"
#include "describe/text.hpp"
#include "emit/gradient.hpp"
#include "emit/halves.hpp"
#include "emit/matrix.hpp"
#include "emit/tape.hpp"
#include "emit/text.hpp"
#include "gpu/can_run.hpp"
#include "run/gpu/compiler.hpp"
#include "schedule/gpu_program.hpp"
#include "support/coverage.hpp"
#include "support/magnitudes.hpp"
#include "support/network_layers.hpp"
#include "support/random_descriptions.hpp"
#include "support/repetitions.hpp"
#include "support/run_gpu_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

double error_against(const RunResult& result, const std::map<std::string, ReferenceArray>& reference,
                     const std::map<std::string, ReferenceArray>& scale) {
    if (!result.surroundings_intact) return INFINITY;
    double largest = 0;
    for (const auto& [name, numbers] : reference)
        largest = std::max(largest, error_in_magnitudes(result.outputs.at(name), numbers, scale.at(name)));
    return largest;
}

}  // namespace

TEST_CASE("matrix products compile for every architecture within their registers") {
    if (!gpu::compiler_status().found) {
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    const bool all = std::getenv("CLEBSCH_TEST_ALL") != nullptr;
    int number = 0;
    for (const GpuNumber compute : {GpuNumber::float32, GpuNumber::float64})
        for (const MatrixRows rows : all_matrix_rows)
            for (const MatrixTile& tile : matrix_tiles(compute, rows)) {
                ++number;
                int architecture = 0;
                for (const char* target : {"sm_80", "sm_90", "sm_120"}) {
                    // Every tile for one of them, slow builds a few tiles.
                    if (!all && (number % one_in(4) != 0 || number % 3 != architecture++)) continue;
                    const KernelText kernel = emit_matrix(compute, tile);
                    const gpu::Compiled compiled = gpu::compile(
                        std::string(device_preamble()) + std::string(matrix_preamble()) + kernel.text, kernel.name, gpu_target(target));
                    const gpu::KernelResources resources = gpu::resources_of(compiled.log);
                    const std::string what = std::string(target) + " " + type_name(compute) + ", tiles of " + std::to_string(tile.rows) +
                                             " x " + std::to_string(tile.columns);
                    MESSAGE(what << ": " << resources.registers << " registers, " << resources.shared_bytes << " bytes of shared memory");
                    // Around its loop the widest tile keeps a few numbers in memory.
                    CHECK(resources.spill_bytes <= (tile.columns == 128 ? 256 : 0));
                    CHECK(resources.registers * MatrixTile::threads * tile.blocks <= gpu_target(target).registers);
                }
            }
}

TEST_CASE("matrix products by half-precision parts compile for every architecture within their registers") {
    if (!gpu::compiler_status().found) {
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    for (const auto& [target, columns] : {std::pair{"sm_80", 64}, {"sm_90", 64}, {"sm_120", 32}, {"sm_120", 64}}) {
        const KernelText kernel = emit_halves(GpuNumber::float32, columns);
        const gpu::Compiled compiled =
            gpu::compile(std::string(device_preamble()) + halves_preambles() + kernel.text, kernel.name, gpu_target(target));
        const gpu::KernelResources resources = gpu::resources_of(compiled.log);
        MESSAGE(target << ", tiles of " << columns << " columns: " << resources.registers << " registers, " << resources.spill_bytes
                       << " bytes spilled, " << resources.shared_bytes << " bytes of shared memory");
        CHECK(resources.spill_bytes <= 64);
        CHECK(resources.registers * HalvesSchedule::threads * HalvesSchedule::blocks <= gpu_target(target).registers);
        CHECK(halves_shape({}, {.columns = columns}, 1, 1).shared_bytes + resources.shared_bytes <= gpu_target(target).shared_bytes);
    }
}

TEST_CASE("gradients of weights compile for every architecture within their registers") {
    if (!gpu::compiler_status().found) {
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    int number = 0;
    for (const GpuNumber compute : {GpuNumber::float32, GpuNumber::float64})
        for (const GradientTile& tile : gradient_tiles(compute)) {
            const char* target = std::array{"sm_80", "sm_90", "sm_120"}[static_cast<std::size_t>(number++ % 3)];
            const KernelText kernel = emit_gradient(compute, tile);
            const gpu::Compiled compiled =
                gpu::compile(std::string(device_preamble()) + gradient_preambles() + kernel.text, kernel.name, gpu_target(target));
            const gpu::KernelResources resources = gpu::resources_of(compiled.log);
            MESSAGE((std::string(target) + " " + type_name(compute))
                    << ", tiles of " << tile.rows << " x " << tile.columns << ": " << resources.registers << " registers, "
                    << resources.spill_bytes << " bytes spilled, " << resources.shared_bytes << " bytes of shared memory");
            CHECK(resources.spill_bytes <= (tile.columns == 128 ? 256 : 0));
            CHECK(resources.registers * GradientTile::threads * GradientTile::blocks <= gpu_target(target).registers);
        }
    const KernelText kernel = emit_gradient_sum(GpuNumber::float32);
    gpu::compile(std::string(device_preamble()) + gradient_preambles() + kernel.text, kernel.name, gpu_target("sm_90"));
}

TEST_CASE("tapes with every function compile, a thread per row and number by number") {
    if (!gpu::compiler_status().found) {
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    const std::vector<std::string> functions = {"exp",       "log",         "sin",      "cos",        "tanh",    "sigmoid", "silu",
                                                "softplus",  "erf",         "absolute", "sign",       "relu",    "step",    "power(0.5)",
                                                "power(-1)", "power(-1.5)", "power(3)", "power(0.3)", "sinc(0)", "sinc(1)", "sinc(6)"};
    for (const std::int64_t numbers : {2, 100}) {
        ProgramBuilder builder;
        const int x = builder.input("x", "row", {{numbers, 1, {}}});
        std::vector<int> outputs;
        for (std::size_t f = 0; f < functions.size(); ++f)
            outputs.push_back(builder.apply("y" + std::to_string(f), parse_function(functions[f]), x));
        const Program program = builder.finish(outputs);
        std::vector<int> nodes;
        for (std::size_t n = 0; n < program.nodes.size(); ++n) nodes.push_back(static_cast<int>(n));
        const std::vector<GpuProgramStep> steps = gpu_steps(program, nodes);
        REQUIRE(steps.size() == 1);
        CHECK(steps[0].width == (numbers == 2 ? 1 : numbers));
        for (const GpuNumber compute : {GpuNumber::float32, GpuNumber::float64})
            for (const GpuNumber storage : {GpuNumber::float32, GpuNumber::float64, GpuNumber::bfloat16, GpuNumber::float16}) {
                const std::vector<GpuNumber> stored(program.values.size(), storage);
                const KernelText kernel = emit_tape(program, tape_of(program, steps[0]), steps[0].width, stored, compute);
                CHECK_NOTHROW(gpu::compile(std::string(device_preamble()) + kernel.text, kernel.name, gpu_target("sm_90")));
            }
    }
}

TEST_CASE("functions of values without numbers make no step") {
    ProgramBuilder builder;
    const int x = builder.input("x", "row", {{4, 1, {}}}), none = builder.input("none", "row", {{0, 3, {}}});
    const Function silu = parse_function("silu");
    const Program program = builder.finish({builder.apply("y", silu, x), builder.apply("nothing", silu, none)});
    const std::vector<GpuProgramStep> steps = gpu_steps(program, {0, 1});
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].nodes == std::vector<int>{0});
    if (!can_run_on_gpu()) return;
    const gpu::ProgramPlan plan(program);
    random::Engine engine(4);
    const ReferenceInputs inputs = rounded_inputs(program, random::inputs(engine, program), plan.dtypes());
    CHECK(error_against(run_gpu(plan, inputs), evaluate(program, inputs)) < 1e-6);
}

TEST_CASE("random programs run on the GPU as the reference says") {
    if (!can_run_on_gpu()) return;
    const int count = repetitions(40);
    MESSAGE(count << " programs from seed " << first_seed(71'240));
    random::Limits limits;
    limits.smooth_only = true;
    limits.rows = 24;
    limits.work = 100'000;
    Coverage coverage;
    for (int i = 0; i < count; ++i) {
        const std::uint64_t seed = first_seed(71'240) + static_cast<std::uint64_t>(i);
        random::Engine engine(seed);
        Program program = random::program(engine, limits);
        std::vector<std::string> names;
        for (const int value : program.inputs) names.push_back(program.values[static_cast<std::size_t>(value)].name);
        if (i % 3 == 2) program = vjp(program, names);
        const ReferenceInputs inputs = random::inputs(engine, program, limits);
        coverage.add(program);
        coverage.add(inputs);
        CAPTURE(seed);
        const DType dtype = seed % 3 == 2 ? DType::float32 : DType::float64;
        const gpu::ProgramPlan plan(
            program, {.dtypes = std::vector<DType>(program.inputs.size() + program.outputs.size(), dtype), .compute_again = seed % 2 == 0});
        const ReferenceInputs stored = rounded_inputs(program, inputs, plan.dtypes());
        const RunResult result = run_gpu(plan, stored,
                                         {.index_type = seed % 2 == 0 ? IndexType::int64 : IndexType::int32,
                                          .padding = static_cast<std::int64_t>(seed % 4),
                                          .offset = static_cast<std::int64_t>(seed % 3),
                                          .launches = seed % 5 == 0 ? 2 : 1});
        const double error = error_against(result, evaluate(program, stored), magnitudes(program, stored, dtype));
        if (!(error < (dtype == DType::float64 ? 1e-13 : 4e-6)))
            FAIL_CHECK("error " << error << " in\n" << to_text(program) << plan.explain());
        CHECK_FALSE(plan.index_error());
    }
    MESSAGE(coverage.to_text());
}

TEST_CASE("layers of networks to their second derivatives, in float32 and float64, with other storage than arithmetic") {
    if (!can_run_on_gpu()) return;
    for (const DType compute : {DType::float64, DType::float32})
        for (int order = 0; order < 3; ++order)
            for (const bool mixed : {false, true}) {
                NetworkLayers layers{.features = Irreps("33x0e+20x1o"), .harmonics = Irreps("0e+1o"), .hidden = 40, .layers = 2};
                layers.layout = mixed ? Layout::mul_ir : Layout::ir_mul;
                Program program = network_layers(layers);
                for (int o = 0; o < order; ++o) program = value_and_vjp(program, std::vector<std::string>{"vectors", "layer0.mixing"});
                random::Engine engine(31);
                random::Limits limits;
                limits.rows = 300;
                limits.work = 3e7;
                std::vector<DType> dtypes(program.inputs.size() + program.outputs.size(), compute);
                if (mixed)
                    for (std::size_t i = 0; i < dtypes.size(); i += 2)
                        dtypes[i] = compute == DType::float64 ? DType::float32 : DType::float64;
                const gpu::ProgramPlan plan(program, {.dtypes = dtypes, .compute = compute});
                const ReferenceInputs stored = rounded_inputs(program, random::inputs(engine, program, limits), plan.dtypes());
                const double error = error_against(run_gpu(plan, stored), evaluate(program, stored), magnitudes(program, stored, compute));
                const bool exact = compute == DType::float64 && !mixed;
                CAPTURE(order);
                CAPTURE(mixed);
                if (!(error < (exact ? 1e-13 : 2e-6))) FAIL_CHECK("error " << error << "\n" << plan.explain());
            }
}

TEST_CASE("tapes and matrix products give the same bits every time") {
    if (!can_run_on_gpu()) return;
    ProgramBuilder builder;
    const int x = builder.input("x", "node", {{70, 1, {}}, {40, 3, {}}}, Layout::ir_mul);
    LinearOptions options;
    options.rows = "node";
    options.x.layout = options.out.layout = Layout::ir_mul;
    const Polynomial mixing = linear(Irreps("70x0e+40x1o"), Irreps("64x0e+33x1o"), options);
    const int weights = builder.input("weights", "", mixing.operands[1].segments);
    const int mixed = builder.apply("mixed", mixing, {x, weights});
    const Program program =
        value_and_vjp(builder.finish({builder.apply("out", Function{FunctionKind::silu, 0}, mixed)}), std::vector<std::string>{"x"});
    random::Engine engine(8);
    random::Limits limits;
    limits.rows = 3000;
    limits.work = 1e9;
    ReferenceInputs inputs = random::inputs(engine, program, limits);
    for (const DType dtype : {DType::float32, DType::float64}) {
        const gpu::ProgramPlan plan(program, {.dtypes = std::vector<DType>(program.inputs.size() + program.outputs.size(), dtype)});
        const ReferenceInputs stored = rounded_inputs(program, inputs, plan.dtypes());
        const RunResult first = run_gpu(plan, stored);
        for (int again = 0; again < 4; ++again) CHECK(run_gpu(plan, stored).outputs == first.outputs);
    }
}

TEST_CASE("programs on a GPU refuse what does not fit, naming it") {
    if (!can_run_on_gpu()) {
        if (gpu::device_count() == 0) CHECK_THROWS_AS(gpu::ProgramPlan(network_layers({})), Error);
        return;
    }
    const gpu::ProgramPlan plan(network_layers({.layers = 1}));
    const std::vector<std::int64_t> few = {1}, rows = {4, 3};
    CHECK_THROWS_WITH_AS(plan.workspace_bytes(few), doctest::Contains("rows of each of 2 spaces"), Error);
    const Call call{.buffers = {}, .indices = {}, .rows = rows};
    CHECK_THROWS_WITH_AS(plan.launch(call, {}, nullptr), doctest::Contains("one buffer per operand"), Error);
}
