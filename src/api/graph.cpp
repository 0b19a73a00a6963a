// Neighbour lists.
#include "graph/graph.hpp"

#include <memory>

#include "api/guard.hpp"
#include "api/structures.hpp"
#include "graph/neighbours.hpp"
#include "graph/vesin.hpp"

struct clebsch_graph {
    clebsch::Graph value;
};

namespace {

using namespace clebsch;
using api::guarded;
using api::require;

}  // namespace

clebsch_status clebsch_graph_build(const clebsch_graph_options* options, clebsch_graph** graph) {
    const auto body = [&] {
        require(options, "options");
        require(graph, "graph");
        api::require_size(options->size, sizeof(clebsch_graph_options), "clebsch_graph_options");
        const std::vector<Structure> structures = api::structures_of(*options);
        *graph = std::make_unique<clebsch_graph>(clebsch_graph{build_graph(structures, {.cutoff = options->cutoff})}).release();
    };
    return guarded(body, [&] {
        return "the graph of " + std::to_string(options->atoms) + " atoms in " + std::to_string(options->structures) + " structures";
    });
}

clebsch_status clebsch_set_vesin_library(const char* path) {
    return guarded([&] {
        require(path, "path");
        set_vesin_path(path);
    });
}

void clebsch_graph_destroy(clebsch_graph* graph) { delete graph; }
int64_t clebsch_graph_edge_count(const clebsch_graph* graph) { return graph == nullptr ? -1 : graph->value.edges(); }
int64_t clebsch_graph_node_count(const clebsch_graph* graph) { return graph == nullptr ? -1 : graph->value.nodes; }
const int64_t* clebsch_graph_sender(const clebsch_graph* graph) { return graph == nullptr ? nullptr : graph->value.sender.data(); }
const int64_t* clebsch_graph_receiver(const clebsch_graph* graph) { return graph == nullptr ? nullptr : graph->value.receiver.data(); }
const int64_t* clebsch_graph_offsets(const clebsch_graph* graph) { return graph == nullptr ? nullptr : graph->value.offsets.data(); }
const int64_t* clebsch_graph_transposed(const clebsch_graph* graph) { return graph == nullptr ? nullptr : graph->value.by_sender.data(); }
const double* clebsch_graph_vectors(const clebsch_graph* graph) { return graph == nullptr ? nullptr : graph->value.vectors.data(); }
const int32_t* clebsch_graph_shifts(const clebsch_graph* graph) { return graph == nullptr ? nullptr : graph->value.shifts.data(); }
const int64_t* clebsch_graph_structure(const clebsch_graph* graph) { return graph == nullptr ? nullptr : graph->value.structure.data(); }
