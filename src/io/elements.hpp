#pragma once
// Chemical symbols and atomic numbers.
#include <optional>
#include <string_view>

namespace clebsch {

/// 1 for "H", ... 118 for "Og"; nothing for anything else (case matters: "CO" is no element).
std::optional<int> atomic_number(std::string_view symbol);
/// "H" for 1; throws Error outside 1..118.
std::string_view chemical_symbol(int atomic_number);

}  // namespace clebsch
