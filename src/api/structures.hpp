#pragma once
// Structures of a batch as the C interface passes them.
#include <vector>

#include "clebsch/clebsch.h"
#include "graph/structure.hpp"

namespace clebsch::api {

/// From flat arrays. Throws Error naming the field that is missing or does not fit, before memory is taken. `cutoff` is
/// not read.
std::vector<Structure> structures_of(const clebsch_graph_options& options);

}  // namespace clebsch::api
