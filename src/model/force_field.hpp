#pragma once
// What moves atoms: energies and their derivatives. A model implements it; optimisers, dynamics and checks use nothing else of a model.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "graph/structure.hpp"

namespace clebsch {

/// Of a batch of structures whose atoms follow one another. Energies in eV, lengths in Angstrom.
struct Energies {
    std::vector<double> energy;       ///< [structures]: sums over their atoms in order
    std::vector<double> atom_energy;  ///< [atoms]
    std::vector<double> forces;       ///< [atoms, 3]: -dE/dx
    /// [structures, 3, 3]: dE/d(eps) of the symmetric strain that takes x to x + x eps and every cell vector likewise. Divided by the
    /// volume it is the stress; positive means tension.
    std::vector<double> virial;
};

/// One instance belongs to one thread at a time: evaluations reuse its memory.
class ForceField {
 public:
    virtual ~ForceField() = default;

    /// Pairs at this distance (Angstrom) and beyond have no effect.
    virtual double cutoff() const = 0;

    /// `graph` holds every pair within the cutoff, its vectors those of `structures`; pairs beyond are allowed and cost time. `result`'s
    /// arrays are resized; the same sizes as in the call before allocate nothing. The same bits for any number of threads.
    /// Throws Error naming the atom for an element the model does not know and for positions that are not finite.
    virtual void evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers, const Graph& graph,
                          Energies& result) = 0;
};

/// Throws Error, beginning with `when`, that names the structure or atom whose energy, force or virial is not finite.
void require_finite(const Energies& energies, const std::string& when);

/// Volume of a cell in Angstrom^3; 0 unless the structure is periodic in all three directions.
double volume(const Structure& structure);

}  // namespace clebsch
