#pragma once
// The Nequix potential as a program. docs/model-as-program.md has its equations, docs/files.md its file.
#include "describe/operations/radial_network.hpp"
#include "io/nequix.hpp"
#include "model/model.hpp"

namespace clebsch {

/// Throws Error(unsupported) for a cutoff whose power is no integer from 1 to 64.
Model nequix_model(const NequixCheckpoint& checkpoint);

/// The radial basis and cutoff of its edges, without a network: of edge vectors. Throws as nequix_model does.
RadialOptions nequix_basis(const NequixCheckpoint& checkpoint);
/// A layer's sum over neighbours j of w (m_j x Y) / sqrt(average number of neighbours).
Polynomial nequix_message(const NequixCheckpoint& checkpoint, const NequixLayer& layer);

}  // namespace clebsch
