#pragma once
// The packed form of any path, as loops over its letters; made by schedule/general.cpp.
#include <cstdint>

#include "run/block.hpp"
#include "run/kernels/instruction_sets.hpp"

namespace clebsch {

/// Loops over the values of the letters (outermost first; the last one is innermost); factor f's number for letters v_0, v_1, ... and entry
/// e is
///     row[operand[f]][ base[f] + sum over l of (linear[f][l] v_l + triangular[f][l] v_l (v_l + 1) / 2) + entry_offset[e][f] ].
/// The quadratic part numbers pairs u < v. Letter l starts at one more than the largest value of the letters in after[l].
struct GeneralPath {
    int factors = 0;  ///< inputs, then the output
    int letters = 0;  ///< at most 26
    std::int64_t entries = 0;
    const int* operand = nullptr;                ///< [factors]
    const std::int64_t* base = nullptr;          ///< [factors]
    const std::int64_t* linear = nullptr;        ///< [factors][letters]
    const std::int64_t* triangular = nullptr;    ///< [factors][letters]; zero for the last letter
    const std::int64_t* extent = nullptr;        ///< [letters]
    const std::uint32_t* after = nullptr;        ///< [letters]; bit k: larger than letter k (k is further out)
    const double* value = nullptr;               ///< [entries]
    const std::int64_t* entry_offset = nullptr;  ///< [entries][factors]
};

CLEBSCH_PER_INSTRUCTION_SET(                                                           //
    void run_general(const GeneralPath* paths, int count, const Block<float>& block);  //
    void run_general(const GeneralPath* paths, int count, const Block<double>& block);)

}  // namespace clebsch
