#include "algebra/rotation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "algebra/wigner.hpp"
#include "base/error.hpp"

namespace clebsch {
namespace {

Matrix3 product(const Matrix3& a, const Matrix3& b) {
    Matrix3 result{};
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            for (int k = 0; k < 3; ++k) result[3 * i + j] += a[3 * i + k] * b[3 * k + j];
        }
    }
    return result;
}

Matrix3 transposed(const Matrix3& a) { return {a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]}; }

double determinant(const Matrix3& a) {
    return a[0] * (a[4] * a[8] - a[5] * a[7]) - a[1] * (a[3] * a[8] - a[5] * a[6]) + a[2] * (a[3] * a[7] - a[4] * a[6]);
}

Matrix3 about_y(double angle) {
    const double c = std::cos(angle), s = std::sin(angle);
    return {c, 0, s, 0, 1, 0, -s, 0, c};
}

Matrix3 about_x(double angle) {
    const double c = std::cos(angle), s = std::sin(angle);
    return {1, 0, 0, 0, c, -s, 0, s, c};
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

/// The orthogonal matrix next to one that is orthogonal to 1e-5, so that float32 input loses nothing at high degrees.
/// A step of R <- R (3 - R^T R) / 2 squares the deviation.
Matrix3 orthogonalised(const char* what, Matrix3 rotation) {
    constexpr double tolerance = 1e-5;
    for (const double element : rotation) {
        if (!std::isfinite(element)) fail(std::string(what) + ": the matrix has an element that is not finite");
    }
    for (int step = 0; step < 3; ++step) {
        Matrix3 correction = product(transposed(rotation), rotation);
        double deviation = 0.0;
        for (int i = 0; i < 9; ++i) {
            const double identity = i % 4 == 0 ? 1.0 : 0.0;
            deviation = std::max(deviation, std::abs(correction[i] - identity));
            correction[i] = 0.5 * (3.0 * identity - correction[i]);
        }
        if (!(deviation <= tolerance)) {
            fail(std::string(what) + ": expected an orthogonal matrix (to 1e-5), the largest element of |R^T R - 1| is " +
                 number(deviation));
        }
        if (deviation < 1e-15) break;
        rotation = product(rotation, correction);
    }
    return rotation;
}

/// D of degree l from that of degree l-1 and the 3x3 matrix: the coupling 1 x (l-1) -> l is invariant and its norm per component is
/// 1/sqrt(2l+1), so D_l[m, m'] = (2l+1) sum C[i, n, m] R[i, i'] D_{l-1}[n, n'] C[i', n', m']. An isometry in each step: errors add up, they
/// do not grow.
std::vector<double> next_degree(int l, const Matrix3& rotation, const std::vector<double>& lower) {
    const int size = 2 * l + 1, lower_size = 2 * l - 1;
    std::vector<double> right(3 * lower_size * size);  // [i, n, m'] = sum over (i', n') of R D_{l-1} C
    for (const CouplingEntry& entry : wigner_3j(1, l - 1, l)) {
        for (int i = 0; i < 3; ++i) {
            const double factor = rotation[3 * i + entry.i] * entry.value;
            for (int n = 0; n < lower_size; ++n) right[(i * lower_size + n) * size + entry.k] += factor * lower[n * lower_size + entry.j];
        }
    }
    std::vector<double> result(size * size);
    for (const CouplingEntry& entry : wigner_3j(1, l - 1, l)) {
        const double factor = size * entry.value;
        for (int m = 0; m < size; ++m) result[entry.k * size + m] += factor * right[(entry.i * lower_size + entry.j) * size + m];
    }
    return result;
}

/// D of every degree 0..lmax of a proper rotation that is exactly orthogonal.
std::vector<std::vector<double>> all_degrees(int lmax, const Matrix3& rotation) {
    std::vector<std::vector<double>> result = {{1.0}};
    if (lmax >= 1) result.emplace_back(rotation.begin(), rotation.end());
    for (int l = 2; l <= lmax; ++l) result.push_back(next_degree(l, rotation, result.back()));
    return result;
}

/// An orthogonal matrix as a proper rotation and whether an inversion goes with it.
struct Split {
    Matrix3 rotation;
    bool inversion;
};

Split split(const Matrix3& matrix) {
    Split result{orthogonalised("wigner_d", matrix), false};
    result.inversion = determinant(result.rotation) < 0.0;
    if (result.inversion) {
        for (double& element : result.rotation) element = -element;
    }
    return result;
}

double inversion_sign(Irrep irrep, bool inversion) {
    if (!inversion) return 1.0;
    if (irrep.parity == Parity::none) {
        fail("wigner_d: the matrix has determinant -1, and the irrep " + to_text(irrep) + " of SO(3) has no parity to transform it with");
    }
    return irrep.parity == Parity::odd ? -1.0 : 1.0;
}

void check(Irrep irrep) { Irreps({{1, irrep}}); }

}  // namespace

Matrix3 rotation_matrix(const Angles& angles) {
    if (!std::isfinite(angles.alpha) || !std::isfinite(angles.beta) || !std::isfinite(angles.gamma)) {
        fail("rotation_matrix: angles (" + number(angles.alpha) + ", " + number(angles.beta) + ", " + number(angles.gamma) +
             ") are not finite");
    }
    return product(about_y(angles.alpha), product(about_x(angles.beta), about_y(angles.gamma)));
}

Matrix3 rotation_matrix(const Quaternion& quaternion) {
    const double largest = std::max({std::abs(quaternion.w), std::abs(quaternion.x), std::abs(quaternion.y), std::abs(quaternion.z)});
    if (!(largest > 0.0) || !std::isfinite(quaternion.w + quaternion.x + quaternion.y + quaternion.z)) {
        fail("rotation_matrix: quaternion (" + number(quaternion.w) + ", " + number(quaternion.x) + ", " + number(quaternion.y) + ", " +
             number(quaternion.z) + ") is zero or not finite");
    }
    double w = quaternion.w / largest, x = quaternion.x / largest, y = quaternion.y / largest, z = quaternion.z / largest;
    const double length = std::sqrt(w * w + x * x + y * y + z * z);
    w /= length, x /= length, y /= length, z /= length;
    return {1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), 2 * (x * y + z * w),    1 - 2 * (x * x + z * z),
            2 * (y * z - x * w),     2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)};
}

Angles rotation_angles(const Matrix3& matrix) {
    const Matrix3 rotation = orthogonalised("rotation_angles", matrix);
    if (determinant(rotation) < 0.0) fail("rotation_angles: expected a proper rotation, the determinant is -1");
    // R maps the polar axis y to (sin b sin a, cos b, sin b cos a). atan2 instead of acos keeps b precise near the poles; + 0.0 turns -0
    // into 0.
    // hypot of three numbers is a template; that of two would tie the library to glibc 2.35.
    const double x = rotation[1] + 0.0, y = rotation[4], z = rotation[7] + 0.0;
    const double alpha = std::atan2(x, z), beta = std::atan2(std::hypot(x, z, 0.0), y);
    const Matrix3 rest = product(transposed(rotation_matrix(Angles{alpha, beta, 0.0})), rotation);
    return {alpha, beta, std::atan2(rest[2] + 0.0, rest[0])};
}

std::vector<double> wigner_d(Irrep irrep, const Matrix3& rotation) {
    check(irrep);
    const Split parts = split(rotation);
    const double sign = inversion_sign(irrep, parts.inversion);
    std::vector<double> result = all_degrees(irrep.degree, parts.rotation)[irrep.degree];
    for (double& element : result) element *= sign;
    return result;
}

std::vector<double> wigner_d(Irrep irrep, const Angles& angles) { return wigner_d(irrep, rotation_matrix(angles)); }

std::vector<double> wigner_d(Irrep irrep, const Quaternion& quaternion) { return wigner_d(irrep, rotation_matrix(quaternion)); }

std::vector<double> wigner_d(const Irreps& irreps, const Matrix3& rotation) {
    constexpr std::int64_t largest = std::int64_t{1} << 14;  // 2 GiB of matrix
    const std::int64_t dim = irreps.dim();
    if (dim > largest) {
        fail("wigner_d: a dense matrix of " + std::to_string(dim) + " rows is too large (at most " + std::to_string(largest) +
             "): use the matrix of each irrep");
    }
    const Split parts = split(rotation);
    int lmax = 0;
    for (const IrrepBlock& block : irreps) lmax = std::max(lmax, block.irrep.degree);
    const auto degrees = all_degrees(lmax, parts.rotation);
    std::vector<double> result(static_cast<std::size_t>(dim * dim));
    std::int64_t offset = 0;
    for (const IrrepBlock& block : irreps) {
        const int size = block.irrep.dim();
        const double sign = inversion_sign(block.irrep, parts.inversion);
        const std::vector<double>& degree = degrees[block.irrep.degree];
        for (std::int64_t channel = 0; channel < block.multiplicity; ++channel, offset += size) {
            for (int m = 0; m < size; ++m) {
                for (int n = 0; n < size; ++n) result[(offset + m) * dim + offset + n] = sign * degree[m * size + n];
            }
        }
    }
    return result;
}

}  // namespace clebsch
