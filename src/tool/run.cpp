// clebsch run: energies, forces and stresses of structures from a published model.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"
#include "graph/neighbours.hpp"
#include "model/potential_check.hpp"
#include "run/gpu/driver.hpp"
#include "tool/command.hpp"
#include "tool/file_lock.hpp"
#include "tool/force_field_file.hpp"
#include "tool/machine_options.hpp"
#include "tool/output_files.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"
#include "tool/structures.hpp"
#include "tool/verdicts.hpp"

namespace clebsch::tool {
namespace {

struct Arguments {
    std::string model, structure, out;
    MachineOptions machine;
    ModelOptions model_options;
    std::uint64_t seed = 1;
    bool check = false, json = false, profile = false;
};

constexpr std::int64_t most_shown = 32;  ///< atoms whose forces people see; files and JSON have all

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Cell energy_cell(double value) { return {value, number(value, 12).text}; }

std::string numbers_text(std::span<const double> values) {
    std::string text;
    char word[32];
    for (const double value : values) {
        std::snprintf(word, sizeof word, "%.17g", value);
        text += (text.empty() ? "" : " ") + std::string(word);
    }
    return text;
}

/// The frame with the model's energy, forces and stress in the place of any it had.
XyzFrame with_results(XyzFrame frame, const Energies& energies, const std::vector<double>& stress) {
    std::erase_if(frame.columns, [](const XyzColumn& column) { return column.name == "forces" || column.name == "force"; });
    std::erase_if(frame.info, [](const auto& item) {
        return item.first == "energy" || item.first == "free_energy" || item.first == "stress" || item.first == "virial";
    });
    frame.columns.push_back({"forces", 3, energies.forces});
    frame.info.emplace_back("energy", numbers_text(energies.energy));
    if (!stress.empty()) frame.info.emplace_back("stress", numbers_text(stress));
    if (!frame.comment.empty()) frame.info.emplace_back("comment", std::exchange(frame.comment, ""));
    return frame;
}

class Run {
 public:
    explicit Run(const Arguments& arguments) : arguments_(arguments) {}

    int run() {
        const Clock::time_point start = Clock::now();
        // Whoever names the structure file as --out wants its frames with results.
        require_distinct({{"MODEL", arguments_.model}, {"--out", arguments_.out}});
        require_writable({{"--out", arguments_.out}});
        const FileLocks locks({{"--out", arguments_.out}});
        if (arguments_.profile && !arguments_.machine.gpu())
            fail("--profile: expected with --device cuda only, got --device " + arguments_.machine.device);
        std::vector<XyzFrame> frames = read_structures(arguments_.structure);
        const PotentialOptions options = potential_options(arguments_.machine, arguments_.model_options);
        const int threads = options.gpu ? 1 : Threads(arguments_.machine.threads).count();
        Potential potential = Potential::load(arguments_.model, options, [&](const Model& model) {
            if (threads == 1 || frames.empty()) return;
            try {
                first_ = std::async(std::launch::async, neighbours_of, frames[0].structure, model.cutoff);
            } catch (const std::system_error&) {  // a machine that gives no more threads: they are found later
            }
        });
        report_.fact("model", "model", arguments_.model);
        report_.fact("structure", "structure", arguments_.structure);
        report_.fact("dtype", "dtype", to_text(options.dtype));
        if (options.gpu) report_.fact("device", "device", gpu::Device::get(*options.gpu).name());
        else report_.fact("threads", "threads", threads);
        report_tables(report_, potential);
        ready_seconds_ = seconds_since(start);
        add_tables();
        Energies energies;
        for (std::size_t f = 0; f < frames.size(); ++f) {
            progress_.now("frame " + std::to_string(f + 1) + " of " + std::to_string(frames.size()));
            const std::vector<double> stress =
                in_frame(arguments_.structure, f, [&] { return evaluate(potential, frames[f], f, energies); });
            if (!arguments_.out.empty()) frames[f] = with_results(std::move(frames[f]), energies, stress);
        }
        if (arguments_.profile) add_profile(potential.time_steps());
        report_.fact("seconds_to_ready", "ready after", {ready_seconds_, number(ready_seconds_ * 1e3).text + " ms"});
        report_.fact("workspace_bytes", "memory for intermediates", bytes(static_cast<double>(potential.workspace_bytes())));
        if (hidden_ > 0) report_.note("... forces of " + std::to_string(hidden_) + " more atoms: --json or --out FILE has them");
        if (!arguments_.out.empty()) {
            write_file(arguments_.out, format_xyz(frames));
            report_.fact("out", "written to", arguments_.out);
        }
        const bool passed = !arguments_.check || check(potential, frames);
        progress_.now("");
        report_.print(arguments_.json);
        return passed ? exit_done : exit_check_failed;
    }

 private:
    struct Neighbours {
        Graph graph;
        double seconds = 0;
    };
    static Neighbours neighbours_of(const Structure& structure, double cutoff) {
        const Clock::time_point start = Clock::now();
        Graph graph = build_graph(structure, cutoff);
        return {std::move(graph), seconds_since(start)};
    }

    void add_tables() {
        frames_ = &report_.table("frames", "energies (eV), forces (eV/A), stress (eV/A^3, positive: tension)",
                                 {{"frame", "frame"},
                                  {"composition", "composition", false},
                                  {"periodic", "periodic", false},
                                  {"atoms", "atoms"},
                                  {"edges", "edges"},
                                  {"energy", "energy"},
                                  {"energy_per_atom", "per atom"},
                                  {"largest_force", "largest force"},
                                  {"stress_xx", "xx"},
                                  {"stress_yy", "yy"},
                                  {"stress_zz", "zz"},
                                  {"stress_yz", "yz"},
                                  {"stress_xz", "xz"},
                                  {"stress_xy", "xy"},
                                  {"neighbour_seconds", "neighbours"},
                                  {"seconds", "model"},
                                  {"microseconds_per_atom", "us/atom"}});
        forces_ = &report_.table("forces", "forces (eV/A)",
                                 {{"frame", "frame"},
                                  {"atom", "atom"},
                                  {"species", "", false},
                                  {"x", "x"},
                                  {"y", "y"},
                                  {"z", "z"},
                                  {"energy", "atom's energy (eV)"}});
    }

    /// Returns the stress; empty without a volume.
    std::vector<double> evaluate(Potential& potential, const XyzFrame& frame, std::size_t f, Energies& energies) {
        const std::vector<int> numbers = frame.atomic_numbers();
        const auto [graph, neighbour_seconds] = first_.valid() ? first_.get() : neighbours_of(frame.structure, potential.cutoff());
        Clock::time_point start = Clock::now();
        potential.prepare(graph.nodes, graph.edges());
        ready_seconds_ += seconds_since(start);
        start = Clock::now();
        potential.evaluate(std::span(&frame.structure, 1), numbers, graph, energies);
        const double seconds = seconds_since(start), atoms = static_cast<double>(numbers.size());
        require_finite(energies, "model");
        double most = 0;
        for (std::size_t i = 0; i < energies.forces.size(); i += 3)
            most = std::max(most, std::hypot(energies.forces[i], energies.forces[i + 1], energies.forces[i + 2]));
        std::vector<double> stress;
        if (const double size = volume(frame.structure); size > 0)
            for (const double entry : energies.virial) stress.push_back(entry / size);
        std::vector<Cell> row = {std::int64_t(f + 1),
                                 composition(frame),
                                 periodic_text(frame.structure),
                                 graph.nodes,
                                 graph.edges(),
                                 energy_cell(energies.energy[0]),
                                 numbers.empty() ? Cell() : number(energies.energy[0] / atoms, 8),
                                 number(most, 5)};
        for (const std::size_t entry : {0, 4, 8, 5, 2, 1}) row.push_back(stress.empty() ? Cell() : number(stress[entry], 5));
        row.push_back({neighbour_seconds, number(neighbour_seconds * 1e3).text + " ms"});
        row.push_back({seconds, number(seconds * 1e3).text + " ms"});
        row.push_back(numbers.empty() ? Cell() : number(seconds / atoms * 1e6, 4));
        frames_->row(std::move(row));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (!arguments_.json && ++shown_ > most_shown) {
                ++hidden_;
                continue;
            }
            std::vector<Cell> atom = {std::int64_t(f + 1), std::int64_t(i), i < frame.species.size() ? frame.species[i] : std::string()};
            for (std::size_t k = 0; k < 3; ++k) atom.push_back(number(energies.forces[3 * i + k], 6));
            atom.push_back(number(energies.atom_energy[i], 8));
            forces_->row(std::move(atom));
        }
        return stress;
    }

    void add_profile(const std::vector<StepTime>& times) {
        double sum = 0;
        for (const StepTime& time : times) sum += time.milliseconds;
        Table& table = report_.table("steps", "steps of the last frame, each waited for",
                                     {{"step", "step", false}, {"milliseconds", "ms"}, {"share", "share"}});
        for (const StepTime& time : times) table.row({time.step, number(time.milliseconds, 4), percent(time.milliseconds / sum)});
    }

    bool check(Potential& potential, const std::vector<XyzFrame>& frames) {
        const bool single = arguments_.machine.type() == DType::float32;
        std::optional<Potential> other;
        if (single) {
            PotentialOptions twice = potential_options(arguments_.machine, {});
            twice.dtype = DType::float64;
            other = Potential::load(arguments_.model, twice);
        }
        Potential& exact = single ? *other : potential;
        Table& table = report_.table("checks", "checks in float64",
                                     {{"frame", "frame"},
                                      {"what", "what", false},
                                      {"error", "error"},
                                      {"bound", "bound"},
                                      {"unit", "", false},
                                      {"verdict", "verdict", false}});
        Verdicts verdicts;
        PotentialCheckOptions options;
        for (std::size_t f = 0; f < frames.size(); ++f) {
            options.seed = arguments_.seed + f;
            options.progress = [&](int evaluation) {
                progress_.now("checking frame " + std::to_string(f + 1) + ", evaluation " + std::to_string(evaluation));
            };
            for (const PotentialCheck& check :
                 check_potential(exact, single ? &potential : nullptr, frames[f].structure, frames[f].atomic_numbers(), options))
                table.row({std::int64_t(f + 1), check.what, scientific(check.error), scientific(check.bound), check.unit,
                           Verdicts::word(verdicts.add(check.error, check.bound))});
        }
        report_.fact("passed", "check:", {verdicts.failed() == 0, verdicts.text()});
        return verdicts.failed() == 0;
    }

    const Arguments& arguments_;
    Report report_;
    Progress progress_;
    std::future<Neighbours> first_;  ///< of the first frame: found while the model is planned, where there is a second thread
    Table *frames_ = nullptr, *forces_ = nullptr;
    std::int64_t shown_ = 0, hidden_ = 0;
    double ready_seconds_ = 0;  ///< loading, and what the first frame of its size makes once
};

}  // namespace

void add_run(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("run", "Energies, forces and stresses of structures from a published model");
    command->add_option("model", arguments->model, "Checkpoint: a Nequix .nqx file")->required();
    command->add_option("structure", arguments->structure, "Extended XYZ file; every frame is computed")->required();
    command->add_option("--out", arguments->out, "Extended XYZ file to write: the frames with energy, forces and stress");
    CLI::Option* check = command->add_flag(
        "--check", arguments->check,
        "Also: finite differences, rotation, permutation, translation (float64), float32 beside float64; exit code 1 if one fails");
    command->add_flag("--profile", arguments->profile, "With --device cuda: what every step of the last frame takes");
    command->add_option("--seed", arguments->seed, "Of the directions and permutations of --check")->capture_default_str()->needs(check);
    add_machine_options(*command, arguments->machine, true, /*peaks=*/false);
    add_model_options(*command, arguments->model_options);
    add_device_option(*command, arguments->machine);
    command->add_flag("--json", arguments->json, "For machines");
    command->footer(
        "Examples:\n"
        "  clebsch run nequix-mp-1.nqx water.xyz\n"
        "  clebsch run nequix-mp-1.nqx trajectory.xyz --out computed.xyz --threads 8\n"
        "  clebsch run nequix-mp-1.nqx water.xyz --dtype float64 --check\n"
        "  clebsch run nequix-mp-1.nqx water.xyz --device cuda");
    command->callback([arguments, &status] { status = Run(*arguments).run(); });
}

}  // namespace clebsch::tool
