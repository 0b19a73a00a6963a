#include "tool/demo_model.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/file.hpp"
#include "graph/neighbours.hpp"
#include "model/run_record.hpp"
#include "tool/dynamics_report.hpp"
#include "tool/timing.hpp"

namespace clebsch::tool {
namespace {

/// What the model's authors' own implementation gives for a structure with nequix-mp-1.nqx, in float64. eV, eV/A, eV/A^3.
struct Golden {
    const char* structure;
    double energy;
    std::array<double, 3> first_force, last_force;
    std::vector<double> stress;  ///< xx, yy, zz, yz, xz, xy; none for an open structure
};
const Golden goldens[] = {
    {"aspirin.xyz",
     -136.035007150782,
     {-2.584551841712673, -0.2736113998065216, -0.1759356099830495},
     {-0.1933640486514348, 0.560906437797058, 0.0570648298286579},
     {}},
    {"water-216.xyz",
     -3148.720018598524,
     {0.142176615000507, -0.06646160279776925, 0.86156732467607},
     {-0.5967485809107623, -0.2272265821482828, -0.7257867832962206},
     {-0.01707588223305666, -0.01614504910052525, -0.01696119899435199, -0.001397308162287842, -0.002103510159667204,
      0.0004211368916070274}},
};
constexpr const char* golden_checkpoint = "nequix-mp-1.nqx";

/// What float32 may differ by: the authors' own differs by 1.4e-6 eV per atom, 5.4e-5 eV/A and 4e-8 eV/A^3.
constexpr double energy_bound = 2e-6, force_bound = 1e-4, stress_bound = 1e-6;

}  // namespace

void check_model(Report& report, Verdicts& verdicts, ForceField& field, const XyzFrame& frame, const std::string& structure,
                 const std::string& checkpoint) {
    const std::vector<int> numbers = frame.atomic_numbers();
    const Graph graph = build_graph(frame.structure, field.cutoff());
    Energies energies;
    const auto evaluate = [&] { field.evaluate({&frame.structure, 1}, numbers, graph, energies); };
    evaluate();
    const double seconds = measure_in_turns({evaluate}, 0.3, 3).front().median, atoms = static_cast<double>(frame.atoms());
    const auto* golden = std::ranges::find_if(goldens, [&](const Golden& each) { return structure == each.structure; });
    const bool known = golden != std::end(goldens) && checkpoint == golden_checkpoint;
    Table& table = report.table("whole_model",
                                "the whole model, float32" + std::string(known ? ", beside its authors' values in float64" : "") +
                                    ": energy in eV, forces in eV/A, stress in eV/A^3",
                                {{"what", "what", false},
                                 {"value", "here"},
                                 {"golden", "authors"},
                                 {"error", "error"},
                                 {"bound", "bound"},
                                 {"verdict", "verdict", false}});
    const auto row = [&](const std::string& what, double value, const double* expected, double bound, int decimals) {
        if (!known) {
            table.row({what, decimal(value, decimals), {}, {}, {}, {}});
            return;
        }
        const double error = std::abs(value - *expected);
        const bool passed = verdicts.add(error, bound);
        table.row({what,
                   decimal(value, decimals),
                   decimal(*expected, decimals),
                   scientific(error),
                   scientific(bound),
                   {passed, Verdicts::word(passed)}});
    };
    row("energy", energies.energy[0], known ? &golden->energy : nullptr, energy_bound * atoms, 6);
    const std::size_t last = energies.forces.size() - 3;
    for (std::size_t k = 0; k < 3; ++k)
        row("force on the first atom, " + std::string(1, "xyz"[k]), energies.forces[k], known ? &golden->first_force[k] : nullptr,
            force_bound, 6);
    for (std::size_t k = 0; k < 3; ++k)
        row("force on the last atom, " + std::string(1, "xyz"[k]), energies.forces[last + k], known ? &golden->last_force[k] : nullptr,
            force_bound, 6);
    const std::vector<double> stress = stress_of(frame.structure, energies);
    constexpr std::array<std::size_t, 6> order = {0, 4, 8, 5, 2, 1};
    constexpr std::array<const char*, 6> names = {"xx", "yy", "zz", "yz", "xz", "xy"};
    for (std::size_t k = 0; k < 6 && !stress.empty(); ++k)
        row(std::string("stress ") + names[k], stress[order[k]], known ? &golden->stress[k] : nullptr, stress_bound, 8);
    report.fact("model_microseconds_per_atom", "energy and forces",
                {1e6 * seconds / atoms, number(1e6 * seconds / atoms, 4).text + " us per atom (" + number(seconds * 1e3).text + " ms)"});
}

void run_dynamics(Report& report, Progress& progress, ForceField& field, const XyzFrame& frame, const std::string& structure,
                  std::int64_t steps, const std::string& plot) {
    MovingAtoms start = atoms_at_rest(frame.structure, frame.atomic_numbers());
    start.velocities = thermal_velocities(start.masses, 300, 1);
    const DynamicsOptions options{.timestep = 0.5};
    MolecularDynamics dynamics(field, std::move(start), options);
    RunRecord record;
    record.add(sample_of(dynamics), options.timestep);
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t step = 0; step < steps; ++step) {
        dynamics.advance();
        record.add(sample_of(dynamics), options.timestep);
        progress.now("molecular dynamics, step " + std::to_string(step + 1) + " of " + std::to_string(steps));
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::int64_t atoms = frame.atoms();
    report.note("");
    report.note("molecular dynamics of " + structure + ": " + std::to_string(steps) +
                " steps of 0.5 fs at constant energy, first velocities of 300 K");
    add_run_table(report, record, sample_of(dynamics), options, 6);
    if (steps == 0) return;
    report_drift(report, record, options, atoms);
    const double each = 1e6 * seconds / static_cast<double>(steps * atoms);
    report.fact("microseconds_per_atom_step", "per atom and step", {each, number(each, 4).text + " us"});
    const double speed = static_cast<double>(steps) / seconds * options.timestep * 1e-6 * 86400;
    report.fact("nanoseconds_per_day", "speed", {speed, number(speed).text + " ns/day"});
    if (plot.empty()) return;
    write_file(plot, run_svg("Molecular dynamics of " + structure, record, options, atoms));
    report.note("dynamics picture: " + plot);
}

}  // namespace clebsch::tool
