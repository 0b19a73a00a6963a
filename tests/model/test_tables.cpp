// Models that read their radial networks from tables: what they give, where pieces meet, and what cannot be tabulated.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string_view>

#include "base/error.hpp"
#include "describe/reference.hpp"
#include "describe/text.hpp"
#include "graph/neighbours.hpp"
#include "io/nequix.hpp"
#include "io/xyz.hpp"
#include "model/nequix.hpp"
#include "model/potential.hpp"
#include "model/tabulate.hpp"
#include "support/repetitions.hpp"

using namespace clebsch;
using testing::one_in;

namespace {

const std::string checkpoint = CLEBSCH_SOURCE_DIR "/examples/data/nequix-mp-1.nqx";

double deviation(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::isfinite(a[i]) ? std::max(most, std::abs(a[i] - b[i])) : INFINITY;
    return most;
}

/// Two atoms at a distance along a direction without symmetry.
std::pair<double, double> energy_and_slope(Potential& potential, double distance) {
    const std::vector<double> direction = {2.0 / 7, 3.0 / 7, 6.0 / 7};
    Structure pair;
    pair.positions.assign(6, 0.0);
    for (std::size_t i = 0; i < 3; ++i) pair.positions[3 + i] = distance * direction[i];
    const Energies result = potential.evaluate(std::span(&pair, 1), std::vector<int>{8, 14});
    double slope = 0;
    for (std::size_t i = 0; i < 3; ++i) slope -= result.forces[3 + i] * direction[i];
    return {result.energy[0], slope};
}

}  // namespace

TEST_CASE("energies, forces and virial with tables are those without to the tolerance") {
    struct Limits {
        DType dtype;
        double energy, force, virial;  ///< per atom, largest, of the largest
    };
    // In float32 beside what rounding changes; in float64 forces change in their tenth digit.
    for (const Limits& limits : {Limits{DType::float32, 1e-6, 3e-5, 1e-5}, Limits{DType::float64, 1e-10, 1e-9, 1e-9}}) {
        CAPTURE(to_text(limits.dtype));
        Potential computed = Potential::load(checkpoint, {.dtype = limits.dtype});
        Potential tabulated = Potential::load(checkpoint, {.dtype = limits.dtype, .table_tolerance = 0.0});
        CHECK(!computed.tables());
        REQUIRE(tabulated.tables());
        const TableReport& report = *tabulated.tables();
        CHECK(report.numbers == 356 + 2 * 1312 + 256);
        CHECK(report.largest_error < (limits.dtype == DType::float32 ? 1e-7 : 1e-12));
        CHECK(report.pieces == static_cast<std::int64_t>(tabulated.model().piece_ends.size()));
        CHECK(report.bytes == doctest::Approx(static_cast<double>(report.pieces * report.coefficients * report.numbers) *
                                              static_cast<double>(size_of(limits.dtype))));
        for (const char* file : {"aspirin.xyz", "water-216.xyz"}) {
            if (one_in(2) == 2 && std::string_view(file) == "water-216.xyz") continue;
            CAPTURE(file);
            const XyzFrame frame = read_xyz(CLEBSCH_SOURCE_DIR "/examples/data/" + std::string(file)).front();
            const std::vector<int> numbers = frame.atomic_numbers();
            const Energies a = computed.evaluate(std::span(&frame.structure, 1), numbers),
                           b = tabulated.evaluate(std::span(&frame.structure, 1), numbers);
            double force = 0, virial = 0;
            for (const double f : a.forces) force = std::max(force, std::abs(f));
            for (const double v : a.virial) virial = std::max(virial, std::abs(v));
            CHECK(deviation(a.energy, b.energy) < limits.energy * static_cast<double>(numbers.size()));
            CHECK(deviation(a.forces, b.forces) < limits.force * force);
            CHECK(deviation(a.virial, b.virial) < limits.virial * virial);
        }
    }
}

TEST_CASE("forces are derivatives of what tables give, and nothing jumps where pieces meet or at the cutoff") {
    Potential potential = Potential::load(checkpoint, {.dtype = DType::float64, .table_tolerance = 1e-9});
    for (const double distance : {0.31, 0.9, 1.7, 3.3, 5.2}) {
        CAPTURE(distance);
        constexpr double step = 1e-5;
        const double difference =
            (energy_and_slope(potential, distance + step).first - energy_and_slope(potential, distance - step).first) / (2 * step);
        CHECK(energy_and_slope(potential, distance).second == doctest::Approx(difference).epsilon(1e-6));
    }
    const std::vector<double> ends = potential.model().piece_ends;
    CHECK(ends.back() == potential.cutoff());
    for (const double end : ends) {
        CAPTURE(end);
        const auto [below, slope_below] = energy_and_slope(potential, end * (1 - 1e-13));
        const auto [above, slope_above] = energy_and_slope(potential, end * (1 + 1e-13));
        CHECK(std::abs(below - above) < 1e-9);
        CHECK(std::abs(slope_below - slope_above) < 1e-5 * std::max(1.0, std::abs(slope_below)));
    }
    const double alone = energy_and_slope(potential, 100).first;
    CHECK(energy_and_slope(potential, potential.cutoff() * (1 - 1e-9)).first == doctest::Approx(alone).epsilon(1e-12));
}

TEST_CASE("the rewrite takes out what follows from the length and keeps the rest") {
    const Model model = nequix_model(read_nequix(checkpoint));
    const auto tabulation = tabulate(model.program);
    REQUIRE(tabulation);
    CHECK(tabulation->space == "edge");
    CHECK(tabulation->number == "basis.lengths");
    CHECK(tabulation->functions.outputs.size() == 4);
    CHECK(tabulation->functions.inputs.size() == 1 + 12);  // the length; three matrices of each layer
    CHECK(tabulation->tables.size() == 4);
    const auto has = [](const Program& program, const std::string& name) {
        return std::ranges::find(program.values, name, &Value::name) != program.values.end();
    };
    CHECK(!has(tabulation->tabulated, "layer1.radial_0"));
    CHECK(has(tabulation->tabulated, "layer1.linear_1"));
    CHECK(tabulation->tabulated.inputs.front() == tabulation->tabulated.find_value("vectors"));
    CHECK(parse_program(to_text(tabulation->tabulated)) == tabulation->tabulated);

    // Nothing as wide as that, or no program of edges at all.
    CHECK(!tabulate(model.program, {.least_numbers = 5000}));
    CHECK(!tabulate(tabulation->tabulated));
    CHECK_THROWS_WITH_AS(tabulate(model.program, {.piece = "sender"}), "tabulate: the program has an index 'sender' already", Error);
    CHECK_THROWS_WITH_AS(tabulate(model.program, {.coefficients = 1}), "tabulate: expected 2 to 16 coefficients, got 1", Error);
}

TEST_CASE("any number of coefficients, powers beyond the fourth among them, gives the functions") {
    const Model model = nequix_model(read_nequix(checkpoint));
    for (const auto& [number, tolerance] : {std::pair{3, 1e-2}, {4, 1e-3}, {5, 1e-4}, {8, 1e-6}, {9, 1e-6}, {13, 1e-8}}) {
        if (number % one_in(2) != 0) continue;
        const int coefficients = number;
        CAPTURE(coefficients);
        const TabulatedModel made = tabulated(model, {.dtype = DType::float64, .tolerance = tolerance, .coefficients = coefficients});
        CHECK(made.report.largest_error <= tolerance);
        Potential computed(model, {.dtype = DType::float64}), potential(made.model, {.dtype = DType::float64});
        for (const double distance : {0.7, 2.2, 4.1})
            CHECK(energy_and_slope(potential, distance).first ==
                  doctest::Approx(energy_and_slope(computed, distance).first).epsilon(tolerance * 10));
    }
}

TEST_CASE("what tables cannot do is an error") {
    const Model model = nequix_model(read_nequix(checkpoint));
    CHECK_THROWS_WITH_AS(tabulated(model, {.tolerance = -1}), "tables: expected a tolerance between 0 and 1, got -1", Error);
    CHECK_THROWS_WITH_AS(tabulated(model, {.dtype = DType::float64, .tolerance = 1e-12, .coefficients = 2}),
                         "tables: polynomials of 2 coefficients would need more than 512 pieces for a tolerance of 1e-12", Error);
    TabulatedModel made = tabulated(model);
    CHECK_THROWS_WITH_AS(tabulated(made.model),
                         "tables: model 'nequix' has no values of at least 64 numbers that follow from the length of an edge alone", Error);
    std::swap(made.model.piece_ends.front(), made.model.piece_ends.back());
    CHECK_THROWS_WITH_AS(Potential(made.model), doctest::Contains("expected ends of pieces in ascending order"), Error);
}
