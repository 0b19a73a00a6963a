// Planned programs compute what the reference says: random ones, their derivatives, any storage, any number of threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/radial_network.hpp"
#include "describe/text.hpp"
#include "support/coverage.hpp"
#include "support/magnitudes.hpp"
#include "support/random_descriptions.hpp"
#include "support/repetitions.hpp"
#include "support/run_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

constexpr int usual_programs = 400;

double largest_error(const RunResult& result, const std::map<std::string, ReferenceArray>& reference) {
    CHECK(result.surroundings_intact);
    double largest = 0;
    for (const auto& [name, numbers] : reference) largest = std::max(largest, relative_error(result.outputs.at(name), numbers));
    return largest;
}

std::vector<DType> stored_as(const Program& program, DType dtype) {
    return std::vector<DType>(program.inputs.size() + program.outputs.size(), dtype);
}

std::vector<std::string> input_names(const Program& program) {
    std::vector<std::string> names;
    for (const int input : program.inputs) names.push_back(program.values[static_cast<std::size_t>(input)].name);
    return names;
}

/// Whether a node reads the value.
bool is_read(const Program& program, int value) {
    return std::ranges::any_of(program.nodes, [&](const Node& node) {
        if (const auto* function = std::get_if<FunctionNode>(&node)) return function->input == value;
        const auto& applied = std::get<PolynomialNode>(node);
        for (std::size_t i = 0; i < applied.arguments.size(); ++i)
            if (applied.arguments[i] == value && applied.polynomial.operands[i].role == Role::input) return true;
        return false;
    });
}

random::Limits smooth() {
    random::Limits limits;
    limits.smooth_only = true;
    limits.rows = 24;
    limits.work = 100'000;
    return limits;
}

}  // namespace

TEST_CASE("random programs and their derivatives agree with the reference to rounding, fused and node by node") {
    const std::uint64_t seed = first_seed(0);
    const int count = repetitions(usual_programs);
    MESSAGE(count << " programs from seed " << seed);
    Coverage coverage;
    double largest = 0;
    for (int i = 0; i < count; ++i) {
        random::Engine engine(seed + static_cast<std::uint64_t>(i));
        Program program = random::program(engine, smooth());
        const int order = i % 16 == 15 ? 2 : i % 4 == 3 ? 1 : 0;
        for (int k = 0; k < order; ++k) program = vjp(program, input_names(program));
        const DType dtype = i % 4 == 2 ? DType::float32 : DType::float64;
        const double bound = dtype == DType::float32 ? 2e-6 : 1e-14;
        const ReferenceInputs inputs = rounded_inputs(program, random::inputs(engine, program, smooth()), stored_as(program, dtype));
        coverage.add(program);
        coverage.add(inputs);
        coverage.count("derivative order", std::to_string(order));
        coverage.count("dtype", to_text(dtype));
        const auto reference = evaluate(program, inputs), scale = magnitudes(program, inputs, dtype);
        CAPTURE(seed + static_cast<std::uint64_t>(i));
        for (const bool fuse : {false, true}) {
            const ProgramPlan plan(program,
                                   {.dtypes = stored_as(program, dtype), .compute = {}, .instruction_set = {}, .family = "", .fuse = fuse});
            CHECK(plan.compute() == (program.inputs.empty() && program.outputs.empty() ? DType::float32 : dtype));
            const RunOptions options{.padding = i % 3, .index_type = IndexType::int32, .parallel_for = {}, .shift = i % 5 == 4 ? 4U : 0U};
            const RunResult result = run_program(plan, inputs, options);
            CHECK(result.surroundings_intact);
            for (const auto& [name, numbers] : reference) {
                const double error = error_in_magnitudes(result.outputs.at(name), numbers, scale.at(name));
                largest = std::max(largest, error / bound);
                if (error > bound)
                    FAIL_CHECK("error " << error << " of " << name << std::string(fuse ? ", fused, in\n" : " in\n") << to_text(program));
            }
        }
    }
    MESSAGE(coverage.to_text() << "largest error: " << largest << " of its bound");
    if (count < usual_programs) return;
    CHECK(joined(coverage.missing("derivative order", {"0", "1", "2"})) == "");
    CHECK(joined(coverage.missing("dtype", {"float32", "float64"})) == "");
    CHECK(joined(coverage.missing("layout", {"mul_ir", "ir_mul"})) == "");
    CHECK(joined(coverage.missing("iteration space", {"edge", "node", "graph", "''"})) == "");
    CHECK(joined(coverage.missing("function",
                                  {"exp", "log", "sin", "cos", "tanh", "sigmoid", "silu", "softplus", "erf", "power", "sinc"})) == "");
}

TEST_CASE("arrays may be stored in any type: 16-bit numbers are computed in float32, float32 in float64 if asked") {
    RadialOptions options;
    options.outputs = 24;
    const Program program = radial_network(options);
    random::Engine engine(3);
    for (const DType dtype : {DType::bfloat16, DType::float16, DType::float32, DType::float64}) {
        const std::vector<DType> dtypes = stored_as(program, dtype);
        ReferenceInputs inputs = random::inputs(engine, program);
        for (long double& length : inputs.arrays.at(program.values[static_cast<std::size_t>(program.inputs[0])].name))
            length = 0.5L + std::fabs(length);
        inputs = rounded_inputs(program, inputs, dtypes);
        const auto reference = evaluate(program, inputs);
        CAPTURE(to_text(dtype));
        const double bound = dtype == DType::bfloat16 ? 4e-3 : dtype == DType::float16 ? 5e-4 : dtype == DType::float32 ? 2e-6 : 1e-13;
        CHECK(largest_error(run_program(ProgramPlan(program, {.dtypes = dtypes}), inputs, {.padding = 3}), reference) < bound);
        const ProgramPlan wide(program, {.dtypes = dtypes, .compute = DType::float64});
        CHECK(wide.compute() == DType::float64);
        CHECK(largest_error(run_program(wide, inputs), reference) <
              std::min(bound, 1e-7) + (dtype == DType::bfloat16 || dtype == DType::float16 ? bound : 0));
    }
}

TEST_CASE("random programs and their derivatives with arrays in any type, fused and node by node") {
    const std::uint64_t seed = first_seed(0) + 200'000;
    const int count = repetitions(120);
    const DType all[] = {DType::float32, DType::bfloat16, DType::float64, DType::float16};
    Coverage coverage;
    for (int i = 0; i < count; ++i) {
        random::Engine engine(seed + static_cast<std::uint64_t>(i));
        Program program = random::program(engine, smooth());
        const int order = i % 8 == 7 ? 2 : i % 4 == 3 ? 1 : 0;
        for (int k = 0; k < order; ++k) program = vjp(program, input_names(program));
        ProgramOptions options;
        options.compute = DType::float32;
        for (std::size_t a = 0; a < program.inputs.size() + program.outputs.size(); ++a) {
            const bool read_on = a >= program.inputs.size() && is_read(program, program.outputs[a - program.inputs.size()]);
            options.dtypes.push_back(read_on ? DType::float32 : all[engine() % 4]);  // what nodes read from an output is what is stored
        }
        const ReferenceInputs inputs = rounded_inputs(program, random::inputs(engine, program, smooth()), options.dtypes);
        const auto reference = evaluate(program, inputs), scale = magnitudes(program, inputs, DType::float32);
        coverage.count("derivative order", std::to_string(order));
        CAPTURE(seed + static_cast<std::uint64_t>(i));
        for (const bool fuse : {false, true}) {
            options.fuse = fuse;
            const RunResult result = run_program(ProgramPlan(program, options), inputs, {.padding = i % 3});
            CHECK(result.surroundings_intact);
            for (std::size_t o = 0; o < program.outputs.size(); ++o) {
                const std::string& name = program.values[static_cast<std::size_t>(program.outputs[o])].name;
                const DType dtype = options.dtypes[program.inputs.size() + o];
                coverage.count("output", to_text(dtype));
                // An output is rounded once, when its sum is complete: to 8 or 11 bits.
                const double bound = 2e-6 + (dtype == DType::bfloat16 ? 0x1p-8 : dtype == DType::float16 ? 0x1p-11 : 0);
                ReferenceArray numbers = reference.at(name), sizes = scale.at(name);
                if (dtype == DType::float16)  // beyond its range numbers become infinite, far below it they lose digits
                    for (long double& size : sizes) size = size > 6e4L ? INFINITY : std::max(size, 0x1p-14L);
                ReferenceArray found = result.outputs.at(name);
                for (std::size_t k = 0; k < numbers.size(); ++k)
                    if (!std::isfinite(numbers[k])) numbers[k] = found[k] = 0;
                const double error = error_in_magnitudes(found, numbers, sizes) - (dtype == DType::float16 ? 1e-7 : 0);
                if (error > bound)
                    FAIL_CHECK("error " << error << " of " << name << " in " << std::string(to_text(dtype)) << "\n" << to_text(program));
            }
        }
    }
    MESSAGE(count << " programs from seed " << seed << "\n" << coverage.to_text());
    if (count < 120) return;
    CHECK(joined(coverage.missing("derivative order", {"0", "1", "2"})) == "");
    CHECK(joined(coverage.missing("output", {"float32", "float64", "bfloat16", "float16"})) == "");
}

TEST_CASE("results are bitwise the same for any number of threads") {
    ThreadPool pool(3);
    for (unsigned seed = 40; seed < 60; ++seed) {
        random::Engine engine(seed);
        random::Limits limits = smooth();
        limits.rows = 3000;
        limits.work = 1e7;
        const Program program = random::program(engine, limits);
        const ReferenceInputs inputs = random::inputs(engine, program, limits);
        const ProgramPlan plan(program);
        CAPTURE(seed);
        CHECK(run_program(plan, inputs).outputs == run_program(plan, inputs, {.parallel_for = pool.parallel_for()}).outputs);
    }
}

TEST_CASE("a program planned by several threads is the same, and so is the error where it cannot be planned") {
    for (unsigned seed = 60; seed < 70; ++seed) {
        random::Engine engine(seed);
        const random::Limits limits = smooth();
        const Program values = random::program(engine, limits);
        const Program program = vjp(values, input_names(values));
        const ReferenceInputs inputs = random::inputs(engine, program, limits);
        const ProgramPlan one(program), four(program, {.threads = 4});
        CAPTURE(seed);
        CHECK(one.explain() == four.explain());
        CHECK(run_program(one, inputs).outputs == run_program(four, inputs).outputs);
        for (const int threads : {1, 4})
            CHECK_THROWS_WITH_AS(ProgramPlan(program, {.family = "none", .threads = threads}), doctest::Contains("none"), Error);
    }
}

TEST_CASE("intermediates share memory once nothing reads them any more") {
    RadialOptions options;
    options.hidden = {64, 64, 64, 64};
    options.outputs = 8;
    const ProgramPlan plan(radial_network(options));
    const std::string text = plan.explain();
    CAPTURE(text);
    const std::size_t at = text.find(" values (");
    REQUIRE(at != std::string::npos);
    long all = 0, peak = 0;
    REQUIRE(std::sscanf(text.c_str() + at, " values (%ld numbers a row) exist for a chunk only, %ld bytes a row at once", &all, &peak) ==
            2);
    CHECK(all >= 8 * 64);    // every layer before and after its activation
    CHECK(peak == 2 * 256);  // two of them at a time
}

TEST_CASE("a launch with wrong arrays is refused by name, before anything is written") {
    const Program program = normalized_harmonics("0e+1o+2e");
    const ProgramPlan plan(program);
    std::vector<float> x(30, 1.0F), y(90, -7.0F);
    std::vector<Buffer> buffers = {{x.data(), DType::float32, 10, 0}, {y.data(), DType::float32, 10, 0}};
    std::vector<std::int64_t> rows = {10};
    std::vector<unsigned char> workspace(plan.workspace_bytes(rows, 1));
    const auto launch = [&](std::vector<Buffer> changed, std::size_t bytes) {
        plan.launch({.buffers = changed, .indices = {}, .rows = rows}, {.data = workspace.data(), .bytes = bytes});
    };
    const auto with = [&](std::size_t i, Buffer buffer) {
        std::vector<Buffer> changed = buffers;
        changed[i] = buffer;
        return changed;
    };
    CHECK_THROWS_WITH_AS(launch(with(0, {x.data(), DType::float64, 10, 0}), workspace.size()),
                         doctest::Contains("operand 'vector': expected float32, got float64"), Error);
    CHECK_THROWS_WITH_AS(launch(with(1, {y.data(), DType::float32, 9, 0}), workspace.size()),
                         doctest::Contains("operand 'harmonics': expected 10 rows, got 9"), Error);
    CHECK_THROWS_WITH_AS(launch(with(1, {nullptr, DType::float32, 10, 0}), workspace.size()),
                         doctest::Contains("operand 'harmonics': the data pointer is null"), Error);
    CHECK_THROWS_WITH_AS(launch(with(1, {x.data(), DType::float32, 10, 0}), workspace.size()), doctest::Contains("overlaps 'vector'"),
                         Error);
    CHECK_THROWS_WITH_AS(launch({buffers[0]}, workspace.size()), doctest::Contains("expected one buffer per operand (2), got 1"), Error);
    CHECK_THROWS_WITH_AS(launch(buffers, workspace.size() - 1), doctest::Contains("workspace: expected"), Error);
    CHECK(std::ranges::all_of(y, [](float v) { return v == -7.0F; }));
    launch(buffers, workspace.size());
    CHECK(y[0] == doctest::Approx(1));
    rows = {-1};
    CHECK_THROWS_WITH_AS(plan.workspace_bytes(rows, 1), doctest::Contains("expected at least 0 rows, got -1"), Error);
    rows = {std::int64_t{1} << 60};
    CHECK_THROWS_AS(ProgramPlan(program, {.fuse = false}).workspace_bytes(rows, 1), Error);
}

TEST_CASE("an instruction set that cannot run here is refused whatever the program's nodes are") {
    std::vector<InstructionSet> missing = {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::neon};
    for (const InstructionSet isa : available_instruction_sets()) std::erase(missing, isa);
    REQUIRE(!missing.empty());  // no machine is both x86-64 and aarch64
    for (const InstructionSet isa : missing) CHECK_THROWS_AS(ProgramPlan(normalized_harmonics("0e+1o"), {.instruction_set = isa}), Error);
}

TEST_CASE("work counts every argument's bytes once and the multiply-adds of all steps") {
    const std::vector<std::int64_t> rows = {1000};
    const Work harmonics = ProgramPlan(normalized_harmonics("0e+1o+2e+3o")).work(rows);
    CHECK(harmonics.bytes == 1000 * (3 + 16) * 4);
    // x.x, 3 products for the unit vector, then 65 in all as the tape has them; fewer than the 10 + 19 + 33 entries of expanded tensors
    // would need.
    CHECK(harmonics.multiply_adds >= 1000 * 30);
    CHECK(harmonics.multiply_adds <= 1000 * 80);
    RadialOptions options;
    options.hidden = {64};
    options.outputs = 32;
    const Work network = ProgramPlan(radial_network(options)).work(rows);
    CHECK(network.bytes == 4 * (1000 * (1 + 32) + 8 * 64 + 64 * 32));
    CHECK(network.multiply_adds >= 1000 * (8 * 64 + 64 * 32));
    CHECK(network.multiply_adds <= 1000 * (8 * 64 + 64 * 32 + 100));
}
