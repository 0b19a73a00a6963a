#pragma once
// Molecular dynamics on any ForceField: velocity Verlet, and two thermostats around it. Units: eV, Angstrom, fs, amu, K (model/units.hpp).
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/structure.hpp"
#include "model/force_field.hpp"
#include "model/neighbour_list.hpp"
#include "model/option_range.hpp"

namespace clebsch {

enum class Ensemble {
    nve,        ///< velocity Verlet: constant energy
    langevin,   ///< constant temperature by friction and noise; BAOAB splitting (Leimkuhler, Matthews, Appl. Math. Res. Express 2013, 34)
    rescaling,  ///< constant temperature by stochastic velocity rescaling (Bussi, Donadio, Parrinello, J. Chem. Phys. 126 (2007) 014101)
};
std::string to_text(Ensemble ensemble);          ///< "nve", "langevin", "svr"
Ensemble parse_ensemble(std::string_view text);  ///< the inverse; throws Error

struct DynamicsOptions {
    Ensemble ensemble = Ensemble::nve;
    double timestep = 0.5;       ///< fs
    double temperature = 300;    ///< K, of the thermostat; unused in nve
    double friction = 0.01;      ///< 1/fs, of langevin
    double time_constant = 100;  ///< fs, of rescaling
    std::uint64_t seed = 0;      ///< of the thermostat's noise
    double skin = 0.5;           ///< Angstrom, of the neighbour list; results do not depend on it
    friend bool operator==(const DynamicsOptions&, const DynamicsOptions&) = default;
};

constexpr OptionRange timestep_range{1e-6, 1e3, "fs"}, temperature_range{0, 1e6, "K"}, friction_range{1e-9, 1e6, "per fs"},
    time_constant_range{1e-6, 1e12, "fs"};
/// Throws Error naming the option, `before` its name ("--" in the program), for values out of these ranges, and for a friction or time
/// constant that is too strong for the time step.
void check_options(const DynamicsOptions& options, const std::string& before);

/// All that the next step depends on, besides model and options. Positions are not wrapped into the cell: atoms keep their path.
struct MovingAtoms {
    Structure structure;
    std::vector<int> atomic_numbers;
    std::vector<double> masses;      ///< amu
    std::vector<double> velocities;  ///< Angstrom / fs, 3 an atom
    std::int64_t step = 0;
    double heat = 0.0;  ///< eV that the thermostat has put in since step 0

    std::int64_t atoms() const { return structure.atoms(); }
    friend bool operator==(const MovingAtoms&, const MovingAtoms&) = default;
};

/// At rest, with standard atomic weights.
MovingAtoms atoms_at_rest(Structure structure, std::vector<int> atomic_numbers);
/// Velocities of the Maxwell-Boltzmann distribution, the motion of the centre of mass taken off (a single atom keeps its own: it is all
/// there is). Not rescaled: the temperature of a small system differs from `temperature` as it should. The same bits on every machine.
std::vector<double> thermal_velocities(std::span<const double> masses, double temperature, std::uint64_t seed);
/// eV
double kinetic_energy(std::span<const double> masses, std::span<const double> velocities);

/// One trajectory. Belongs to one thread at a time. A second one that starts from atoms() with the same options goes on with the same bits:
/// forces are a function of positions, noise of seed and step.
class MolecularDynamics {
 public:
    /// Computes the forces at the start. `field` must outlive this. Throws Error naming the option or atom for values out of range, and
    /// what the force field throws.
    MolecularDynamics(ForceField& field, MovingAtoms start, const DynamicsOptions& options);

    /// One time step. Throws Error naming step and atom when energy or a force is no longer finite; the state is of no use then.
    void advance();

    const MovingAtoms& atoms() const { return atoms_; }
    const Energies& energies() const { return energies_; }
    const NeighbourList& neighbours() const { return neighbours_; }

    double potential_energy() const { return energies_.energy.front(); }
    double kinetic_energy() const { return clebsch::kinetic_energy(atoms_.masses, atoms_.velocities); }
    /// Constant up to the error of the time step: potential and kinetic energy less the thermostat's heat.
    double conserved_energy() const { return potential_energy() + kinetic_energy() - atoms_.heat; }
    /// 3 per atom, less 3 where the motion of the centre of mass is conserved (nve and rescaling of more than one atom).
    std::int64_t degrees_of_freedom() const;
    double temperature() const;  ///< K
    double pressure() const;     ///< eV / Angstrom^3, kinetic part included; 0 unless periodic in three directions

 private:
    void kick(double time);
    void drift(double time);
    void compute_forces();
    void rub();
    void rescale();

    ForceField& field_;
    MovingAtoms atoms_;
    DynamicsOptions options_;
    NeighbourList neighbours_;
    Energies energies_;
};

}  // namespace clebsch
