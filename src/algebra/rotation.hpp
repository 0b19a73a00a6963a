#pragma once
// Rotations and their matrices on irreps. Conventions: y is the polar axis, angles are Y-X-Y (e3nn).
#include <array>
#include <vector>

#include "algebra/irreps.hpp"

namespace clebsch {

using Matrix3 = std::array<double, 9>;                            // row-major
struct Angles { double alpha, beta, gamma; };                     // R = Ry(alpha) Rx(beta) Ry(gamma), radians
struct Quaternion { double w, x, y, z; };                         // need not be normalised

Matrix3 rotation_matrix(const Angles& angles);
Matrix3 rotation_matrix(const Quaternion& quaternion);
/// Of a proper rotation; throws unless orthogonal with determinant 1 (1e-5... the message gives the deviation).
Angles rotation_angles(const Matrix3& rotation);

/// D(l) (row-major, (2l+1)^2) of an orthogonal 3x3 matrix; an improper one (determinant -1) multiplies by the irrep's parity
/// (SO(3) irreps: throws). Throws when the matrix is not orthogonal to 1e-5.
std::vector<double> wigner_d(Irrep irrep, const Matrix3& rotation);
std::vector<double> wigner_d(Irrep irrep, const Angles& angles);
std::vector<double> wigner_d(Irrep irrep, const Quaternion& quaternion);
/// Block-diagonal D on one row of the irreps in mul_ir layout, row-major dim x dim.
std::vector<double> wigner_d(const Irreps& irreps, const Matrix3& rotation);

}  // namespace clebsch
