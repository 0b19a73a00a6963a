// Pretrained potentials.
#include "model/potential.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "api/guard.hpp"
#include "api/library.hpp"
#include "api/structures.hpp"
#include "describe/text_cursor.hpp"
#include "graph/neighbours.hpp"
#include "model/neighbour_list.hpp"
#include "model/option_range.hpp"
#include "run/gpu/driver.hpp"
#include "schedule/cpu_target.hpp"

struct clebsch_potential {
    clebsch::Potential value;
    std::optional<clebsch::NeighbourList> neighbours;  ///< of one structure whose atoms move; none without a skin
    clebsch::Energies energies = {};
    std::mutex running = {};
};

using namespace clebsch;
using api::guarded;
using api::require;

clebsch_status clebsch_potential_load(const char* path, const clebsch_potential_options* options, clebsch_potential** potential) {
    return guarded([&] {
        require(path, "path");
        require(potential, "potential");
        const clebsch_potential_options defaults = CLEBSCH_POTENTIAL_OPTIONS_DEFAULTS;
        const clebsch_potential_options& given = options == nullptr ? defaults : *options;
        api::require_size(given.size, sizeof(clebsch_potential_options), "clebsch_potential_options");
        if (given.dtype != CLEBSCH_FLOAT32 && given.dtype != CLEBSCH_FLOAT64)
            fail("dtype: expected 0 (float32) or 1 (float64), got " + std::to_string(given.dtype));
        PotentialOptions chosen;
        chosen.dtype = static_cast<DType>(given.dtype);
        if (given.instruction_set != nullptr) chosen.instruction_set = parse_instruction_set(given.instruction_set);
        if (given.device != nullptr) chosen.gpu = gpu::parse_device(given.device, "device");
        if (given.deterministic != 0 && given.deterministic != 1)
            fail("deterministic: expected 0 or 1, got " + std::to_string(given.deterministic));
        chosen.deterministic = given.deterministic != 0;
        require_in(skin_range, "skin", given.skin);
        if (!(given.table_tolerance >= 0 && given.table_tolerance < 1))
            fail("table_tolerance: expected 0 or a number below 1, got " + number_text(given.table_tolerance));
        if (given.table_tolerance > 0) chosen.table_tolerance = given.table_tolerance;
        Potential value = Potential::load(path, chosen);
        std::optional<NeighbourList> neighbours;
        if (given.skin > 0) neighbours.emplace(value.cutoff(), given.skin);
        *potential = new clebsch_potential{std::move(value), std::move(neighbours)};
    });
}

void clebsch_potential_destroy(clebsch_potential* potential) { delete potential; }
double clebsch_potential_cutoff(const clebsch_potential* potential) { return potential == nullptr ? -1 : potential->value.cutoff(); }

const int* clebsch_potential_elements(const clebsch_potential* potential, size_t* count) {
    if (count != nullptr) *count = potential == nullptr ? 0 : potential->value.model().atomic_numbers.size();
    return potential == nullptr ? nullptr : potential->value.model().atomic_numbers.data();
}

clebsch_status clebsch_potential_explain(const clebsch_potential* potential, char** text) {
    return guarded([&] {
        require(potential, "potential");
        require(text, "text");
        *text = api::copy_text(potential->value.explain());
    });
}

clebsch_status clebsch_potential_evaluate(clebsch_potential* potential, const clebsch_graph_options* structures, const int* atomic_numbers,
                                          const clebsch_potential_result* result) {
    const auto body = [&] {
        require(potential, "potential");
        require(structures, "structures");
        require(result, "result");
        api::require_size(structures->size, sizeof(clebsch_graph_options), "clebsch_graph_options");
        api::require_size(result->size, sizeof(clebsch_potential_result), "clebsch_potential_result");
        const std::vector<Structure> batch = api::structures_of(*structures);
        if (structures->atoms > 0) require(atomic_numbers, "atomic_numbers");
        const std::scoped_lock lock(potential->running);
        const bool remembered = potential->neighbours.has_value() && batch.size() == 1;
        const Graph searched = remembered ? Graph{} : build_graph(batch, {.cutoff = potential->value.cutoff()});
        const Graph& graph = remembered ? potential->neighbours->update(batch.front()) : searched;

        const std::shared_ptr<ThreadPool> pool = api::current_pool();
        potential->value.set_parallel_for(pool->parallel_for());
        Energies& energies = potential->energies;
        potential->value.evaluate(batch, {atomic_numbers, static_cast<std::size_t>(structures->atoms)}, graph, energies);
        const auto give = [](const std::vector<double>& values, double* to) {
            if (to != nullptr) std::ranges::copy(values, to);
        };
        give(energies.energy, result->energy);
        give(energies.atom_energy, result->atom_energy);
        give(energies.forces, result->forces);
        give(energies.virial, result->virial);
    };
    return guarded(body, [&] {
        return "energies and forces of " + std::to_string(structures->atoms) + " atoms in " + std::to_string(structures->structures) +
               " structures";
    });
}
