#pragma once
// Real coupling coefficients (Wigner 3j in the real basis), from exact integer arithmetic.
#include <span>
#include <vector>

namespace clebsch {

/// Sign convention of the coupling tables: e3nn 0.5 and newer, or e3nn 0.4 (44 of 203 sorted triples up to l = 11 differ in sign).
enum class SignTable { e3nn_0_5, e3nn_0_4 };

struct CouplingEntry {
    int i, j, k;   ///< components of l1, l2, l3 (0 is m = -l)
    double value;  ///< correctly rounded
};

/// Non-zero entries of e3nn's wigner_3j(l1, l2, l3), sorted by (i, j, k); their squares sum to 1. Empty when the triangle rule fails.
/// 0 <= l <= 12 each. Computed on first use and kept for the life of the process; thread safe.
std::span<const CouplingEntry> wigner_3j(int l1, int l2, int l3, SignTable table = SignTable::e3nn_0_5);

}  // namespace clebsch
