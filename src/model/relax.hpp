#pragma once
// Finding a minimum of the energy: positions alone, or positions and cell.
#include <cstdint>
#include <string>
#include <vector>

#include "graph/structure.hpp"
#include "model/force_field.hpp"
#include "model/neighbour_list.hpp"
#include "model/option_range.hpp"

namespace clebsch {

struct RelaxOptions {
    bool free_cell = false;
    double force = 0.01;   ///< eV / Angstrom: converged when no atom's force is longer
    double stress = 1e-4;  ///< eV / Angstrom^3 (0.016 GPa): and, with a free cell, no component of the stress is larger
    double skin = 0.5;     ///< Angstrom, of the neighbour list
};

constexpr OptionRange force_range{1e-12, 1e6, "eV/A"}, stress_range{1e-12, 1e6, "eV/A^3"};
/// Throws Error naming the option as the program does, `before` its name ("--" there), for values out of these ranges.
void check_options(const RelaxOptions& options, const std::string& before);

/// FIRE (Bitzek, Koskinen, Gaehler, Moseler, Gumbsch, Phys. Rev. Lett. 97 (2006) 170201) with its published constants, unit masses, and
/// steps of at most 0.1 Angstrom. A free cell adds the six components of a symmetric strain, in units in which a solid is about as stiff
/// along them as along an atom's coordinates. Belongs to one thread at a time.
class Relaxation {
 public:
    /// Computes the forces at the start. `field` must outlive this. Throws Error for tolerances that are not positive, and for a free cell
    /// of a structure that is not periodic in three directions.
    Relaxation(ForceField& field, Structure start, std::vector<int> atomic_numbers, const RelaxOptions& options);

    /// One step: one evaluation of the force field. Throws Error when energy or forces are no longer finite.
    void advance();

    bool converged() const;
    double max_force() const;   ///< eV / Angstrom: length of the longest force
    double max_stress() const;  ///< eV / Angstrom^3: largest component in size; 0 unless periodic in three directions
    std::int64_t steps() const { return steps_; }
    const Structure& structure() const { return structure_; }
    const std::vector<int>& atomic_numbers() const { return atomic_numbers_; }
    const Energies& energies() const { return energies_; }

 private:
    void compute_forces();
    void move(double time);

    ForceField& field_;
    Structure structure_;
    std::vector<int> atomic_numbers_;
    RelaxOptions options_;
    NeighbourList neighbours_;
    Energies energies_;
    double strain_length_ = 1.0;            // Angstrom: a strain of 1 counts as a displacement of this length
    std::vector<double> force_, velocity_;  // of every coordinate: 3 an atom, then, with a free cell, the 9 of the strain
    double timestep_, mixing_;
    int downhill_ = 0;  // steps since the last uphill one
    std::int64_t steps_ = 0;
};

}  // namespace clebsch
