// clebsch md: molecular dynamics with a published model.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/polynomial.hpp"
#include "model/restart.hpp"
#include "run/gpu/driver.hpp"
#include "tool/command.hpp"
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

using Clock = std::chrono::steady_clock;

constexpr const char* end_key = "trajectory end";  ///< in a restart file: how its trajectory ended

struct Arguments {
    std::string model, structure, ensemble = "nve", restart, trajectory, plot;
    DynamicsOptions options{.seed = 1};
    MachineOptions machine;
    ModelOptions model_options;
    std::int64_t steps = 1000, restart_every = 1000, every = 10;
    std::optional<std::int64_t> frame;
    bool overwrite = false, json = false;
};

class Run {
 public:
    explicit Run(const Arguments& arguments) : arguments_(arguments), options_(arguments.options) {
        options_.ensemble = parse_ensemble(arguments.ensemble);
    }

    int run() {
        require_in(steps_range, "--steps", arguments_.steps);
        for (const auto& [option, steps] : {std::pair{"--restart-every", arguments_.restart_every}, {"--every", arguments_.every}})
            require_in({1, steps_range.most, steps_range.unit}, option, steps);
        check_options(options_, "--");
        require_distinct({{"MODEL", arguments_.model},
                          {"STRUCTURE", arguments_.structure},
                          {"--restart", arguments_.restart},
                          {"--trajectory", arguments_.trajectory},
                          {"--plot", arguments_.plot}});
        const NamedFiles replaced = {{"--restart", arguments_.restart}, {"--plot", arguments_.plot}};
        require_writable(replaced);
        const FileLocks locks({{"--restart", arguments_.restart}, {"--trajectory", arguments_.trajectory}, {"--plot", arguments_.plot}});
        frame_ = read_frame(arguments_.structure, arguments_.frame);
        MovingAtoms start = begin();
        const std::int64_t first = start.step;
        const auto model = load_force_field(arguments_.model, arguments_.machine, arguments_.model_options);
        TimedForceField field(*model);
        MolecularDynamics dynamics(field, std::move(start), options_);
        if (!arguments_.trajectory.empty()) trajectory_.emplace(arguments_.trajectory, trajectory_bytes_, trajectory_end_);
        if (first == 0 && record_.samples.empty()) {
            record_.add(sample_of(dynamics), options_.timestep);
            write_frame(dynamics);
            write_restart_file(dynamics);
        }
        const Clock::time_point clock = Clock::now();
        const double ready = field.seconds();
        const bool finished = go_on(dynamics, clock);
        const double seconds = std::chrono::duration<double>(Clock::now() - clock).count();
        write_restart_file(dynamics);
        report(dynamics, first, seconds, field.seconds() - ready, finished);
        return finished ? exit_done : exit_stopped;
    }

 private:
    /// The state to start from: that of the restart file if there is one.
    MovingAtoms begin() {
        MovingAtoms start = atoms_at_rest(frame_.structure, frame_.atomic_numbers());
        origin_ = {{"MODEL", to_text(hash_text(read_file(arguments_.model)))},
                   {"STRUCTURE", to_text(hash_text(exact_text(frame_.structure.positions) + exact_text(frame_.structure.cell) +
                                                   periodic_text(frame_.structure) + " " + joined(frame_.species, " ")))},
                   {"--dtype", arguments_.machine.dtype},
                   {"--tables", tables_text()},
                   {"--keep-megabytes", kept_text()}};
        std::error_code ignored;
        if (!arguments_.restart.empty() && !arguments_.overwrite && std::filesystem::exists(arguments_.restart, ignored)) {
            Restart restart = read_restart(arguments_.restart);
            compare(restart);
            record_ = std::move(restart.record);
            trajectory_bytes_ = restart.trajectory_bytes;
            if (const auto end = restart.origin.find(end_key); end != restart.origin.end()) trajectory_end_ = end->second;
            if (trajectory_bytes_ == 0) require_new_trajectory("the run in " + in_quotes(arguments_.restart, 4096) + " wrote none so far");
            return std::move(restart.atoms);
        }
        if (!arguments_.overwrite) require_new_trajectory("there is no restart file to go on from");
        start.velocities = thermal_velocities(start.masses, options_.temperature, options_.seed);
        return start;
    }

    void require_new_trajectory(const std::string& why) const {
        std::error_code ignored;
        if (!arguments_.trajectory.empty() && std::filesystem::is_regular_file(arguments_.trajectory, ignored) &&
            std::filesystem::file_size(arguments_.trajectory, ignored) > 0)
            fail("--trajectory: file " + in_quotes(arguments_.trajectory, 4096) + " exists, and " + why + "; --overwrite replaces it");
    }

    /// A run goes on only as what it was.
    std::string kept_text() const {
        const auto& given = arguments_.model_options.keep_megabytes;
        return given ? std::to_string(*given) : "none";
    }
    std::string tables_text() const {
        if (!arguments_.model_options.tables) return "none";
        return arguments_.model_options.table_tolerance == 0 ? "default" : exact_text({&arguments_.model_options.table_tolerance, 1});
    }

    void compare(const Restart& restart) const {
        const auto same = [&](const std::string& option, const std::string& now, const std::string& before, bool show = true) {
            if (now == before) return;
            fail(option + (show ? " is " + now + ", but the run in " : " is not the one of the run in ") +
                 in_quotes(arguments_.restart, 4096) + (show ? " has " + before : "") + "; --overwrite starts anew");
        };
        for (const auto& [key, value] : origin_) {
            const auto found = restart.origin.find(key);
            same(key, value, found == restart.origin.end() ? "none" : found->second, key.starts_with("--"));
        }
        const DynamicsOptions &now = options_, &before = restart.options;
        same("--ensemble", to_text(now.ensemble), to_text(before.ensemble));
        same("--timestep", exact_text({&now.timestep, 1}), exact_text({&before.timestep, 1}));
        same("--temperature", exact_text({&now.temperature, 1}), exact_text({&before.temperature, 1}));
        same("--seed", std::to_string(now.seed), std::to_string(before.seed));
        if (now.ensemble == Ensemble::langevin) same("--friction", exact_text({&now.friction, 1}), exact_text({&before.friction, 1}));
        if (now.ensemble == Ensemble::rescaling)
            same("--time-constant", exact_text({&now.time_constant, 1}), exact_text({&before.time_constant, 1}));
        if (restart.trajectory_bytes > 0 && arguments_.trajectory.empty())
            fail("--trajectory: the run in " + in_quotes(arguments_.restart, 4096) + " writes one; frames would be missing in it");
    }

    /// False when a signal came before the last step.
    bool go_on(MolecularDynamics& dynamics, Clock::time_point start) {
        const Interrupt interrupt;
        LiveLine line;
        const std::int64_t first = dynamics.atoms().step;
        while (dynamics.atoms().step < arguments_.steps) {
            if (Interrupt::stopped()) return false;
            dynamics.advance();
            const RunSample sample = sample_of(dynamics);
            record_.add(sample, options_.timestep);
            if (sample.step % arguments_.every == 0) write_frame(dynamics);
            if (sample.step % arguments_.restart_every == 0) write_restart_file(dynamics);
            if (line.due()) {
                const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
                const double rate = static_cast<double>(sample.step - first) / seconds;
                char text[200];
                std::snprintf(text, sizeof text, "step %lld of %lld  %.3f ps  %.4f eV  %.0f K  %.3g ns/day  %.0f s left",
                              static_cast<long long>(sample.step), static_cast<long long>(arguments_.steps),
                              1e-3 * options_.timestep * static_cast<double>(sample.step), sample.potential + sample.kinetic,
                              sample.temperature, nanoseconds_per_day(rate), static_cast<double>(arguments_.steps - sample.step) / rate);
                line.show(text);
            }
        }
        return true;
    }

    void write_frame(const MolecularDynamics& dynamics) {
        if (trajectory_) trajectory_->append(format_xyz({frame_of(dynamics, options_, frame_)}));
    }

    /// The trajectory first: what a restart file counts on is on the disk before it.
    void write_restart_file(const MolecularDynamics& dynamics) {
        if (arguments_.restart.empty()) return;
        if (trajectory_) {
            trajectory_->sync();
            origin_[end_key] = trajectory_->end();
        }
        write_restart(arguments_.restart, {.atoms = dynamics.atoms(),
                                           .options = options_,
                                           .record = record_,
                                           .trajectory_bytes = trajectory_ ? trajectory_->bytes() : 0,
                                           .origin = origin_});
    }

    double nanoseconds_per_day(double steps_per_second) const { return steps_per_second * options_.timestep * 1e-6 * 86400; }

    void report(const MolecularDynamics& dynamics, std::int64_t first, double seconds, double model_seconds, bool finished) const {
        Report report;
        const std::int64_t atoms = dynamics.atoms().atoms(), last = dynamics.atoms().step, done = std::max<std::int64_t>(last - first, 0);
        report.fact("model", "model", arguments_.model);
        report.fact("structure", "structure", arguments_.structure + ": " + composition(frame_) + ", " + periodic_text(frame_.structure));
        report.fact("atoms", "atoms", atoms);
        report.fact("ensemble", "ensemble", to_text(options_.ensemble));
        report.fact("dtype", "dtype", arguments_.machine.dtype);
        if (const auto gpu = arguments_.machine.gpu()) report.fact("device", "device", gpu::Device::get(*gpu).name());
        else report.fact("threads", "threads", Threads(arguments_.machine.threads).count());
        report.fact("first_step", first > 0 ? "went on after step" : "first step", first);
        report.fact("last_step", "last step", last);
        report.fact("finished", "finished", {finished, finished ? "yes" : "no: stopped by a signal"});
        add_run_table(report, record_, sample_of(dynamics), options_);
        if (done > 0) {
            const double rate = static_cast<double>(done) / seconds, steps = static_cast<double>(done);
            report.fact("seconds", "time", {seconds, number(seconds, 4).text + " s for " + std::to_string(done) + " steps"});
            report.fact("nanoseconds_per_day", "speed", {nanoseconds_per_day(rate), number(nanoseconds_per_day(rate)).text + " ns/day"});
            report.fact("microseconds_per_atom_step", "per atom and step",
                        {1e6 * seconds / steps / static_cast<double>(atoms),
                         number(1e6 * seconds / steps / static_cast<double>(atoms), 4).text + " us"});
            report.fact("outside_model", "outside the model",
                        {1 - model_seconds / seconds, number(100 * (1 - model_seconds / seconds), 2).text + " % of the time"});
            report.fact("neighbour_searches", "neighbour searches",
                        {dynamics.neighbours().builds(), std::to_string(dynamics.neighbours().builds()) + " in " +
                                                             std::to_string(dynamics.neighbours().updates()) + " force calls"});
        }
        report_drift(report, record_, options_, atoms);
        if (trajectory_) report.fact("trajectory", "trajectory", arguments_.trajectory);
        if (!arguments_.restart.empty())
            report.fact(
                "restart", "restart file",
                {arguments_.restart, arguments_.restart + (finished ? ": a larger --steps goes on" : ": the same command goes on")});
        if (!arguments_.plot.empty()) report.fact("plot", "plot", arguments_.plot);
        report.print(arguments_.json);
        if (arguments_.plot.empty()) return;
        // Last: a picture that cannot be written costs no figures.
        const std::string title = composition(frame_) + " with " + std::filesystem::path(arguments_.model).filename().string();
        write_file(arguments_.plot, run_svg(title, record_, options_, atoms));
    }

    const Arguments& arguments_;
    DynamicsOptions options_;
    XyzFrame frame_;
    RunRecord record_;
    std::int64_t trajectory_bytes_ = 0;
    std::string trajectory_end_;
    std::map<std::string, std::string> origin_;
    std::optional<TrajectoryFile> trajectory_;
};

}  // namespace

void add_md(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    DynamicsOptions& options = arguments->options;
    CLI::App* command = app.add_subcommand("md", "Molecular dynamics: constant energy or temperature; goes on after being stopped");
    command->add_option("model", arguments->model, "Checkpoint: a Nequix .nqx file")->required();
    command->add_option("structure", arguments->structure, "Extended or plain XYZ")->required();
    command->add_option("--frame", arguments->frame, "Frame of the structure file to start from, from 1 (default: the last)");
    command->add_option("--steps", arguments->steps, "Steps from the very start of the run")->capture_default_str();
    command->add_option("--timestep", options.timestep, "fs")->capture_default_str();
    command->add_option("--temperature", options.temperature, "K, of the first velocities and of the thermostat")->capture_default_str();
    command
        ->add_option("--ensemble", arguments->ensemble,
                     "nve: constant energy; langevin: friction and noise; svr: stochastic velocity rescaling")
        ->capture_default_str();
    CLI::Option* friction = command->add_option("--friction", options.friction, "1/fs, of langevin");
    friction->capture_default_str();
    CLI::Option* time_constant = command->add_option("--time-constant", options.time_constant, "fs, of svr");
    time_constant->capture_default_str();
    command->add_option("--seed", options.seed, "Of first velocities and noise")->check(not_natural)->capture_default_str();
    CLI::Option* restart = command->add_option("--restart", arguments->restart, "File to go on from if it exists, and to write");
    command->add_option("--restart-every", arguments->restart_every, "Steps between writing it")->capture_default_str()->needs(restart);
    CLI::Option* trajectory = command->add_option("--trajectory", arguments->trajectory, "Extended XYZ file of the frames");
    command->add_option("--every", arguments->every, "Steps between frames")->capture_default_str()->needs(trajectory);
    command->add_option("--skin", options.skin, "Angstrom, of the neighbour list; changes no result")->capture_default_str();
    command->add_option("--plot", arguments->plot, "Write a picture of energy, temperature, pressure and volume to this SVG file");
    command->add_flag("--overwrite", arguments->overwrite, "Start anew where restart or trajectory file exist");
    add_machine_options(*command, arguments->machine, true, /*peaks=*/false);
    add_model_options(*command, arguments->model_options);
    add_device_option(*command, arguments->machine);
    command->add_flag("--json", arguments->json, "For machines");
    command->footer(
        "Ctrl-C and SIGTERM end the run in order: restart file and report are written, exit code 3.\n"
        "Example:\n"
        "  clebsch md examples/data/nequix-mp-1.nqx examples/data/aspirin.xyz --steps 2000 \\\n"
        "    --restart aspirin.restart --trajectory aspirin-md.xyz --plot aspirin.svg");
    command->callback([arguments, friction, time_constant, &status] {
        const auto only_of = [&](const CLI::Option* option, const std::string& ensemble) {
            if (option->count() > 0 && arguments->ensemble != ensemble)
                fail(option->get_name() + ": expected with --ensemble " + ensemble + " only, got --ensemble " + arguments->ensemble);
        };
        parse_ensemble(arguments->ensemble);  // names a wrong one before its options
        only_of(friction, "langevin");
        only_of(time_constant, "svr");
        status = Run(*arguments).run();
    });
}

}  // namespace clebsch::tool
