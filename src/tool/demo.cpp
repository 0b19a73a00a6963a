// clebsch demo: a published potential on a published structure, with its own weights. Its parts (harmonics, radial networks, convolutions)
// are checked against the reference and timed against this machine's limits; then the whole model against its authors' values, and a
// molecule moves.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/radial_network.hpp"
#include "graph/neighbours.hpp"
#include "io/nequix.hpp"
#include "io/xyz.hpp"
#include "model/nequix.hpp"
#include "run/machine.hpp"
#include "tool/command.hpp"
#include "tool/demo_model.hpp"
#include "tool/force_field_file.hpp"
#include "tool/machine_options.hpp"
#include "tool/passes.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"
#include "tool/roofline.hpp"
#include "tool/sample_check.hpp"
#include "tool/structures.hpp"
#include "tool/timing.hpp"
#include "tool/verdicts.hpp"
#include "tool/workload.hpp"

namespace clebsch::tool {
namespace {

struct Arguments {
    std::string data = "examples/data", structure = "water-216.xyz", checkpoint = "nequix-mp-1.nqx", molecule = "aspirin.xyz", svg, plot;
    MachineOptions machine;
    int sample = 2;
    std::int64_t steps = 500;
    bool json = false;
};

/// The model's radial network of a layer: lengths to weights of paths.
Program radial_of(const NequixCheckpoint& model, const NequixLayer& layer) {
    RadialOptions options = nequix_basis(model);
    options.from_vectors = false;
    options.hidden.assign(static_cast<std::size_t>(model.radial_mlp_layers), model.radial_mlp_size);
    options.outputs = layer.radial.back().shape.back();
    return radial_network(options);
}

Polynomial convolution_of(const NequixCheckpoint& model, const NequixLayer& layer) {
    Polynomial polynomial = nequix_message(model, layer);
    if (polynomial.paths.size() != layer.paths.size())
        fail("a layer of the checkpoint has " + std::to_string(layer.paths.size()) + " paths, its convolution " +
             std::to_string(polynomial.paths.size()));
    return polynomial;
}

std::string short_irreps(const Irreps& irreps) { return to_text(irreps.regrouped()); }

class Demo {
 public:
    explicit Demo(const Arguments& arguments) : arguments_(arguments), threads_(arguments.machine.threads) {}

    int run() {
        const std::filesystem::path folder(arguments_.data);
        model_ = read_nequix(folder / arguments_.checkpoint);
        const XyzFrame frame = read_frame((folder / arguments_.structure).string());
        graph_ = build_graph(frame.structure, model_.cutoff);
        if (graph_.edges() == 0) fail("the structure has no two atoms closer than " + plain(model_.cutoff).text);
        topology_ = topology_of(graph_);
        progress_.now("measuring this machine");
        measured_ = arguments_.machine.peaks(threads_.parallel_for());
        choose_sample();
        report_.fact("structure", "structure", arguments_.structure + ": " + std::to_string(graph_.nodes) + " atoms");
        report_.fact("model", "model",
                     arguments_.checkpoint + ": " + std::to_string(model_.parameters()) + " parameters, " +
                         std::to_string(model_.layers.size()) + " layers, cutoff " + plain(model_.cutoff).text + " A");
        report_.fact("edges", "edges", graph_.edges());
        report_.fact("edges_per_atom", "edges per atom",
                     number(static_cast<double>(graph_.edges()) / static_cast<double>(graph_.nodes), 4));
        report_.fact("processor", "processor", machine_info().processor);
        report_peaks(report_, measured_);
        Table& layers = report_.table("layers", "convolutions",
                                      {{"layer", "layer"},
                                       {"in", "node features", false},
                                       {"out", "message", false},
                                       {"paths", "paths"},
                                       {"weights", "weights per edge"}});
        table_ = &report_.table(
            "results",
            "float32; every pass on all edges; errors against exact arithmetic on a sample of atoms (norm of the difference over norm)",
            {{"what", "what", false},
             {"pass", "pass", false},
             {"edges", "edges"},
             {"microseconds_per_edge", "us/edge"},
             {"gigaflops", "GFLOP/s"},
             {"limit_share", "of limit"},
             {"error", "error"},
             {"bound", "bound"},
             {"verdict", "verdict", false},
             {"schedule", "schedule", false}});
        harmonics();
        for (std::size_t l = 0; l < model_.layers.size(); ++l) {
            const NequixLayer& layer = model_.layers[l];
            layers.row({std::int64_t(l + 1), short_irreps(layer.input), short_irreps(layer.message), std::int64_t(layer.paths.size()),
                        layer.radial.back().shape.back()});
            this->layer(l);
        }
        report_.note(
            "of limit: the longer of every array once at the copy bandwidth and all multiply-adds at their peak, over the time taken.");
        if (!arguments_.svg.empty()) {
            const std::string subtitle = std::to_string(measured_.threads) + (measured_.threads == 1 ? " thread, " : " threads, ") +
                                         to_text(measured_.isa) + ", float32; " + std::to_string(graph_.nodes) + " atoms of water, " +
                                         std::to_string(graph_.edges()) + " edges";
            write_file(arguments_.svg, roofline_svg("Nequix MP-1 on " + machine_info().processor, subtitle, measured_.peaks, points_));
            report_.note("roofline picture: " + arguments_.svg);
        }
        whole_model(frame);
        report_.fact("passed", "demo:", {verdicts_.failed() == 0, verdicts_.text()});
        progress_.now("");
        report_.print(arguments_.json);
        return verdicts_.failed() == 0 ? exit_done : exit_check_failed;
    }

 private:
    /// Atoms spread over the structure, the edges they receive and the edges they send.
    void choose_sample() {
        const std::int64_t count = std::min<std::int64_t>(arguments_.sample, graph_.nodes);
        for (std::int64_t k = 0; k < count; ++k) sample_.nodes.push_back((2 * k + 1) * graph_.nodes / (2 * count));
        for (const std::int64_t node : sample_.nodes) {
            const auto n = static_cast<std::size_t>(node);
            for (std::int64_t e = graph_.offsets[n]; e < graph_.offsets[n + 1]; ++e) sample_.received.push_back(e);
            for (std::int64_t k = graph_.sender_offsets[n]; k < graph_.sender_offsets[n + 1]; ++k)
                sample_.sent.push_back(graph_.by_sender[static_cast<std::size_t>(k)]);
        }
        std::ranges::sort(sample_.sent);
    }

    /// Runs and checks passes one after the other.
    void passes(const std::string& what, const std::vector<Pass>& passes, Arrays& arrays) {
        for (const Pass& pass : passes) {
            progress_.now(what + ", " + pass.title);
            Workload workload(pass.description, topology_, arrays);
            const ParallelFor parallel_for = threads_.parallel_for();
            const Timing timing = measure_in_turns({[&] { workload.run(parallel_for); }}, 0.3, 3).front();
            progress_.now(what + ", " + pass.title + " against the reference");
            const double error = sample_error(workload, arrays, topology_, sample_);
            const bool passed = verdicts_.add(error, float32_bound);
            const Work work = workload.work();
            const double edges = static_cast<double>(graph_.edges());
            table_->row({what,
                         pass.title,
                         graph_.edges(),
                         number(timing.median * 1e6 / edges),
                         number(2e-9 * work.multiply_adds / timing.median),
                         percent(limit_seconds(work, measured_.peaks) / timing.median),
                         scientific(error),
                         scientific(float32_bound),
                         {passed, Verdicts::word(passed)},
                         workload.schedule()});
            points_.push_back({what, pass.title, work, timing.median});
            for (const Argument& argument : workload.arguments())  // large, and made anew when needed
                if (argument.role == Role::output && &pass != &passes.front()) arrays.drop(argument.name);
        }
    }

    void harmonics() {
        HarmonicsOptions options;
        options.rows = "edge";
        options.x = {"vectors"};
        options.out = {"y"};
        Arrays arrays(DType::float32);
        Array vectors(DType::float32, graph_.edges(), 3);
        for (std::int64_t i = 0; i < vectors.count(); ++i) vectors.set(i, graph_.vectors[static_cast<std::size_t>(i)]);
        arrays.put("vectors", std::move(vectors));
        passes("harmonics", passes_of(normalized_harmonics(Irreps::spherical_harmonics(model_.lmax), options), {}, 2), arrays);
        y_ = std::make_unique<Array>(arrays.take("y", Role::output));
    }

    void layer(std::size_t number) {
        const NequixLayer& layer = model_.layers[number];
        const std::string name = "layer " + std::to_string(number + 1);
        Arrays convolution_arrays(DType::float32, number + 1);
        {
            Arrays arrays(DType::float32, number + 1);
            Array lengths(DType::float32, graph_.edges(), 1);
            for (std::int64_t e = 0; e < graph_.edges(); ++e) {
                const double* v = graph_.vectors.data() + 3 * e;
                lengths.set(e, std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]));
            }
            arrays.put("lengths", std::move(lengths));
            for (std::size_t m = 0; m < layer.radial.size(); ++m) {
                const WeightArray& matrix = layer.radial[m];
                Array array(DType::float32, 1, static_cast<std::int64_t>(matrix.values.size()));
                std::ranges::copy(matrix.values, array.at<float>());
                arrays.put("matrix_" + std::to_string(m), std::move(array));
            }
            const Program forward = radial_of(model_, layer);
            std::vector<Pass> radial = {{"forward", "forward", forward},
                                        {"backward", "backward", vjp(forward, std::vector<std::string>{"lengths"})}};
            radial.push_back({"double_backward", "double backward", reverse(radial[1].description, {"lengths", "weights_cotangent"})});
            passes(name + ", radial", radial, arrays);
            convolution_arrays.put("weights", arrays.take("weights", Role::output));
        }
        Array y(DType::float32, y_->rows(), y_->size());
        std::memcpy(y.at<float>(), y_->at<float>(), y.byte_count());
        convolution_arrays.put("y", std::move(y));
        passes(name + ", convolution", passes_of(convolution_of(model_, layer), {}, 2), convolution_arrays);
    }

    void whole_model(const XyzFrame& frame) {
        const std::filesystem::path folder(arguments_.data);
        progress_.now("the whole model");
        const auto field = load_force_field((folder / arguments_.checkpoint).string(), arguments_.machine);
        check_model(report_, verdicts_, *field, frame, arguments_.structure, arguments_.checkpoint);
        run_dynamics(report_, progress_, *field, read_frame((folder / arguments_.molecule).string()), arguments_.molecule, arguments_.steps,
                     arguments_.plot);
    }

    const Arguments& arguments_;
    Threads threads_;
    Progress progress_;
    Report report_;
    Table* table_ = nullptr;
    Verdicts verdicts_;
    NequixCheckpoint model_;
    Graph graph_;
    Topology topology_;
    MeasuredPeaks measured_;
    Sample sample_;
    std::unique_ptr<Array> y_;
    std::vector<RooflinePoint> points_;
};

}  // namespace

void add_demo(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command =
        app.add_subcommand("demo", "A published potential on a box of water, part by part and whole, checked and timed; dynamics");
    command->add_option("--data", arguments->data, "Folder with the structure and the checkpoint")->capture_default_str();
    command->add_option("--structure", arguments->structure, "Extended XYZ file in it; its last frame is used")->capture_default_str();
    command->add_option("--checkpoint", arguments->checkpoint, "Nequix checkpoint in it")->capture_default_str();
    command->add_option("--svg", arguments->svg, "Write a roofline picture to this file");
    command->add_option("--molecule", arguments->molecule, "Extended XYZ file in it whose atoms move")->capture_default_str();
    command->add_option("--steps", arguments->steps, "Steps of molecular dynamics")->check(CLI::Range(0, 1'000'000))->capture_default_str();
    command->add_option("--plot", arguments->plot, "Write a picture of the dynamics to this file");
    command->add_option("--sample", arguments->sample, "Atoms whose results are compared with the reference")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    add_machine_options(*command, arguments->machine, false);
    command->add_flag("--json", arguments->json, "For machines");
    command->footer("Exit code 1 if a check fails.\nExample:\n  clebsch demo --data examples/data --svg demo.svg");
    command->callback([arguments, &status] {
        if (const auto isa = arguments->machine.isa()) force_instruction_set(isa);
        status = Demo(*arguments).run();
    });
}

}  // namespace clebsch::tool
