#pragma once
// The reference on part of a graph: results of a large run, compared where a few atoms are concerned.
#include <cstdint>
#include <vector>

#include "tool/workload.hpp"

namespace clebsch::tool {

/// Atoms, and the edges whose receiver or whose sender is one of them, in increasing order.
struct Sample {
    std::vector<std::int64_t> nodes, received, sent;
};

/// The largest relative error of the outputs of a workload that has run, over spaces edge and node with indices sender and receiver.
/// Outputs of edges are compared on `received`, those summed at receivers on `nodes` from `received`, those summed at senders on `nodes`
/// from `sent`. Throws Error for an output that sums over everything.
double sample_error(const Workload& workload, Arrays& arrays, const Topology& topology, const Sample& sample);

}  // namespace clebsch::tool
