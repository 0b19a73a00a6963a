#pragma once
// Chemical symbols, atomic numbers and weights.
#include <optional>
#include <string_view>

namespace clebsch {

/// 1 for "H", ... 118 for "Og"; nothing for anything else (case matters: "CO" is no element).
std::optional<int> atomic_number(std::string_view symbol);
/// "H" for 1; throws Error outside 1..118.
std::string_view chemical_symbol(int atomic_number);
/// In atomic mass units: the standard atomic weight, or the mass of the most stable isotope. Throws Error outside 1..118.
double atomic_weight(int atomic_number);

}  // namespace clebsch
