// The polynomial cutoff of radial networks keeps its digits up to the cutoff, to second derivatives, and is the published polynomial.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "describe/derivative.hpp"
#include "describe/operations/radial_network.hpp"
#include "describe/text.hpp"
#include "support/run_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

constexpr long double cutoff = 4.75L;

/// Only the cutoff of a radial network, a function of `lengths`.
Program cutoff_program(int power) {
    RadialOptions options;
    options.cutoff = static_cast<double>(cutoff);
    options.cutoff_power = power;
    Program program = radial_network(options);
    program.outputs = {program.find_value("cutoff")};
    return simplified(program);
}

/// The polynomial as Gasteiger et al. publish it (arXiv:2003.03123, eq. 8), in long double.
long double published(int power, long double length) {
    const long double p = power, t = length / cutoff;
    if (t >= 1) return 0;
    return 1 - (p + 1) * (p + 2) / 2 * std::pow(t, p) + p * (p + 2) * std::pow(t, p + 1) - p * (p + 1) / 2 * std::pow(t, p + 2);
}

/// Its derivatives: -p (p+1) (p+2) / 2 t^(p-1) (1-t)^2, and once more.
long double slope(int power, long double length) {
    const long double p = power, t = length / cutoff;
    return t >= 1 ? 0 : -p * (p + 1) * (p + 2) / 2 * std::pow(t, p - 1) * (1 - t) * (1 - t) / cutoff;
}
long double curvature(int power, long double length) {
    const long double p = power, t = length / cutoff;
    if (t >= 1) return 0;
    const long double rising = power == 1 ? 0 : (p - 1) * std::pow(t, p - 2) * (1 - t) * (1 - t);
    return -p * (p + 1) * (p + 2) / 2 * (rising - 2 * std::pow(t, p - 1) * (1 - t)) / (cutoff * cutoff);
}

/// Norm-wise error of a program's only output where every input but `lengths` is one.
double error_of(const Program& program, const ReferenceArray& lengths, const ReferenceArray& expected, DType dtype) {
    ReferenceInputs inputs;
    inputs.rows["edge"] = static_cast<std::int64_t>(lengths.size());
    for (const int input : program.inputs) {
        const Value& value = program.values[static_cast<std::size_t>(input)];
        inputs.arrays[value.name] = value.name == "lengths" ? lengths : ReferenceArray(lengths.size(), 1);
    }
    const ProgramPlan plan(program, {.dtypes = std::vector<DType>(program.inputs.size() + 1, dtype)});
    return relative_error(run_program(plan, inputs).outputs.begin()->second, expected);
}

}  // namespace

TEST_CASE("the cutoff is the published polynomial to 1e-13 in float64 and 2e-6 in float32, with two derivatives, right up to its end") {
    for (const int power : {1, 2, 5, 6, 7, 8, 9, 16, 17, 64}) {
        CAPTURE(power);
        const Program value = cutoff_program(power), first = jvp(value, std::vector<std::string>{"lengths"}),
                      second = jvp(first, std::vector<std::string>{"lengths"});
        // All lengths, and those next to the cutoff, where the polynomial's terms cancel, by themselves.
        for (const long double start : {0.01L, 0.95L * cutoff}) {
            CAPTURE(static_cast<double>(start));
            ReferenceArray lengths, values, slopes, curvatures;
            for (int i = 0; i < 400; ++i) {
                lengths.push_back(static_cast<float>(start + (1.002L * cutoff - start) * i / 399));
                values.push_back(published(power, lengths.back()));
                slopes.push_back(slope(power, lengths.back()));
                curvatures.push_back(curvature(power, lengths.back()));
            }
            for (const DType dtype : {DType::float32, DType::float64}) {
                CAPTURE(std::string(to_text(dtype)));
                // Next to the cutoff the rounding of length / cutoff itself is a part of 1 - length / cutoff.
                const double bound = (dtype == DType::float32 ? 2e-6 : 1e-13) * (start > 1 ? 2 : 1);
                CHECK(error_of(value, lengths, values, dtype) < bound);
                CHECK(error_of(first, lengths, slopes, dtype) < bound);
                CHECK(error_of(second, lengths, curvatures, dtype) < bound);
            }
        }
    }
}

TEST_CASE("lengths far beyond the cutoff, as padded edges have, give zero and no infinity") {
    const Program value = cutoff_program(6), first = jvp(value, std::vector<std::string>{"lengths"});
    const ReferenceArray lengths = {5, 1e6, 1e18, 3e38}, zeros(4, 0);
    CHECK(error_of(value, lengths, zeros, DType::float32) == 0);
    CHECK(error_of(first, lengths, zeros, DType::float32) == 0);
}
