#pragma once
// Multiply-adds between registers: what an instruction set can do at best.
#include <cstdint>

#include "run/kernels/instruction_sets.hpp"

namespace clebsch {

CLEBSCH_PER_INSTRUCTION_SET(                                                                                        //
    /* Does `rounds` rounds of multiply-adds from the numbers at `start`, writes a result there so that nothing is left out; returns how many they were. */ //
    std::int64_t spin_multiply_adds(std::int64_t rounds, float* start);                                             //
    std::int64_t spin_multiply_adds(std::int64_t rounds, double* start);)

}  // namespace clebsch
