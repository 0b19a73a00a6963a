#pragma once
// What is kept of a run of molecular dynamics for its report: the drift of the energy, and samples for a table and a picture.
#include <cstdint>
#include <vector>

#include "model/dynamics.hpp"

namespace clebsch {

/// The straight line through points that come one by one (least squares), without loss of digits for values far from zero.
struct StraightLine {
    std::int64_t points = 0;
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0;  ///< means, and sums of products of deviations from them

    void add(double x, double y);
    double slope() const;  ///< 0 for less than two points
    friend bool operator==(const StraightLine&, const StraightLine&) = default;
};

/// A moment of a run. eV, K, eV / Angstrom^3, Angstrom^3.
struct RunSample {
    std::int64_t step = 0;
    double potential = 0, kinetic = 0, conserved = 0, temperature = 0, pressure = 0, volume = 0;
    friend bool operator==(const RunSample&, const RunSample&) = default;
};
RunSample sample_of(const MolecularDynamics& dynamics);

/// Every step enters the line; samples are every `stride` steps, thinned out (stride doubled) whenever there are more than the limit.
struct RunRecord {
    static constexpr std::size_t sample_limit = 2000;
    StraightLine energy;  ///< conserved energy in eV over time in ps
    std::vector<RunSample> samples;
    std::int64_t stride = 1;

    void add(const RunSample& sample, double timestep);
    /// Of the conserved energy, in meV per atom and ps.
    double drift(std::int64_t atoms) const { return 1e3 * energy.slope() / static_cast<double>(atoms); }
    friend bool operator==(const RunRecord&, const RunRecord&) = default;
};

}  // namespace clebsch
