#pragma once
// Whether a potential's answers are what physics asks of them: derivatives against finite differences, symmetries, float32 beside float64.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/potential.hpp"

namespace clebsch {

/// One comparison; it passes when the error is at most the bound.
struct PotentialCheck {
    std::string what;
    double error = 0, bound = 0;
    std::string unit;

    bool passed() const { return error <= bound; }  ///< an error that is not a number does not pass
};

struct PotentialCheckOptions {
    std::uint64_t seed = 1;        ///< of directions, strains, rotations and permutations
    double force_bound = 1e-7;     ///< eV/A: forces against central differences of the energy
    double stress_bound = 1e-8;    ///< eV/A^3: stress likewise
    double virial_bound = 1e-6;    ///< eV: the virial likewise, where there is no volume
    double symmetry_bound = 1e-9;  ///< eV per atom; forces relative to the largest, or eV/A if that is below 1
    double float32_energy_bound = 2e-6, float32_force_bound = 1e-4, float32_stress_bound = 1e-6;  ///< eV per atom, eV/A, eV/A^3
    bool inversion = true;  ///< rotations come with an inversion; false for models of SO(3), which may tell left from right
    std::function<void(int)> progress = {};  ///< called before each evaluation with its number, from 1
};

/// `exact` computes in float64; `single`, if given, is the same model in float32. About 30 evaluations in float64.
std::vector<PotentialCheck> check_potential(Potential& exact, Potential* single, const Structure& structure,
                                            std::span<const int> atomic_numbers, const PotentialCheckOptions& options = {});

}  // namespace clebsch
