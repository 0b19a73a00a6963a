#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "algebra/harmonics.hpp"
#include "algebra/irreps.hpp"
#include "algebra/rotation.hpp"
#include "base/error.hpp"
#include "e3nn_goldens.hpp"
#include "random_rotation.hpp"

using namespace clebsch;

namespace {

constexpr auto component = HarmonicsNormalization::component, norm = HarmonicsNormalization::norm,
               integral = HarmonicsNormalization::integral;
constexpr double v[3] = {0.3, -0.5, 0.7};

std::vector<double> degree(int l, bool normalize, HarmonicsNormalization normalization = component) {
    const auto values = spherical_harmonics(l, v, normalize, normalization);
    return {values.begin() + l * l, values.end()};
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
    double largest = a.size() == b.size() ? 0.0 : 1e300;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

/// The polynomials' own values, in long double.
std::vector<double> expanded(int l, const double vector[3]) {
    std::vector<long double> values(2 * l + 1);
    for (const Monomial& monomial : harmonic_monomials(l)) {
        values[monomial.m] += static_cast<long double>(monomial.value) * std::pow(static_cast<long double>(vector[0]), monomial.x) *
                              std::pow(static_cast<long double>(vector[1]), monomial.y) *
                              std::pow(static_cast<long double>(vector[2]), monomial.z);
    }
    return {values.begin(), values.end()};
}

std::array<double, 3> random_vector(std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    return {normal(random), normal(random), normal(random)};
}

}  // namespace

TEST_CASE("harmonics of a normalised vector equal e3nn's") {
    using Values = std::vector<double>;
    CHECK(difference(spherical_harmonics(3, v, true, component),
                     Values{1, .570351825472, -.950586375787, 1.330820926101, .979911449040, -.699936749315, -.107762312169,
                            -1.633185748401, .933248999086, 1.145175982881, -1.422875200452, .269971587576, 1.084659876873, .629933704344,
                            -1.355119238526, .425983336627}) < 1e-12);
    CHECK(difference(degree(4, true), Values{1.082052624, -1.885490915, .9406481345, .3821448907, -1.072797213, .8916714117, .8958553662,
                                             -.7013661857, -.05281447331}) < 1e-9);
    CHECK(difference(degree(5, true), Values{.853734088, -1.969589332, 1.624496704, .2274285862, -.6935124008, .08389089845, -1.618195602,
                                             .2165986535, .6042813826, .09613471739, -.4162639543}) < 1e-9);
    CHECK(difference(degree(6, true), Values{.5400817051, -1.689371863, 2.018032691, -.307376568, -1.179681798, .3890207463, .9826895518,
                                             .9077150748, -1.123506474, -.1143381436, -.09849921466, .8237045023, -.6255040013}) < 1e-9);
    CHECK(difference(degree(8, true), Values{-.06000528714, -.4895291957, 1.48050429, -1.246166069, -.7727767501, 1.70138915, -.1031951349,
                                             -.6767250678, .2873378396, -1.579025158, -.09828108084, .6328838865, .03771886518, .6076060717,
                                             -1.714669, 1.542270038, -.6132238925}) < 1e-9);
    const auto twelve = degree(12, true);
    CHECK(difference({twelve.begin(), twelve.begin() + 4}, Values{-.3270206, 1.0278223, -1.5957057, 1.1489826}) < 1e-7);
    CHECK(difference({twelve.end() - 3, twelve.end()}, Values{-1.2473342, .27185994, .048191563}) < 1e-7);
    CHECK(difference(spherical_harmonics(1, v, true, integral), Values{.282094791774, .160893279444, -.268155465741, .375417652037}) <
          1e-12);
}

TEST_CASE("harmonics equal the committed values of e3nn in every normalization, up to degree 12") {
    int cases = 0;
    for (const auto& golden : e3nn_goldens()["spherical_harmonics"]) {
        INFO(golden["name"].get<std::string>());
        const Irreps irreps(golden["irreps_out"].get<std::string>());
        const auto expected = golden["output"].get<std::vector<double>>();
        const std::string wanted = golden["normalization"];
        const auto normalization = wanted == "component" ? component : wanted == "norm" ? norm : integral;
        std::vector<double> values;
        for (int row = 0; row < golden["rows"].get<int>(); ++row) {
            const double vector[3] = {golden_number(0, 3 * row), golden_number(0, 3 * row + 1), golden_number(0, 3 * row + 2)};
            const auto all = spherical_harmonics(irreps.lmax(), vector, golden["normalize"], normalization);
            for (const IrrepBlock& block : irreps) {
                const int l = block.irrep.degree;
                for (int copy = 0; copy < block.multiplicity; ++copy)
                    values.insert(values.end(), all.begin() + l * l, all.begin() + (l + 1) * (l + 1));
            }
        }
        CHECK(difference(values, expected) < (golden["normalize"].get<bool>() ? 1e-14 : 1e-13));
        ++cases;
    }
    CHECK(cases == 10);
}

TEST_CASE("harmonics of a vector as it is equal e3nn's homogeneous polynomials") {
    using Values = std::vector<double>;
    CHECK(difference(degree(1, false), Values{.5196152423, -.8660254038, 1.212435565}) < 1e-9);
    CHECK(difference(degree(2, false), Values{.8133265027, -.5809475019, -.0894427191, -1.355544171, .7745966692}) < 1e-9);
    CHECK(difference(degree(3, false), Values{.8659431275, -1.07592983, .204143332, .8201829064, .4763344413, -1.024695077, .3221141102}) <
          1e-9);
    CHECK(difference(degree(4, false), Values{.745426052671, -1.298914691194, .648012499879, .263259615209, -.739050000000, .614272435488,
                                              .617154761790, -.483171165323, -.036383890666}) < 1e-12);
}

TEST_CASE("the polynomials of degrees 0 to 3 are those of the formulas") {
    const double x = v[0], y = v[1], z = v[2], r3 = std::sqrt(3.), r15 = std::sqrt(15.), s20 = r15 * x * z, s24 = r15 / 2 * (z * z - x * x);
    CHECK(difference(expanded(0, v), {1}) == 0.0);
    CHECK(difference(expanded(1, v), {r3 * x, r3 * y, r3 * z}) < 1e-15);
    CHECK(difference(expanded(2, v), {s20, r15 * x * y, std::sqrt(5.) * (y * y - .5 * (x * x + z * z)), r15 * y * z, s24}) < 1e-15);
    CHECK(difference(
              expanded(3, v),
              {std::sqrt(42.) / 6 * (s20 * z + s24 * x), std::sqrt(7.) * s20 * y, std::sqrt(168.) / 8 * (4 * y * y - x * x - z * z) * x,
               std::sqrt(7.) / 2 * y * (2 * y * y - 3 * (x * x + z * z)), std::sqrt(168.) / 8 * z * (4 * y * y - x * x - z * z),
               std::sqrt(7.) * s24 * y, std::sqrt(42.) / 6 * (s24 * z - s20 * x)}) < 1e-15);
}

TEST_CASE("monomials are homogeneous, sorted, non-zero, and harmonic: Laplace's operator gives zero") {
    for (int l = 0; l <= 12; ++l) {
        const auto monomials = harmonic_monomials(l);
        const auto key = [](const Monomial& monomial) { return std::array{monomial.m, monomial.x, monomial.y, monomial.z}; };
        CHECK(std::is_sorted(monomials.begin(), monomials.end(), [&](const Monomial& a, const Monomial& b) { return key(a) < key(b); }));
        std::vector<double> laplacian((2 * l + 1) * 13 * 13), scale = laplacian;
        for (const Monomial& monomial : monomials) {
            CHECK(monomial.x + monomial.y + monomial.z == l);
            CHECK(monomial.value != 0.0);
            const auto add = [&](int x, int y, int factor) {
                if (factor == 0) return;
                laplacian[(monomial.m * 13 + x) * 13 + y] += factor * monomial.value;
                scale[(monomial.m * 13 + x) * 13 + y] += factor * std::abs(monomial.value);
            };
            add(monomial.x - 2, monomial.y, monomial.x * (monomial.x - 1));
            add(monomial.x, monomial.y - 2, monomial.y * (monomial.y - 1));
            add(monomial.x, monomial.y, monomial.z * (monomial.z - 1));
        }
        for (std::size_t i = 0; i < laplacian.size(); ++i) CHECK(std::abs(laplacian[i]) <= 4e-16 * scale[i]);
    }
}

TEST_CASE("the recurrence evaluates the exact polynomials, to 1e-14 of the size of Y, up to degree 12") {
    std::mt19937_64 random(21);
    for (int trial = 0; trial < 50; ++trial) {
        const auto vector = random_vector(random);
        const double length = std::hypot(vector[0], vector[1], vector[2]);
        const auto values = spherical_harmonics(12, vector.data(), false, component);
        for (int l = 0; l <= 12; ++l) {
            const double size = std::sqrt(2.0 * l + 1.0) * std::pow(length, l);
            CHECK(difference({values.begin() + l * l, values.begin() + (l + 1) * (l + 1)}, expanded(l, vector.data())) < 1e-14 * size);
        }
    }
}

TEST_CASE("sums of squares on the unit sphere: component 2l+1, norm 1, integral (2l+1)/(4 pi)") {
    std::mt19937_64 random(22);
    for (int trial = 0; trial < 20; ++trial) {
        const auto vector = random_vector(random);
        for (const auto normalization : {component, norm, integral}) {
            const auto values = spherical_harmonics(12, vector.data(), true, normalization);
            for (int l = 0; l <= 12; ++l) {
                double sum = 0.0;
                for (int m = 0; m <= 2 * l; ++m) sum += values[l * l + m] * values[l * l + m];
                const double expected = normalization == component ? 2 * l + 1
                                        : normalization == norm    ? 1.0
                                                                   : (2 * l + 1) / (4 * std::numbers::pi);
                CHECK(std::abs(sum / expected - 1.0) < 2e-14);
                CHECK(std::abs(values[l * l + l] - harmonics_scale(l, normalization) *
                                                       spherical_harmonics(l, vector.data(), true, component)[l * l + l]) < 1e-14);
            }
        }
    }
}

TEST_CASE("harmonics rotate with D: Y(R v) = D(R) Y(v), inversions included") {
    std::mt19937_64 random(23);
    for (int trial = 0; trial < 10; ++trial) {
        Matrix3 rotation = rotation_matrix(random_quaternion(random));
        if (trial % 2) {
            for (double& element : rotation) element = -element;
        }
        const auto vector = random_vector(random);
        std::array<double, 3> rotated{};
        for (int i = 0; i < 9; ++i) rotated[i / 3] += rotation[i] * vector[i % 3];
        const auto before = spherical_harmonics(12, vector.data(), true, component),
                   after = spherical_harmonics(12, rotated.data(), true, component);
        for (int l = 0; l <= 12; ++l) {
            const int n = 2 * l + 1;
            const auto d = wigner_d({l, l % 2 ? Parity::odd : Parity::even}, rotation);
            for (int m = 0; m < n; ++m) {
                double expected = 0.0;
                for (int k = 0; k < n; ++k) expected += d[m * n + k] * before[l * l + k];
                CHECK(std::abs(after[l * l + m] - expected) < 5e-14);
            }
        }
    }
}

TEST_CASE("the middle column of D(alpha, beta, 0) holds the harmonics of the direction (alpha, beta)") {
    const double alpha = .4, beta = 1.1;
    const double direction[3] = {std::sin(beta) * std::sin(alpha), std::cos(beta), std::sin(beta) * std::cos(alpha)};
    const auto values = spherical_harmonics(12, direction, false, norm);
    for (int l = 0; l <= 12; ++l) {
        const auto d = wigner_d({l, Parity::even}, Angles{alpha, beta, 0});
        for (int m = 0; m <= 2 * l; ++m) CHECK(std::abs(d[m * (2 * l + 1) + l] - values[l * l + m]) < 1e-14);
    }
}

TEST_CASE("zero, tiny and huge vectors") {
    const double zero[3] = {}, huge[3] = {1e300, 0, 1e300}, tiny[3] = {0, 3e-13, 0};
    for (const bool normalize : {false, true}) {
        const auto values = spherical_harmonics(12, zero, normalize, component);
        CHECK(values[0] == 1.0);
        CHECK(std::all_of(values.begin() + 1, values.end(), [](double value) { return value == 0.0; }));
    }
    CHECK(std::abs(spherical_harmonics(1, huge, true, component)[1] - std::sqrt(1.5)) < 1e-15);
    CHECK(std::abs(spherical_harmonics(1, tiny, true, norm)[2] - .3) < 1e-15);  // e3nn divides by 1e-12 at least
}

TEST_CASE("degrees out of range are refused") {
    CHECK_THROWS_AS(harmonic_monomials(13), Error);
    CHECK_THROWS_AS(harmonic_monomials(-1), Error);
    CHECK_THROWS_AS(harmonic_recurrence(0), Error);
    CHECK_THROWS_AS(harmonic_recurrence(13), Error);
    CHECK_THROWS_AS(spherical_harmonics(13, v, true, component), Error);
    CHECK_THROWS_AS(harmonics_scale(1, static_cast<HarmonicsNormalization>(9)), Error);
}
