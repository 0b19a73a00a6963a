#pragma once
// Where a factor's number lies as a function of the letters of its path: what every kernel that loops over letters needs.
#include <cstdint>
#include <string>

#include "describe/polynomial.hpp"

namespace clebsch {

/// A factor's flat channel: constant + sum over letters of linear[letter] v + triangular[letter] v (v + 1) / 2, by letter - 'a'.
struct LetterPlace {
    std::int64_t constant = 0;
    std::int64_t linear[26] = {};
    std::int64_t triangular[26] = {};
};
LetterPlace place_of(const Path& path, const Factor& factor);

}  // namespace clebsch
