#pragma once
// The Nequix potential as a program. docs/model-as-program.md has its equations, docs/files.md its file.
#include "io/nequix.hpp"
#include "model/model.hpp"

namespace clebsch {

/// Throws Error(unsupported) for a cutoff whose power is no integer from 1 to 64.
Model nequix_model(const NequixCheckpoint& checkpoint);

}  // namespace clebsch
