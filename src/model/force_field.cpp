#include "model/force_field.hpp"

#include <cmath>

namespace clebsch {

double volume(const Structure& structure) {
    if (!structure.periodic[0] || !structure.periodic[1] || !structure.periodic[2]) return 0.0;
    const auto& c = structure.cell;
    return std::abs(c[0] * (c[4] * c[8] - c[5] * c[7]) - c[1] * (c[3] * c[8] - c[5] * c[6]) + c[2] * (c[3] * c[7] - c[4] * c[6]));
}

}  // namespace clebsch
