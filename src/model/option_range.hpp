#pragma once
// What numbers that a user chooses may be. Beyond are slips of a unit or a sign, which would show as a broken structure much later.
#include <cstdint>
#include <string>

namespace clebsch {

struct OptionRange {
    double least, most;  ///< both are good
    const char* unit;
};

/// Throws Error: "`option`: expected 1e-06 to 1000 fs, got 1e+300". NaN is in no range.
void require_in(const OptionRange& range, const std::string& option, double value);
void require_in(const OptionRange& range, const std::string& option, std::int64_t value);

constexpr OptionRange steps_range{0, 9007199254740992, "steps"};  ///< 2^53: what a restart file can count
constexpr OptionRange skin_range{0, 20, "Angstrom"};              ///< of a neighbour list; candidates grow with the cube of cutoff and skin

}  // namespace clebsch
