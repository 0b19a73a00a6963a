#pragma once
// Random numbers as a pure function of where they are used: no state to keep, the same bits on every machine and for any order of calls.
// Nothing here uses the system's mathematical functions, whose last digits differ between machines.
#include <array>
#include <cstdint>

namespace clebsch {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// What random numbers are for; numbers of different purposes are independent.
enum class RandomPurpose : std::uint32_t { initial_velocities = 1, friction = 2, rescaling = 3 };

/// Two independent standard normal numbers, by Marsaglia's polar method. Any change of an argument gives independent ones.
std::array<double, 2> normal_pair(std::uint64_t seed, RandomPurpose purpose, std::uint64_t step, std::uint32_t index);

/// Natural logarithm and exponential from additions, multiplications and divisions alone, to 2e-16 of the larger of 1 and the result;
/// arguments: positive normal numbers, and -700 to 700.
double portable_log(double x);
double portable_exp(double x);

}  // namespace clebsch
