#include "model/run_record.hpp"

namespace clebsch {

void StraightLine::add(double x, double y) {
    ++points;
    const double dx = x - mean_x, dy = y - mean_y, n = static_cast<double>(points);
    mean_x += dx / n;
    mean_y += dy / n;
    xx += dx * (x - mean_x);
    xy += dx * (y - mean_y);
}

double StraightLine::slope() const { return points < 2 || !(xx > 0.0) ? 0.0 : xy / xx; }

RunSample sample_of(const MolecularDynamics& dynamics) {
    return {.step = dynamics.atoms().step,
            .potential = dynamics.potential_energy(),
            .kinetic = dynamics.kinetic_energy(),
            .conserved = dynamics.conserved_energy(),
            .temperature = dynamics.temperature(),
            .pressure = dynamics.pressure(),
            .volume = volume(dynamics.atoms().structure)};
}

void RunRecord::add(const RunSample& sample, double timestep) {
    energy.add(1e-3 * timestep * static_cast<double>(sample.step), sample.conserved);
    if (sample.step % stride != 0) return;
    samples.push_back(sample);
    if (samples.size() <= sample_limit) return;
    stride *= 2;
    std::erase_if(samples, [&](const RunSample& each) { return each.step % stride != 0; });
}

}  // namespace clebsch
