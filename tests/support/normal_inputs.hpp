#pragma once
// Inputs for descriptions with rows of the test's choice: standard normal numbers that float32 holds exactly, uniform indices.
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "describe/reference.hpp"

namespace clebsch::testing {

ReferenceArray normal_array(std::mt19937_64& engine, std::int64_t count);

/// Every index is uniform over its rows (sorted if it says so), one in `masked` entries -1 (0: none).
ReferenceInputs normal_inputs(const Polynomial& polynomial, std::map<std::string, std::int64_t> rows, unsigned seed, int masked = 0);

/// The same with `rows` rows of the iteration space and `others` of every other space.
ReferenceInputs normal_inputs(const Polynomial& polynomial, std::int64_t rows, std::int64_t others, unsigned seed);

}  // namespace clebsch::testing
