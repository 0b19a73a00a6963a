#include "support/analytic_force_fields.hpp"

#include <cmath>

namespace clebsch::testing {

namespace {

void clear(std::span<const Structure> structures, std::int64_t atoms, Energies& result) {
    result.energy.assign(structures.size(), 0.0);
    result.atom_energy.assign(static_cast<std::size_t>(atoms), 0.0);
    result.forces.assign(static_cast<std::size_t>(3 * atoms), 0.0);
    result.virial.assign(9 * structures.size(), 0.0);
}

}  // namespace

void LennardJones::evaluate(std::span<const Structure> structures, std::span<const int>, const Graph& graph, Energies& result) {
    clear(structures, graph.nodes, result);
    for (std::size_t e = 0; e < graph.sender.size(); ++e) {
        const auto sender = static_cast<std::size_t>(graph.sender[e]), receiver = static_cast<std::size_t>(graph.receiver[e]);
        const auto structure = static_cast<std::size_t>(graph.structure[receiver]);
        const double* r = graph.vectors.data() + 3 * e;
        const double square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
        const double inside = 1.0 - square / (cutoff_ * cutoff_);
        if (inside <= 0.0) continue;
        const double s6 = std::pow(diameter_ * diameter_ / square, 3), value = 4 * depth_ * (s6 * s6 - s6);
        const double slope = -12 * depth_ * (2 * s6 * s6 - s6) / square;  // by r^2
        const double end = inside * inside * inside, end_slope = -3 * inside * inside / (cutoff_ * cutoff_);
        result.atom_energy[receiver] += 0.5 * value * end;
        const double factor = slope * end + value * end_slope;  // half of the pair's derivative by r^2, times 2 r
        for (std::size_t k = 0; k < 3; ++k) {
            result.forces[3 * receiver + k] += factor * r[k];
            result.forces[3 * sender + k] -= factor * r[k];
            for (std::size_t l = 0; l < 3; ++l) result.virial[9 * structure + 3 * k + l] += factor * r[k] * r[l];
        }
    }
    for (std::size_t i = 0; i < result.atom_energy.size(); ++i)
        result.energy[static_cast<std::size_t>(graph.structure[i])] += result.atom_energy[i];
}

void Springs::evaluate(std::span<const Structure> structures, std::span<const int>, const Graph& graph, Energies& result) {
    clear(structures, graph.nodes, result);
    const std::vector<double>& x = structures.front().positions;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t next = (i + 3) % x.size();
        const double stretch = x[i] - (ring_ ? x[next] : place(i));
        result.atom_energy[i / 3] += 0.5 * stiffness_ * stretch * stretch;
        result.energy[0] += 0.5 * stiffness_ * stretch * stretch;
        result.forces[i] -= stiffness_ * stretch;
        if (ring_) result.forces[next] += stiffness_ * stretch;
    }
}

}  // namespace clebsch::testing
