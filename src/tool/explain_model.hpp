#pragma once
// What a checkpoint holds, and how its model runs here.
#include <string>

#include "tool/force_field_file.hpp"

namespace clebsch::tool {

/// Whether `clebsch explain NAME` means a checkpoint: the file's ending.
bool is_checkpoint(const std::string& name);

/// Hyperparameters, keys of the file that the model does not use, layers with their parameters, steps of the program of energies and
/// forces, and memory for intermediates. `picture`: a file to draw the program into (program_picture.hpp), or "".
void explain_model(Report& report, const std::string& file, const MachineOptions& machine, const ModelOptions& model,
                   const SizeOptions& sizes, const std::string& picture);

}  // namespace clebsch::tool
