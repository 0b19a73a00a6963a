// Fused nodes: harmonics and their derivatives keep float32's accuracy to l = 12, and every instruction set computes the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "describe/derivative.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/radial_network.hpp"
#include "describe/text.hpp"
#include "support/normal_inputs.hpp"
#include "support/random_descriptions.hpp"
#include "support/run_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

/// Standard normal vectors, every seventh of length zero; everything else standard normal.
ReferenceInputs vectors(const Program& program, std::int64_t rows, unsigned seed) {
    std::mt19937_64 engine(seed);
    ReferenceInputs inputs;
    inputs.rows = {{"row", rows}, {"", 1}};
    for (const int input : program.inputs) {
        const Value& value = program.values[static_cast<std::size_t>(input)];
        ReferenceArray& array = inputs.arrays[value.name] = normal_array(engine, rows * value.size());
        for (std::size_t i = 0; value.name == "vector" && i < array.size(); ++i)
            if (i / 3 % 7 == 3) array[i] = 0;
    }
    return inputs;
}

double largest_error(const Program& program, const ReferenceInputs& inputs, DType dtype, InstructionSet isa, std::int64_t padding = 0) {
    const ProgramPlan plan(program,
                           {.dtypes = std::vector<DType>(program.inputs.size() + program.outputs.size(), dtype), .instruction_set = isa});
    const RunResult result = run_program(plan, inputs, {.padding = padding});
    CHECK(result.surroundings_intact);
    double largest = 0;
    for (const auto& [name, numbers] : evaluate(program, inputs))
        largest = std::max(largest, relative_error(result.outputs.at(name), numbers));
    return largest;
}

}  // namespace

TEST_CASE("normalised harmonics and their derivatives are right for vectors of the documented lengths") {
    // docs/operations.md: 10^-n to 10^n.
    struct Range {
        DType dtype;
        int order, exponent;
    };
    const std::string vector[] = {"vector"}, both[] = {"vector", "harmonics_cotangent"};
    const Program values = normalized_harmonics("0e+1o+2e+3o"), gradient = vjp(values, vector), second = vjp(gradient, both);
    for (const Range& range : {Range{DType::float32, 0, 18},
                               {DType::float32, 1, 11},
                               {DType::float32, 2, 6},
                               {DType::float64, 0, 150},
                               {DType::float64, 1, 100},
                               {DType::float64, 2, 60}}) {
        CAPTURE(std::string(to_text(range.dtype)));
        CAPTURE(range.order);
        const Program& program = range.order == 0 ? values : range.order == 1 ? gradient : second;
        for (const int exponent : {-range.exponent, -range.exponent / 2, range.exponent / 2, range.exponent}) {
            CAPTURE(exponent);
            ReferenceInputs inputs = vectors(program, 64, 5);
            for (long double& number : inputs.arrays.at("vector")) number *= std::pow(10.0L, exponent);
            inputs = rounded_inputs(program, inputs, std::vector<DType>(program.inputs.size(), range.dtype));
            CHECK(largest_error(program, inputs, range.dtype, available_instruction_sets().back()) <
                  (range.dtype == DType::float32 ? 2e-6 : 1e-13));
        }
    }
}

TEST_CASE("normalised harmonics to l = 12, their gradients and second derivatives keep 2e-6 in float32 and 1e-13 in float64") {
    const std::string vector[] = {"vector"}, both[] = {"vector", "harmonics_cotangent"};
    for (const int lmax : {1, 2, 3, 6, 12}) {
        const Program values = normalized_harmonics(Irreps::spherical_harmonics(lmax));
        std::vector<Program> programs = {values, vjp(values, vector)};
        if (lmax <= 3) programs.push_back(vjp(programs[1], both));
        for (const Program& program : programs) {
            CAPTURE(lmax);
            CAPTURE(program.outputs.size());
            const ReferenceInputs inputs = vectors(program, lmax > 6 ? 70 : 301, static_cast<unsigned>(lmax));
            for (const InstructionSet isa : available_instruction_sets()) {
                CAPTURE(to_text(isa));
                CHECK(largest_error(program, inputs, DType::float32, isa, lmax % 2) < 2e-6);
                CHECK(largest_error(program, inputs, DType::float64, isa, lmax % 3) < 1e-13);
            }
        }
    }
}

TEST_CASE("harmonics with values and gradients are one step without intermediates in memory") {
    const std::string vector[] = {"vector"};
    for (const Program& program :
         {normalized_harmonics(Irreps::spherical_harmonics(6)), vjp(normalized_harmonics(Irreps::spherical_harmonics(3)), vector)}) {
        const std::string text = ProgramPlan(program).explain();
        CAPTURE(text);
        CHECK(text.find("program: 1 steps") != std::string::npos);
        CHECK(text.find("lanes: one row per vector lane") != std::string::npos);
        CHECK(text.find("intermediates per row") == std::string::npos);
    }
}

TEST_CASE("any number of rows, down to none, whatever follows them in memory") {
    const Program program = normalized_harmonics("0e+1o+2e+3o");
    for (const std::int64_t rows : {0, 1, 2, 3, 5, 8, 31, 63, 64, 65, 127, 129, 2047, 2049, 4100}) {
        const ReferenceInputs inputs = vectors(program, rows, static_cast<unsigned>(rows));
        CAPTURE(rows);
        for (const InstructionSet isa : available_instruction_sets()) {
            CHECK(largest_error(program, inputs, DType::float32, isa) < 2e-6);
            CHECK(largest_error(program, inputs, DType::float64, isa, 1) < 1e-13);
        }
    }
}

TEST_CASE("every instruction set agrees on random programs") {
    random::Limits limits;
    limits.smooth_only = true;
    limits.rows = 90;
    limits.channels = {1, 2, 3};
    long fused = 0;
    for (unsigned seed = 0; seed < 80; ++seed) {
        random::Engine engine(seed);
        const Program program = random::program(engine, limits);
        const std::vector<DType> dtypes(program.inputs.size() + program.outputs.size(), DType::float64);
        const ReferenceInputs inputs = rounded_inputs(program, random::inputs(engine, program, limits), dtypes);
        CAPTURE(seed);
        CAPTURE(to_text(program));
        fused += ProgramPlan(program).explain().find("nodes fused") != std::string::npos;
        for (const InstructionSet isa : available_instruction_sets()) CHECK(largest_error(program, inputs, DType::float64, isa, 1) < 1e-11);
    }
    CHECK(fused > 20);
}

TEST_CASE("polynomials with few channels run as lanes, gathered, scattered and summed rows included") {
    random::Limits limits;
    limits.channels = {1, 2};
    limits.rows = 200;
    long lanes = 0;
    for (unsigned seed = 0; seed < 150; ++seed) {
        random::Engine engine(seed);
        const Polynomial polynomial = random::polynomial(engine, limits);
        const std::vector<DType> dtypes(polynomial.operands.size(), DType::float64);
        const ReferenceInputs inputs = rounded_inputs(polynomial, random::inputs(engine, polynomial, limits), dtypes);
        const auto reference = evaluate(polynomial, inputs);
        CAPTURE(seed);
        CAPTURE(to_text(polynomial));
        for (const InstructionSet isa : available_instruction_sets()) {
            const PolynomialPlan plan(polynomial, {.dtypes = dtypes, .compute = {}, .instruction_set = isa, .family = ""});
            lanes += plan.explain().find("one row per vector lane") != std::string::npos;
            const RunResult result = run_plan(plan, inputs, {.padding = seed % 2});
            CHECK(result.surroundings_intact);
            for (const auto& [name, numbers] : reference) CHECK(relative_error(result.outputs.at(name), numbers) < 1e-12);
        }
    }
    CHECK(lanes > 60);
}

TEST_CASE("harmonics as a polynomial keep float32's accuracy to l = 12 too") {
    const Polynomial polynomial = spherical_harmonics(Irreps::spherical_harmonics(12));
    ReferenceInputs inputs = vectors(as_program(polynomial), 80, 4);
    for (std::size_t i = 0; i < inputs.arrays.at("vector").size(); ++i) inputs.arrays.at("vector")[i] *= 0.5L;
    const RunResult result = run_plan(PolynomialPlan(polynomial), inputs);
    CHECK(relative_error(result.outputs.at("harmonics"), evaluate(polynomial, inputs).at("harmonics")) < 2e-6);
}
