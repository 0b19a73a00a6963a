#pragma once
// Pairs of close atoms from the vesin library, which is loaded when first used. The graph stage's only door to it.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clebsch {

/// How a user gets the library; part of the error when it is missing.
inline constexpr const char* vesin_install_command = "pip install 'vesin>=0.6,<0.7'";

/// Where to look before the other places: the library itself, vesin's package folder, or a Python prefix (sys.prefix). Without effect once
/// the library is loaded. Any thread may call it.
void set_vesin_path(const std::string& path);

/// What is loaded (loading it if need be) or, if nothing can be, why: one line for `clebsch info`. Never throws.
struct VesinStatus {
    bool found = false;
    std::string text;  ///< path, or what was tried
};
VesinStatus vesin_status();

/// All pairs (both directions) closer than `cutoff`, periodic images included, a point with its own image too, but not with itself:
/// vector = points[second] - points[first] + shift . box. In no particular order.
struct VesinPairs {
    std::vector<std::array<std::int64_t, 2>> points;
    std::vector<std::array<std::int32_t, 3>> shifts;
};
/// `positions`: 3 numbers a point. `box`: three row vectors, linearly independent. The caller has checked what vesin does not:
/// see the guards in neighbours.cpp. Throws Error(not_found) with the install command when the library is missing, Error(unsupported) when
/// its version does not fit, Error(invalid_argument) with vesin's own message. Thread-safe.
VesinPairs vesin_pairs(const std::vector<double>& positions, const std::array<double, 9>& box, const std::array<bool, 3>& periodic,
                       double cutoff);

/// The fields of VesinOptions in the text of a vesin.h, "type name" joined by ';'. Empty if there is no such struct. For the check that the
/// library found has the layout this code was written for: the struct is passed by value and changes between versions.
std::string vesin_options_fields(std::string_view header);

}  // namespace clebsch
