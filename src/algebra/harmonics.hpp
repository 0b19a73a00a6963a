#pragma once
// Real spherical harmonics as exact polynomials in (x, y, z): homogeneous of degree l, e3nn's basis and order (m = -l..l).
#include <span>
#include <vector>

namespace clebsch {

/// Size of the result on the unit sphere: component: sum_m Y^2 = 2l+1; norm: 1; integral: (2l+1)/(4 pi).
enum class HarmonicsNormalization { component, norm, integral };

struct Monomial {
    int m;         ///< component 0 .. 2l
    int x, y, z;   ///< exponents, x + y + z = l
    double value;  ///< correctly rounded coefficient, 'component' normalization
};

/// All non-zero monomials of Y_l, 'component' normalization, sorted by (m, x, y, z). 0 <= l <= 12, else throws. Thread safe, kept after
/// first use.
std::span<const Monomial> harmonic_monomials(int l);

/// Factor by which 'component' values are multiplied for another normalization.
double harmonics_scale(int l, HarmonicsNormalization normalization);

/// Coefficients G of the recurrence Y_l[m] = sum_{i, n} G(i, n, m) r_i Y_{l-1}[n] ('component' normalization, r = (x, y, z)); 1 <= l <= 12,
/// else throws. Sorted by (i, n, m), correctly rounded. Thread safe, kept after first use.
/// G is a multiple of wigner_3j(1, l-1, l); the recurrence is exact and, unlike expanded monomials, loses no accuracy at high l.
struct RecurrenceEntry {
    int i, n, m;
    double value;
};
std::span<const RecurrenceEntry> harmonic_recurrence(int l);

/// Values for one vector in float64, degrees 0..lmax concatenated, (lmax+1)^2 numbers. `normalize`: the vector is divided by its length
/// first, or, as in e3nn, by 1e-12 where it is shorter than that (zero stays zero).
std::vector<double> spherical_harmonics(int lmax, const double vector[3], bool normalize, HarmonicsNormalization normalization);

}  // namespace clebsch
