#include "tool/dynamics_report.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/units.hpp"
#include "tool/curves.hpp"

namespace clebsch::tool {
namespace {

const char* conserved_name(const DynamicsOptions& options) {
    return options.ensemble == Ensemble::nve ? "total energy" : "total energy less the thermostat's heat";
}

}  // namespace

void add_run_table(Report& report, const RunRecord& record, const RunSample& last, const DynamicsOptions& options, int rows) {
    const bool thermostat = options.ensemble != Ensemble::nve, periodic = last.volume > 0;
    std::vector<Column> columns = {
        {"step", "step"}, {"picoseconds", "ps"}, {"potential", "potential (eV)"}, {"kinetic", "kinetic (eV)"}, {"total", "total (eV)"}};
    if (thermostat) columns.push_back({"conserved", "less heat (eV)"});
    columns.push_back({"temperature", "T (K)"});
    if (periodic) {
        columns.push_back({"pressure", "P (GPa)"});
        columns.push_back({"volume", "V (A^3)"});
    }
    Table& table = report.table("moments", "", std::move(columns));
    std::vector<RunSample> samples = record.samples;
    if (samples.empty() || samples.back().step != last.step) samples.push_back(last);
    const std::size_t shown = std::min(samples.size(), static_cast<std::size_t>(std::max(rows, 2)));
    for (std::size_t r = 0; r < shown; ++r) {
        const RunSample& s = samples[shown == 1 ? 0 : r * (samples.size() - 1) / (shown - 1)];
        std::vector<Cell> row = {s.step, decimal(1e-3 * options.timestep * static_cast<double>(s.step), 4), decimal(s.potential, 4),
                                 decimal(s.kinetic, 4), decimal(s.potential + s.kinetic, 5)};
        if (thermostat) row.push_back(decimal(s.conserved, 5));
        row.push_back(decimal(s.temperature, 1));
        if (periodic) {
            row.push_back(decimal(s.pressure * gigapascal, 3));
            row.push_back(decimal(s.volume, 2));
        }
        table.row(std::move(row));
    }
}

void report_drift(Report& report, const RunRecord& record, const DynamicsOptions& options, std::int64_t atoms) {
    const double drift = record.drift(atoms);
    report.fact("drift", "energy drift",
                {drift, number(drift, 3).text + " meV per atom and ps (straight line through the " + conserved_name(options) +
                            (record.energy.points < 400 ? "; of so few steps mostly its oscillation)" : ")")});
}

std::string run_svg(const std::string& title, const RunRecord& record, const DynamicsOptions& options, std::int64_t atoms) {
    std::vector<double> time, potential, total, temperature, pressure, space;
    const double count = static_cast<double>(atoms);
    const double start = record.samples.empty() ? 0 : record.samples.front().conserved;
    const double least = record.samples.empty() ? 0 : std::ranges::min(record.samples, {}, &RunSample::potential).potential;
    std::vector<double> kinetic;
    for (const RunSample& s : record.samples) {
        time.push_back(1e-3 * options.timestep * static_cast<double>(s.step));
        potential.push_back(1e3 * (s.potential - least) / count);
        kinetic.push_back(1e3 * s.kinetic / count);
        total.push_back(1e3 * (s.conserved - start) / count);
        temperature.push_back(s.temperature);
        pressure.push_back(s.pressure * gigapascal);
        space.push_back(s.volume);
    }
    std::vector<Panel> panels = {
        {"Energy (meV per atom; potential above its least value)", {{"potential", potential}, {"kinetic", kinetic}}},
        {std::string("Change of the ") + conserved_name(options) + " (meV per atom)", {{"change", total}}},
        {"Temperature (K)", {{"temperature", temperature}}}};
    if (!space.empty() && space.front() > 0) {
        panels.push_back({"Pressure (GPa)", {{"pressure", pressure}}});
        panels.push_back({"Volume (cubic Angstrom)", {{"volume", space}}});
    }
    std::string subtitle = to_text(options.ensemble) + ", " + std::to_string(atoms) + (atoms == 1 ? " atom" : " atoms") + ", time step " +
                           plain(options.timestep).text + " fs";
    if (options.ensemble != Ensemble::nve) subtitle += ", " + plain(options.temperature).text + " K";
    subtitle += "; drift " + number(record.drift(atoms), 3).text + " meV per atom and ps";
    return curves_svg(title, subtitle, "time (ps)", time, panels);
}

XyzFrame frame_of(const MolecularDynamics& dynamics, const DynamicsOptions& options, const XyzFrame& like) {
    const MovingAtoms& atoms = dynamics.atoms();
    XyzFrame frame;
    frame.structure = atoms.structure;
    frame.has_lattice = like.has_lattice;
    frame.species = like.species;
    if (frame.species.empty())
        frame.columns.push_back({"Z", 1, std::vector<std::int64_t>(atoms.atomic_numbers.begin(), atoms.atomic_numbers.end())});
    frame.columns.push_back({"velocities", 3, atoms.velocities});
    frame.columns.push_back({"forces", 3, dynamics.energies().forces});
    const auto put = [&](const char* key, double value) { frame.info.emplace_back(key, exact_text({&value, 1})); };
    frame.info.emplace_back("step", std::to_string(atoms.step));
    put("time_fs", options.timestep * static_cast<double>(atoms.step));
    put("energy", dynamics.potential_energy());
    put("kinetic_energy", dynamics.kinetic_energy());
    put("temperature", dynamics.temperature());
    const std::vector<double> stress = stress_of(atoms.structure, dynamics.energies());
    if (!stress.empty()) frame.info.emplace_back("stress", exact_text(stress));
    return frame;
}

std::string exact_text(std::span<const double> values) {
    std::string out;
    for (const double value : values) {
        char text[32];
        if (!out.empty()) out += ' ';
        out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
    }
    return out;
}

std::vector<double> stress_of(const Structure& structure, const Energies& energies) {
    std::vector<double> stress;
    if (const double space = volume(structure); space > 0)
        for (const double component : energies.virial) stress.push_back(component / space);
    return stress;
}

}  // namespace clebsch::tool
