#pragma once
// The units of moving atoms: eV, Angstrom, femtoseconds, atomic mass units, kelvin. CODATA 2022; e and k are exact.

namespace clebsch {

inline constexpr double elementary_charge = 1.602176634e-19;  ///< C
inline constexpr double atomic_mass_kilograms = 1.66053906892e-27;
inline constexpr double boltzmann = 1.380649e-23 / elementary_charge;  ///< eV / K

/// Accelerations in Angstrom / fs^2 are forces in eV / Angstrom over masses, times this.
inline constexpr double acceleration_unit = elementary_charge / atomic_mass_kilograms * 1e-10;
/// Kinetic energies in eV are m v^2 / 2 in amu Angstrom^2 / fs^2, times this.
inline constexpr double kinetic_unit = 1.0 / acceleration_unit;
/// Pressures in GPa are those in eV / Angstrom^3, times this.
inline constexpr double gigapascal = elementary_charge * 1e21;

}  // namespace clebsch
