#include "algebra/harmonics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <string>

#include "algebra/irreps.hpp"
#include "algebra/wigner.hpp"
#include "algebra/wigner_exact.hpp"
#include "base/error.hpp"

namespace clebsch {
namespace {

using Integer = ExactRoot::Integer;

Integer factorial_quotient(int n, int below) {  // n! / below!
    Integer result = 1;
    for (int value = below + 1; value <= n; ++value) result *= value;
    return result;
}

/// Y_lm = sqrt((2 - [m = 0]) (2l+1) (l-|m|)! / (l+|m|)!) P_lm(y, r^2) T_m(z, x), where
/// T_m is the real (m >= 0) or imaginary part of (z + i x)^|m|, and
/// P_lm = 2^-l sum_k (-1)^k C(l, k) C(2l-2k, l) (l-2k)!/(l-2k-|m|)! r^2k y^(l-2k-|m|)
/// is the |m|-th derivative of Legendre's polynomial, made homogeneous. Everything but the root is an integer over 2^l.
std::vector<Monomial> compute_monomials(int l) {
    std::vector<Monomial> monomials;
    for (int component = 0; component <= 2 * l; ++component) {
        const int m = std::abs(component - l);
        const bool imaginary = component < l;
        std::map<std::array<int, 3>, Integer> factors;
        for (int k = 0; 2 * k <= l - m; ++k) {
            const Integer legendre =
                (k % 2 ? -1 : 1) * binomial(l, k) * binomial(2 * l - 2 * k, l) * factorial_quotient(l - 2 * k, l - 2 * k - m);
            for (int a = 0; a <= k; ++a) {  // x^2a y^2b z^2(k-a-b) of r^2k
                for (int b = 0; a + b <= k; ++b) {
                    const Integer radial = binomial(k, a) * binomial(k - a, b);
                    for (int t = imaginary ? 1 : 0; t <= m; t += 2) {  // x^t z^(m-t) of (z + i x)^m
                        const Integer azimuthal = (t / 2 % 2 ? -1 : 1) * binomial(m, t);
                        factors[{2 * a + t, l - 2 * k - m + 2 * b, 2 * (k - a - b) + m - t}] += legendre * radial * azimuthal;
                    }
                }
            }
        }
        ExactRoot coefficient;
        coefficient.square.multiply(m == 0 ? 1 : 2).multiply(2 * l + 1).multiply(2, -2 * l);
        coefficient.square.multiply_factorial(l - m).multiply_factorial(l + m, -1);
        for (const auto& [exponents, factor] : factors) {
            if (factor == 0) continue;
            coefficient.factor = factor;
            monomials.push_back({component, exponents[0], exponents[1], exponents[2], to_double(coefficient)});
        }
    }
    return monomials;
}

/// The projection of r x Y_{l-1} on degree l is a multiple of Y_l. On the polar axis Y_l[0] = sqrt(2l+1), and there the coupling's middle
/// element sqrt(l / ((2l-1)(2l+1))) is all that is left: the multiple is (2l+1) / sqrt(l).
std::vector<RecurrenceEntry> compute_recurrence(int l) {
    std::vector<RecurrenceEntry> entries;
    for (const CouplingEntry& coupling : wigner_3j(1, l - 1, l)) {
        ExactRoot value = exact_wigner_3j(1, l - 1, l, coupling.i, coupling.j, coupling.k);
        value.square.multiply(2 * l + 1, 2).multiply(l, -1);
        entries.push_back({coupling.i, coupling.j, coupling.k, to_double(value)});
    }
    return entries;
}

/// One table per degree, computed on first use, never destroyed.
template <class Entry>
std::span<const Entry> table(int l, std::vector<Entry> (*compute)(int)) {
    struct Slot {
        std::once_flag once;
        std::vector<Entry> entries;
    };
    static auto& slots = *new std::array<Slot, max_degree + 1>;
    Slot& slot = slots[l];
    std::call_once(slot.once, [&] { slot.entries = compute(l); });
    return slot.entries;
}

void check_degree(const char* what, int l, int least) {
    if (l < least || l > max_degree) {
        fail(std::string(what) + ": degree " + std::to_string(l) + " is not one of " + std::to_string(least) + " to " +
             std::to_string(max_degree));
    }
}

}  // namespace

std::span<const Monomial> harmonic_monomials(int l) {
    check_degree("harmonic_monomials", l, 0);
    return table<Monomial>(l, compute_monomials);
}

std::span<const RecurrenceEntry> harmonic_recurrence(int l) {
    check_degree("harmonic_recurrence", l, 1);
    return table<RecurrenceEntry>(l, compute_recurrence);
}

double harmonics_scale(int l, HarmonicsNormalization normalization) {
    switch (normalization) {
        case HarmonicsNormalization::component:
            return 1.0;
        case HarmonicsNormalization::norm:
            return 1.0 / std::sqrt(2.0 * l + 1.0);
        case HarmonicsNormalization::integral:
            return 0.5 * std::numbers::inv_sqrtpi;
    }
    fail("harmonics_scale: unknown normalization");
}

std::vector<double> spherical_harmonics(int lmax, const double vector[3], bool normalize, HarmonicsNormalization normalization) {
    check_degree("spherical_harmonics", lmax, 0);
    std::array<double, 3> r = {vector[0], vector[1], vector[2]};
    if (normalize) {
        constexpr double floor = 1e-12;  // that of e3nn (torch.nn.functional.normalize)
        const double length = std::max(std::hypot(r[0], r[1], r[2]), floor);
        for (double& component : r) component /= length;
    }
    std::vector<double> values((lmax + 1) * (lmax + 1));
    values[0] = 1.0;
    for (int l = 1; l <= lmax; ++l) {
        const double* lower = values.data() + (l - 1) * (l - 1);
        double* current = values.data() + l * l;
        for (const RecurrenceEntry& entry : harmonic_recurrence(l)) current[entry.m] += entry.value * r[entry.i] * lower[entry.n];
    }
    for (int l = 0; l <= lmax; ++l) {
        const double scale = harmonics_scale(l, normalization);
        for (int m = 0; m <= 2 * l; ++m) values[l * l + m] *= scale;
    }
    return values;
}

}  // namespace clebsch
