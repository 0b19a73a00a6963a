#include "model/force_field.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"

namespace clebsch {

void require_finite(const Energies& energies, const std::string& when) {
    const auto broken = [&](const char* what, std::size_t number) {
        fail(when + ": the " + what + " " + number_text(number) +
             " is not finite: atoms too close to one another, too long a step, or weights too large for the dtype");
    };
    for (std::size_t s = 0; s < energies.energy.size(); ++s)
        if (!std::isfinite(energies.energy[s])) broken("energy of structure", s);
    for (std::size_t k = 0; k < energies.forces.size(); ++k)
        if (!std::isfinite(energies.forces[k])) broken("force on atom", k / 3);
    for (std::size_t k = 0; k < energies.virial.size(); ++k)
        if (!std::isfinite(energies.virial[k])) broken("virial of structure", k / 9);
}

double volume(const Structure& structure) {
    if (!structure.periodic[0] || !structure.periodic[1] || !structure.periodic[2]) return 0.0;
    const auto& c = structure.cell;
    return std::abs(c[0] * (c[4] * c[8] - c[5] * c[7]) - c[1] * (c[3] * c[8] - c[5] * c[6]) + c[2] * (c[3] * c[7] - c[4] * c[6]));
}

}  // namespace clebsch
