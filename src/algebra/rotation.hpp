#pragma once
// Rotations and their matrices on irreps. Conventions: y is the polar axis, angles are Y-X-Y (e3nn).
#include <array>
#include <vector>

#include "algebra/irreps.hpp"

namespace clebsch {

using Matrix3 = std::array<double, 9>;  // row-major
struct Angles {
    double alpha, beta, gamma;
};  // R = Ry(alpha) Rx(beta) Ry(gamma), radians
struct Quaternion {
    double w, x, y, z;
};  // need not be normalised

/// Both throw on numbers that are not finite, the second on a zero quaternion.
Matrix3 rotation_matrix(const Angles& angles);
Matrix3 rotation_matrix(const Quaternion& quaternion);
/// Of a proper rotation, beta in [0, pi]; exactly at a pole alpha is 0. Throws unless orthogonal to 1e-5 with determinant 1.
Angles rotation_angles(const Matrix3& rotation);

/// D(l), row-major, (2l+1)^2 numbers: Y_l(R v) = D(l) Y_l(v), D(1) = R. Precise to about 1e-14 at l = 12.
/// The matrix must be orthogonal to 1e-5 (else throws, with the deviation); what deviation is left is removed first, so that float32 input
/// gives orthogonal D. A determinant of -1 multiplies by the irrep's parity (SO(3) irreps: throws). Thread safe.
std::vector<double> wigner_d(Irrep irrep, const Matrix3& rotation);
std::vector<double> wigner_d(Irrep irrep, const Angles& angles);
std::vector<double> wigner_d(Irrep irrep, const Quaternion& quaternion);
/// Block-diagonal D on one row of the irreps in mul_ir layout, row-major dim x dim; dim up to 16384, else throws.
std::vector<double> wigner_d(const Irreps& irreps, const Matrix3& rotation);

}  // namespace clebsch
