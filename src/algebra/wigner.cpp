#include "algebra/wigner.hpp"

#include <array>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "algebra/irreps.hpp"
#include "algebra/wigner_exact.hpp"
#include "base/error.hpp"

namespace clebsch {
namespace {

/// Phase, as a power of i, of the element (complex m, real m) of the matrix that takes real harmonics to complex ones; its magnitude is
/// 1/sqrt(2), or 1 for m = 0. The matrix of degree l carries a factor (-i)^l, which makes every real coupling coefficient real.
int basis_phase(int degree, int complex_m, int real_m) {
    const int condon_shortley = complex_m > 0 ? 2 * complex_m : 0;
    const int sine = real_m < 0 ? (complex_m > 0 ? 1 : -1) : 0;
    return condon_shortley + sine - degree;
}

/// Racah's sum for the coefficient <l1 m1 l2 m2 | l3 m1+m2>, multiplied by the factorials that make every term a product of binomials.
/// Each term is below 2^65 and there are at most 25, so 128 bits hold the sum.
ExactRoot::Integer racah_sum(int l1, int l2, int l3, int m1, int m2) {
    ExactRoot::Integer sum = 0;
    for (int k = 0; k <= l1 + l2 - l3; ++k) {
        const ExactRoot::Integer term =
            binomial(l1 + l2 - l3, k) * binomial(l1 - l2 + l3, l1 - m1 - k) * binomial(-l1 + l2 + l3, l2 + m2 - k);
        sum += k % 2 == 0 ? term : -term;
    }
    return sum;
}

std::vector<CouplingEntry> compute(int l1, int l2, int l3) {
    std::vector<CouplingEntry> entries;
    for (int i = 0; i <= 2 * l1; ++i) {
        for (int j = 0; j <= 2 * l2; ++j) {
            for (int k = 0; k <= 2 * l3; ++k) {
                const double value = to_double(exact_wigner_3j(l1, l2, l3, i, j, k));
                if (value != 0.0) entries.push_back({i, j, k, value});
            }
        }
    }
    return entries;
}

/// e3nn 0.4 chose signs by a rule on its stored tables, l1 <= l2 <= l3: the middle element is positive, or, where it vanishes
/// (l1 + l2 + l3 odd), the first non-zero one is. Its other index orders follow by symmetry, as in newer versions.
bool flips_in_e3nn_0_4(std::array<int, 3> degrees) {
    if ((degrees[0] + degrees[1] + degrees[2]) % 2 == 0) return false;
    if (degrees[0] > degrees[1]) std::swap(degrees[0], degrees[1]);
    if (degrees[1] > degrees[2]) std::swap(degrees[1], degrees[2]);
    if (degrees[0] > degrees[1]) std::swap(degrees[0], degrees[1]);
    return wigner_3j(degrees[0], degrees[1], degrees[2]).front().value < 0.0;
}

std::vector<CouplingEntry> negated(std::span<const CouplingEntry> entries) {
    std::vector<CouplingEntry> result(entries.begin(), entries.end());
    for (CouplingEntry& entry : result) entry.value = -entry.value;
    return result;
}

struct Slot {
    std::once_flag once;
    std::vector<CouplingEntry> entries;
};

/// Never destroyed, so that spans handed out stay valid in whatever runs at the end of the process.
Slot& slot(int l1, int l2, int l3, SignTable table) {
    constexpr int n = max_degree + 1;
    static auto& slots = *new std::array<Slot, 2 * n * n * n>;
    return slots[((l1 * n + l2) * n + l3) * 2 + (table == SignTable::e3nn_0_4 ? 1 : 0)];
}

}  // namespace

ExactRoot exact_wigner_3j(int l1, int l2, int l3, int i, int j, int k) {
    ExactRoot result;
    const int m1 = i - l1, m2 = j - l2, m3 = k - l3;
    // Complex components (p1, p2, p1 + p2), p = +-m, that have these real ones as their cosine or sine part: a pair of opposite signs, or
    // zeros.
    const int p1 = std::abs(m1);
    const int p2 = p1 + std::abs(m2) == std::abs(m3) ? std::abs(m2) : -std::abs(m2);
    const int p3 = p1 + p2;
    if (std::abs(p3) != std::abs(m3) || l3 < std::abs(l1 - l2) || l3 > l1 + l2) return result;
    const int phase = basis_phase(l1, p1, m1) + basis_phase(l2, p2, m2) - basis_phase(l3, p3, m3);
    const int opposite = basis_phase(l1, -p1, m1) + basis_phase(l2, -p2, m2) - basis_phase(l3, -p3, m3) + 2 * (l1 + l2 - l3);
    const int nonzero = (m1 != 0) + (m2 != 0) + (m3 != 0);
    if (nonzero > 0 && ((phase - opposite) & 3) != 0) return result;  // the pair cancels

    result.factor = racah_sum(l1, l2, l3, p1, p2);
    if ((phase & 3) == 2) result.factor = -result.factor;
    // The pair of equal terms gives 2, the basis 2^(-nonzero/2); the norm sqrt(2 l3 + 1) of all coefficients is divided out.
    if (nonzero > 0) result.square.multiply(2, 2 - nonzero);
    for (const auto& [degree, m] : {std::pair{l1, p1}, std::pair{l2, p2}, std::pair{l3, p3}}) {
        result.square.multiply_factorial(degree + m).multiply_factorial(degree - m);
    }
    result.square.multiply_factorial(l1 + l2 - l3, -1).multiply_factorial(l1 - l2 + l3, -1).multiply_factorial(-l1 + l2 + l3, -1);
    result.square.multiply_factorial(l1 + l2 + l3 + 1, -1);
    return result;
}

std::span<const CouplingEntry> wigner_3j(int l1, int l2, int l3, SignTable table) {
    for (const int degree : {l1, l2, l3}) {
        if (degree < 0 || degree > max_degree) {
            fail("wigner_3j(" + std::to_string(l1) + ", " + std::to_string(l2) + ", " + std::to_string(l3) + "): degree " +
                 std::to_string(degree) + " is not one of 0 to " + std::to_string(max_degree));
        }
    }
    if (table != SignTable::e3nn_0_5 && table != SignTable::e3nn_0_4) fail("wigner_3j: unknown sign table");
    if (l3 < std::abs(l1 - l2) || l3 > l1 + l2) return {};
    if (table == SignTable::e3nn_0_4 && !flips_in_e3nn_0_4({l1, l2, l3})) return wigner_3j(l1, l2, l3);
    Slot& wanted = slot(l1, l2, l3, table);
    std::call_once(wanted.once,
                   [&] { wanted.entries = table == SignTable::e3nn_0_5 ? compute(l1, l2, l3) : negated(wigner_3j(l1, l2, l3)); });
    return wanted.entries;
}

}  // namespace clebsch
