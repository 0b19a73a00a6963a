#pragma once
// The demo's last part: the whole model, against its authors' numbers, and moving a molecule.
#include <string>

#include "io/xyz.hpp"
#include "model/force_field.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"
#include "tool/verdicts.hpp"

namespace clebsch::tool {

/// Energy, forces of two atoms and stress of a structure, beside golden values where those of this structure and checkpoint (file names)
/// are known; and what a call costs.
void check_model(Report& report, Verdicts& verdicts, ForceField& field, const XyzFrame& frame, const std::string& structure,
                 const std::string& checkpoint);

/// Constant energy from velocities of 300 K, 0.5 fs a step: energies, drift, speed; a picture if `plot` names a file.
void run_dynamics(Report& report, Progress& progress, ForceField& field, const XyzFrame& frame, const std::string& structure,
                  std::int64_t steps, const std::string& plot);

}  // namespace clebsch::tool
