#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "algebra/rotation.hpp"
#include "algebra/wigner.hpp"
#include "base/error.hpp"
#include "random_rotation.hpp"

using namespace clebsch;

namespace {

constexpr double pi = std::numbers::pi;

template <class A, class B>
double difference(const A& a, const B& b) {
    double largest = a.size() == b.size() ? 0.0 : 1e300;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    return largest;
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, int n) {
    std::vector<double> result(n * n);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            for (int k = 0; k < n; ++k) result[i * n + j] += a[i * n + k] * b[k * n + j];
        }
    }
    return result;
}

std::vector<double> transposed(const std::vector<double>& a, int n) {
    std::vector<double> result(n * n);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) result[j * n + i] = a[i * n + j];
    }
    return result;
}

std::vector<double> identity(int n) {
    std::vector<double> result(n * n);
    for (int i = 0; i < n; ++i) result[i * (n + 1)] = 1.0;
    return result;
}

Matrix3 negated(Matrix3 matrix) {
    for (double& element : matrix) element = -element;
    return matrix;
}

std::vector<double> row(const std::vector<double>& matrix, int n, int i) { return {matrix.begin() + i * n, matrix.begin() + (i + 1) * n}; }

/// Largest change of C under D(l1) x D(l2) x D(l3): zero for an invariant coupling.
double equivariance_error(int l1, int l2, int l3, const Matrix3& rotation) {
    const auto d1 = wigner_d({l1, Parity::even}, rotation), d2 = wigner_d({l2, Parity::even}, rotation),
               d3 = wigner_d({l3, Parity::even}, rotation);
    const int n1 = 2 * l1 + 1, n2 = 2 * l2 + 1, n3 = 2 * l3 + 1;
    std::vector<double> original(n1 * n2 * n3), first(n1 * n2 * n3), second(n1 * n2 * n3), third(n1 * n2 * n3);
    for (const CouplingEntry& entry : wigner_3j(l1, l2, l3)) {
        original[(entry.i * n2 + entry.j) * n3 + entry.k] = entry.value;
        for (int i = 0; i < n1; ++i) first[(i * n2 + entry.j) * n3 + entry.k] += d1[i * n1 + entry.i] * entry.value;
    }
    for (int i = 0; i < n1; ++i) {
        for (int j = 0; j < n2; ++j) {
            for (int old = 0; old < n2; ++old) {
                for (int k = 0; k < n3; ++k) second[(i * n2 + j) * n3 + k] += d2[j * n2 + old] * first[(i * n2 + old) * n3 + k];
            }
        }
    }
    for (int ij = 0; ij < n1 * n2; ++ij) {
        for (int k = 0; k < n3; ++k) {
            for (int old = 0; old < n3; ++old) third[ij * n3 + k] += d3[k * n3 + old] * second[ij * n3 + old];
        }
    }
    return difference(original, third);
}

}  // namespace

TEST_CASE("rotation matrices of angles and quaternions equal e3nn's") {
    const Matrix3 rotation = rotation_matrix(Angles{.1, .2, .3});
    const std::vector<double> golden = {.921649085609,  .019833838076,  .387517202022, .058710801694, .980066577841,
                                        -.189796060979, -.383557042381, .197676811654, .902113004769};
    CHECK(difference(rotation, golden) < 1e-12);
    CHECK(difference(rotation, rotation_matrix(Quaternion{.975170327, .0993346654, .197676812, .00996671108})) < 1e-9);
    // axis (.44855227, .892622754, .0450053449), angle .446614919
    const double half = .5 * .446614919, s = std::sin(half);
    CHECK(difference(rotation, rotation_matrix(Quaternion{std::cos(half), s * .44855227, s * .892622754, s * .0450053449})) < 1e-9);

    const Quaternion quaternion{std::cos(.3), std::sin(.3) / 3, std::sin(.3) * 2 / 3, std::sin(.3) * 2 / 3};
    const std::vector<double> golden2 = {.844742769,  -.337614008, .415242623, .415242623, .902964231,
                                         -.110585542, -.337614008, .265842773, .902964231};
    CHECK(difference(rotation_matrix(quaternion), golden2) < 1e-9);
    const Angles angles = rotation_angles(rotation_matrix(quaternion));
    CHECK(std::abs(angles.alpha + .903775609) < 1e-9);
    CHECK(std::abs(angles.beta - .444177922) < 1e-9);
    CHECK(std::abs(angles.gamma - 1.310521827) < 1e-9);
    // A quaternion's length does not matter, however large or small.
    for (const double scale : {-3.0, 1e-300, 1e300}) {
        const Quaternion scaled{scale * quaternion.w, scale * quaternion.x, scale * quaternion.y, scale * quaternion.z};
        CHECK(difference(rotation_matrix(scaled), rotation_matrix(quaternion)) < 1e-15);
    }
}

TEST_CASE("angles are recovered from their matrix, also at and near the poles") {
    const auto check_angles = [](const Matrix3& rotation, double alpha, double beta, double gamma) {
        const Angles angles = rotation_angles(rotation);
        CHECK(std::abs(angles.alpha - alpha) < 1e-15);
        CHECK(std::abs(angles.beta - beta) < 1e-15);
        CHECK(std::abs(angles.gamma - gamma) < 1e-15);
    };
    check_angles(rotation_matrix(Angles{.4, 0, 0}), 0, 0, .4);
    check_angles(rotation_matrix(Angles{0, pi, 0}), 0, pi, 0);
    check_angles({1, 0, 0, 0, -1, 0, 0, 0, -1}, 0, pi, 0);
    check_angles({1, -0.0, -0.0, -0.0, 1, -0.0, -0.0, -0.0, 1}, 0, 0, 0);
    std::mt19937_64 random(11);
    for (int trial = 0; trial < 100; ++trial) {
        const Matrix3 rotation = rotation_matrix(random_quaternion(random));
        CHECK(difference(rotation_matrix(rotation_angles(rotation)), rotation) < 2e-15);
    }
    for (const double beta : {1e-3, 1e-8, 1e-12, 1e-17, pi - 1e-8}) {
        const Matrix3 rotation = rotation_matrix(Angles{1.0, beta, -2.0});
        CHECK(difference(rotation_matrix(rotation_angles(rotation)), rotation) < 2e-15);
    }
}

TEST_CASE("D matrices equal e3nn's") {
    const Matrix3 rotation = rotation_matrix(Angles{.1, .2, .3});
    const auto d2 = wigner_d({2, Parity::even}, rotation), d3 = wigner_d({3, Parity::odd}, Angles{.1, .2, .3});
    CHECK(difference(wigner_d({1, Parity::odd}, rotation), rotation) < 1e-15);
    CHECK(wigner_d({0, Parity::even}, rotation) == std::vector<double>{1.0});
    using Row = std::vector<double>;
    CHECK(difference(row(d2, 5, 0), Row{.682796674082, .174581244436, .006790834062, .094495528220, .703089304906}) < 1e-12);
    CHECK(difference(row(d2, 5, 1), Row{-.152173920, .904441926, .033668438, .376028274, -.127659995}) < 1e-9);
    CHECK(difference(row(d2, 5, 2), Row{-.019300379, .099663060, .940795746, -.322183579, .028211285}) < 1e-9);
    CHECK(difference(row(d2, 5, 3), Row{.125761394, -.364305674, .335561351, .846612525, -.148698553}) < 1e-9);
    CHECK(difference(row(d2, 5, 4), Row{-.703166671, -.094100172, .033500236, .170640869, .682979662}) < 1e-9);
    CHECK(difference(row(d3, 7, 0), Row{.351631652, .148226678, .031607704, .001831976, .021363413, .186811021, .904448383}) < 1e-9);
    CHECK(difference(row(d3, 7, 3), Row{.004855965, -.042296693, .136716296, .883359726, -.441966617, .061824905, -.003853457}) < 1e-9);
}

TEST_CASE("small rotations give e3nn's generators of so(3)") {
    // (D(step) - D(-step)) / (2 step) = generator + O(step^2)
    const double step = 1e-5;
    const auto generator = [&](int l, const Angles& forward, const Angles& backward) {
        auto result = wigner_d({l, Parity::even}, forward);
        const auto other = wigner_d({l, Parity::even}, backward);
        for (std::size_t i = 0; i < result.size(); ++i) result[i] = (result[i] - other[i]) / (2 * step);
        return result;
    };
    const Angles x{0, step, 0}, minus_x{0, -step, 0}, y{step, 0, 0}, minus_y{-step, 0, 0};
    CHECK(difference(generator(1, x, minus_x), std::vector<double>{0, 0, 0, 0, 0, -1, 0, 1, 0}) < 1e-9);
    CHECK(difference(generator(1, y, minus_y), std::vector<double>{0, 0, 1, 0, 0, 0, -1, 0, 0}) < 1e-9);
    const double r3 = std::sqrt(3.0);
    CHECK(difference(generator(2, x, minus_x),
                     std::vector<double>{0, 1, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, -r3, 0, 0, 0, r3, 0, -1, 0, 0, 0, 1, 0}) < 1e-9);
    CHECK(difference(generator(2, y, minus_y),
                     std::vector<double>{0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, -2, 0, 0, 0, 0}) < 1e-9);
}

TEST_CASE("D is an orthogonal representation to 2e-14 up to degree 12") {
    std::mt19937_64 random(12);
    for (int trial = 0; trial < 10; ++trial) {
        const Quaternion a = random_quaternion(random), b = random_quaternion(random);
        const Quaternion ab{a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z, a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
                            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x, a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w};
        for (int l = 0; l <= 12; ++l) {
            const Irrep irrep{l, Parity::even};
            const auto da = wigner_d(irrep, a), db = wigner_d(irrep, b);
            CHECK(difference(product(da, db, irrep.dim()), wigner_d(irrep, ab)) < 2e-14);
            CHECK(difference(product(da, transposed(da, irrep.dim()), irrep.dim()), identity(irrep.dim())) < 2e-14);
        }
    }
}

TEST_CASE("rotation about the polar axis mixes cosine and sine of the same order only") {
    const double angle = .7;
    for (int l = 0; l <= 12; ++l) {
        const auto d = wigner_d({l, Parity::even}, Angles{angle, 0, 0});
        auto expected = identity(2 * l + 1);
        for (int m = 1; m <= l; ++m) {
            const int n = 2 * l + 1, plus = l + m, minus = l - m;
            expected[plus * n + plus] = expected[minus * n + minus] = std::cos(m * angle);
            expected[minus * n + plus] = std::sin(m * angle);
            expected[plus * n + minus] = -std::sin(m * angle);
        }
        CHECK(difference(d, expected) < 1e-14);
    }
}

TEST_CASE("inversion multiplies by the parity") {
    const Matrix3 inversion = {-1, 0, 0, 0, -1, 0, 0, 0, -1};
    auto minus_one = identity(3);
    for (double& element : minus_one) element = -element;
    CHECK(wigner_d({1, Parity::even}, inversion) == identity(3));
    CHECK(difference(wigner_d({1, Parity::odd}, inversion), minus_one) == 0.0);
    CHECK(wigner_d({2, Parity::odd}, inversion)[0] == -1.0);
    std::mt19937_64 random(13);
    const Matrix3 rotation = rotation_matrix(random_quaternion(random));
    for (int l = 0; l <= 12; ++l) {
        CHECK(difference(wigner_d({l, Parity::even}, negated(rotation)), wigner_d({l, Parity::even}, rotation)) < 1e-15);
        auto odd = wigner_d({l, Parity::odd}, rotation);
        for (double& element : odd) element = -element;
        CHECK(difference(wigner_d({l, Parity::odd}, negated(rotation)), odd) < 1e-15);
    }
    CHECK(difference(wigner_d({3, Parity::none}, rotation), wigner_d({3, Parity::odd}, rotation)) == 0.0);
    CHECK_THROWS_AS(wigner_d({1, Parity::none}, inversion), Error);
}

TEST_CASE("D of a list of irreps is block diagonal in mul_ir layout") {
    std::mt19937_64 random(14);
    const Matrix3 matrix = negated(rotation_matrix(random_quaternion(random)));
    const auto d = wigner_d(Irreps("2x1o+0x3e+1x0o+1x2e"), matrix);
    const auto d1 = wigner_d({1, Parity::odd}, matrix), d2 = wigner_d({2, Parity::even}, matrix);
    REQUIRE(d.size() == 144);
    std::vector<double> expected(144);
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) expected[i * 12 + j] = expected[(i + 3) * 12 + j + 3] = d1[i * 3 + j];
    }
    expected[6 * 12 + 6] = -1.0;
    for (int i = 0; i < 5; ++i) {
        for (int j = 0; j < 5; ++j) expected[(i + 7) * 12 + j + 7] = d2[i * 5 + j];
    }
    CHECK(difference(d, expected) == 0.0);
    CHECK(wigner_d(Irreps(""), matrix).empty());
    CHECK_THROWS_AS(wigner_d(Irreps("100000000x0e"), matrix), Error);
}

TEST_CASE("couplings are equivariant") {
    std::mt19937_64 random(15);
    const Matrix3 rotation = rotation_matrix(random_quaternion(random));
    for (int l1 = 0; l1 <= 6; ++l1) {
        for (int l2 = 0; l2 <= 6; ++l2) {
            for (int l3 = std::abs(l1 - l2); l3 <= std::min(6, l1 + l2); ++l3) CHECK(equivariance_error(l1, l2, l3, rotation) < 1e-14);
        }
    }
    CHECK(equivariance_error(12, 12, 12, rotation) < 1e-14);
    CHECK(equivariance_error(12, 7, 10, rotation) < 1e-14);
    CHECK(equivariance_error(9, 4, 12, rotation) < 1e-14);
}

TEST_CASE("a rotation in float32 still gives orthogonal D") {
    std::mt19937_64 random(16);
    Matrix3 rotation = rotation_matrix(random_quaternion(random));
    for (double& element : rotation) element = static_cast<float>(element);
    const auto d = wigner_d({12, Parity::even}, rotation);
    CHECK(difference(product(d, transposed(d, 25), 25), identity(25)) < 2e-14);
}

TEST_CASE("what is no rotation is refused") {
    const double nan = std::nan("");
    const Matrix3 stretched = {1.001, 0, 0, 0, 1, 0, 0, 0, 1}, zero = {}, undefined = {1, 0, 0, 0, nan, 0, 0, 0, 1},
                  mirror = {1, 0, 0, 0, -1, 0, 0, 0, 1};
    for (const Matrix3& matrix : {stretched, zero, undefined}) {
        CHECK_THROWS_AS(wigner_d({2, Parity::even}, matrix), Error);
        CHECK_THROWS_AS(rotation_angles(matrix), Error);
    }
    CHECK_THROWS_AS(rotation_angles(mirror), Error);
    CHECK_THROWS_AS(rotation_matrix(Quaternion{0, 0, 0, 0}), Error);
    CHECK_THROWS_AS(rotation_matrix(Quaternion{1, nan, 0, 0}), Error);
    CHECK_THROWS_AS(rotation_matrix(Quaternion{1, 0, 0, HUGE_VAL}), Error);
    CHECK_THROWS_AS(rotation_matrix(Angles{0, HUGE_VAL, 0}), Error);
    CHECK_THROWS_AS(wigner_d({13, Parity::even}, Angles{0, 0, 0}), Error);
    CHECK_THROWS_AS(wigner_d({-1, Parity::even}, Angles{0, 0, 0}), Error);
}
