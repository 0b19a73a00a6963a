// clebsch relax: the nearest minimum of a published model's energy.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "model/relax.hpp"
#include "model/units.hpp"
#include "tool/command.hpp"
#include "tool/curves.hpp"
#include "tool/dynamics_report.hpp"
#include "tool/file_lock.hpp"
#include "tool/force_field_file.hpp"
#include "tool/interrupt.hpp"
#include "tool/output_files.hpp"
#include "tool/progress.hpp"
#include "tool/structures.hpp"
#include "tool/trajectory_file.hpp"

namespace clebsch::tool {
namespace {

struct Arguments {
    std::string model, structure, cell = "fixed", out, trajectory, plot;
    RelaxOptions options;
    MachineOptions machine;
    ModelOptions model_options;
    std::int64_t steps = 1000;
    std::optional<std::int64_t> frame;
    bool json = false;
};

struct Moment {
    std::int64_t step;
    double energy, force, stress, space;
};

class Run {
 public:
    explicit Run(const Arguments& arguments) : arguments_(arguments), options_(arguments.options) {}

    int run() {
        check_options(options_, "--");
        require_in(steps_range, "--steps", arguments_.steps);
        if (arguments_.cell != "fixed" && arguments_.cell != "free") fail("--cell: expected fixed or free, got '" + arguments_.cell + "'");
        require_distinct({{"MODEL", arguments_.model},
                          {"STRUCTURE", arguments_.structure},
                          {"--trajectory", arguments_.trajectory},
                          {"--plot", arguments_.plot}});
        // Whoever names the structure file as --out wants it replaced.
        require_distinct(
            {{"MODEL", arguments_.model}, {"--out", arguments_.out}, {"--trajectory", arguments_.trajectory}, {"--plot", arguments_.plot}});
        const NamedFiles replaced = {{"--out", arguments_.out}, {"--plot", arguments_.plot}};
        require_writable(replaced);
        const FileLocks locks({{"--out", arguments_.out}, {"--trajectory", arguments_.trajectory}, {"--plot", arguments_.plot}});
        options_.free_cell = arguments_.cell == "free";
        frame_ = read_frame(arguments_.structure, arguments_.frame);
        if (options_.free_cell && !(volume(frame_.structure) > 0))
            fail("--cell free: file " + in_quotes(arguments_.structure, 4096) + " is not periodic along a, b and c");
        const auto field = load_force_field(arguments_.model, arguments_.machine, arguments_.model_options);
        const auto start = std::chrono::steady_clock::now();
        Relaxation relaxation(*field, frame_.structure, frame_.atomic_numbers(), options_);
        if (!arguments_.trajectory.empty()) trajectory_.emplace(arguments_.trajectory, 0);
        const bool interrupted = !go_on(relaxation);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (!arguments_.out.empty()) write_file(arguments_.out, format_xyz({result(relaxation)}));
        report(relaxation, seconds, interrupted);
        return interrupted ? exit_stopped : relaxation.converged() ? exit_done : exit_check_failed;
    }

 private:
    /// False when a signal came.
    bool go_on(Relaxation& relaxation) {
        const Interrupt interrupt;
        LiveLine line;
        for (;;) {
            note(relaxation);
            if (relaxation.converged() || relaxation.steps() >= arguments_.steps) return true;
            if (Interrupt::stopped()) return false;
            relaxation.advance();
            if (line.due())
                line.show("step " + std::to_string(relaxation.steps()) + "  " + decimal(relaxation.energies().energy[0], 5).text +
                          " eV  largest force " + number(relaxation.max_force()).text + " eV/A" +
                          (options_.free_cell ? "  largest stress " + number(relaxation.max_stress()).text + " eV/A^3" : ""));
        }
    }

    void note(const Relaxation& relaxation) {
        moments_.push_back({relaxation.steps(), relaxation.energies().energy[0], relaxation.max_force(), relaxation.max_stress(),
                            volume(relaxation.structure())});
        if (trajectory_) trajectory_->append(format_xyz({result(relaxation)}));
    }

    XyzFrame result(const Relaxation& relaxation) const {
        XyzFrame frame;
        frame.structure = relaxation.structure();
        frame.has_lattice = frame_.has_lattice;
        frame.species = frame_.species;
        if (frame.species.empty())
            frame.columns.push_back(
                {"Z", 1, std::vector<std::int64_t>(relaxation.atomic_numbers().begin(), relaxation.atomic_numbers().end())});
        frame.columns.push_back({"forces", 3, relaxation.energies().forces});
        frame.info.emplace_back("step", std::to_string(relaxation.steps()));
        frame.info.emplace_back("energy", exact_text(relaxation.energies().energy));
        const std::vector<double> stress = stress_of(frame.structure, relaxation.energies());
        if (!stress.empty()) frame.info.emplace_back("stress", exact_text(stress));
        return frame;
    }

    void report(const Relaxation& relaxation, double seconds, bool interrupted) const {
        Report report;
        const bool periodic = moments_.back().space > 0;
        report.fact("model", "model", arguments_.model);
        report.fact("structure", "structure", arguments_.structure + ": " + composition(frame_) + ", " + periodic_text(frame_.structure));
        report.fact("cell", "cell", arguments_.cell);
        report.fact("dtype", "dtype", arguments_.machine.dtype);
        std::vector<Column> columns = {{"step", "step"}, {"energy", "energy (eV)"}, {"largest_force", "largest force (eV/A)"}};
        if (periodic) {
            columns.push_back({"largest_stress", "largest stress (eV/A^3)"});
            columns.push_back({"volume", "volume (A^3)"});
        }
        Table& table = report.table("moments", "", std::move(columns));
        const std::size_t shown = std::min<std::size_t>(moments_.size(), 20);
        for (std::size_t r = 0; r < shown; ++r) {
            const Moment& m = moments_[shown == 1 ? 0 : r * (moments_.size() - 1) / (shown - 1)];
            std::vector<Cell> row = {m.step, decimal(m.energy, 6), decimal(m.force, 6)};
            if (periodic) {
                row.push_back(decimal(m.stress, 7));
                row.push_back(decimal(m.space, 3));
            }
            table.row(std::move(row));
        }
        report.fact("converged", "converged",
                    {relaxation.converged(), relaxation.converged() ? "yes"
                                             : interrupted          ? "no: stopped by a signal"
                                                                    : "no"});
        report.fact("steps", "steps", relaxation.steps());
        report.fact("energy", "energy", {relaxation.energies().energy[0], decimal(relaxation.energies().energy[0], 6).text + " eV"});
        report.fact("largest_force", "largest force", {relaxation.max_force(), number(relaxation.max_force()).text + " eV/A"});
        if (periodic)
            report.fact("largest_stress", "largest stress",
                        {relaxation.max_stress(),
                         number(relaxation.max_stress()).text + " eV/A^3 (" + number(relaxation.max_stress() * gigapascal).text + " GPa)"});
        report.fact("seconds", "time", {seconds, number(seconds, 4).text + " s"});
        if (!arguments_.out.empty()) report.fact("out", "written to", arguments_.out);
        if (trajectory_) report.fact("trajectory", "trajectory", arguments_.trajectory);
        if (!arguments_.plot.empty()) report.fact("plot", "plot", arguments_.plot);
        report.print(arguments_.json);
        if (!arguments_.plot.empty()) write_file(arguments_.plot, plot(periodic));  // last: its failure costs no figures
    }

    std::string plot(bool periodic) const {
        std::vector<double> steps, energy, force, stress, space;
        const double atoms = static_cast<double>(frame_.atoms());
        for (const Moment& m : moments_) {
            steps.push_back(static_cast<double>(m.step));
            energy.push_back(1e3 * (m.energy - moments_.back().energy) / atoms);
            force.push_back(std::log10(m.force));
            stress.push_back(std::log10(m.stress));
            space.push_back(m.space);
        }
        std::vector<Panel> panels = {{"Energy above the last (meV per atom)", {{"energy", energy}}},
                                     {"Largest force and stress (powers of ten)", {{"force (eV/A)", force}}}};
        if (periodic) panels.back().curves.push_back({"stress (eV/A^3)", stress});
        if (options_.free_cell) panels.push_back({"Volume (cubic Angstrom)", {{"volume", space}}});
        return curves_svg("Relaxation of " + composition(frame_), "FIRE, cell " + arguments_.cell, "step", steps, panels);
    }

    const Arguments& arguments_;
    RelaxOptions options_;
    XyzFrame frame_;
    std::vector<Moment> moments_;
    std::optional<TrajectoryFile> trajectory_;
};

}  // namespace

void add_relax(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("relax", "The nearest minimum of the energy, cell fixed or free");
    command->add_option("model", arguments->model, "Checkpoint: a Nequix .nqx file")->required();
    command->add_option("structure", arguments->structure, "Extended or plain XYZ")->required();
    command->add_option("--frame", arguments->frame, "Frame of the structure file, from 1 (default: the last)");
    command->add_option("--fmax", arguments->options.force, "eV/A: longest force that is left")->capture_default_str();
    command->add_option("--cell", arguments->cell, "fixed or free")->capture_default_str();
    CLI::Option* stress =
        command->add_option("--smax", arguments->options.stress, "eV/A^3: largest component of stress that is left in a free cell");
    stress->capture_default_str();
    command->add_option("--steps", arguments->steps, "At most so many")->capture_default_str();
    command->add_option("--out", arguments->out, "Write the last structure to this extended XYZ file");
    command->add_option("--trajectory", arguments->trajectory, "Write every step to this extended XYZ file");
    command->add_option("--skin", arguments->options.skin, "Angstrom, of the neighbour list; changes no result")->capture_default_str();
    command->add_option("--plot", arguments->plot, "Write a picture of energy, forces, stress and volume to this SVG file");
    add_machine_options(*command, arguments->machine, true, /*peaks=*/false);
    add_model_options(*command, arguments->model_options);
    add_device_option(*command, arguments->machine);
    command->add_flag("--json", arguments->json, "For machines");
    command->footer(
        "Exit code 1 if it has not converged within the steps.\n"
        "Example:\n"
        "  clebsch relax examples/data/nequix-mp-1.nqx examples/data/aspirin.xyz --fmax 0.02 --out relaxed.xyz");
    command->callback([arguments, stress, &status] {
        if (stress->count() > 0 && arguments->cell != "free") fail("--smax: expected with --cell free only, got --cell " + arguments->cell);
        status = Run(*arguments).run();
    });
}

}  // namespace clebsch::tool
