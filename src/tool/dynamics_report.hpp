#pragma once
// How a run of molecular dynamics is told: a table of moments, a picture, frames of its trajectory.
#include <string>

#include "io/xyz.hpp"
#include "model/dynamics.hpp"
#include "model/run_record.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {

/// About `rows` moments spread over the run, the first and the last among them.
void add_run_table(Report& report, const RunRecord& record, const RunSample& last, const DynamicsOptions& options, int rows = 20);

/// "-0.0012 meV per atom and ps" of the total energy, or what stands for it with a thermostat.
void report_drift(Report& report, const RunRecord& record, const DynamicsOptions& options, std::int64_t atoms);

/// Energy, temperature and, where there is one, pressure and volume over time.
std::string run_svg(const std::string& title, const RunRecord& record, const DynamicsOptions& options, std::int64_t atoms);

/// The state as a frame: positions, velocities (Angstrom/fs), forces; step, time (fs), energies, temperature, stress. `like` gives the
/// species' names and whether there is a lattice.
XyzFrame frame_of(const MolecularDynamics& dynamics, const DynamicsOptions& options, const XyzFrame& like);

/// Numbers as text that reads back the same, with blanks between.
std::string exact_text(std::span<const double> values);

/// The stress (eV / Angstrom^3, 9 numbers), or nothing unless periodic in three directions.
std::vector<double> stress_of(const Structure& structure, const Energies& energies);

}  // namespace clebsch::tool
