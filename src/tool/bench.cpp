// clebsch bench: how fast operations run here, against what this machine can do in the same run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/named_problems.hpp"
#include "graph/neighbours.hpp"
#include "io/xyz.hpp"
#include "run/machine.hpp"
#include "tool/command.hpp"
#include "tool/gpu_bench.hpp"
#include "tool/machine_options.hpp"
#include "tool/output_files.hpp"
#include "tool/passes.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"
#include "tool/request.hpp"
#include "tool/roofline.hpp"
#include "tool/timing.hpp"
#include "tool/workload.hpp"

namespace clebsch::tool {
namespace {

/// What section B of the field's tables and our own targets are about; the rest is named explicitly or by --all.
const std::vector<std::string> usual_problems = {
    "mace-large",  "nequix-main", "sevennet-l3i5-main",       "nequip-lips", "tetris-poly-2", "tetris-poly-2-per-row", "linear-128",
    "harmonics-3", "harmonics-6", "symmetric-contraction-128"};

struct Arguments {
    std::vector<std::string> problems;
    std::string in, edge = "1x0e+1x1o+1x2e+1x3o", filter;
    int blocks = 0, team_warps = 0, consumers = 0;
    std::string structure, passes = "forward,backward,double", svg, layout = "mul_ir", family, gradients;
    double cutoff = 0, seconds = 1.0;
    MachineOptions machine;
    SizeOptions sizes;
    bool product = false, quick = false, all = false, list = false, schedules = false, json = false;
};

struct Problem {
    std::string label, kind;
    Description description;
};

std::vector<Problem> problems_of(const Arguments& arguments) {
    std::vector<Problem> problems;
    if (!arguments.in.empty()) {
        ConvolutionOptions options;
        const Layout layout = arguments.layout == "ir_mul" ? Layout::ir_mul : Layout::mul_ir;
        options.x.layout = options.out.layout = layout;
        const Irreps in(arguments.in), edge(arguments.edge), filter(arguments.filter);
        problems.push_back({"your convolution", "convolution", convolution(in, edge, filter, options)});
        if (!computes(problems.back().description))
            fail("--in " + arguments.in + ": no product with " + arguments.edge + " gives " +
                 (arguments.filter.empty() ? "anything" : "any of " + arguments.filter));
    }
    std::vector<std::string> labels = arguments.problems;
    if (arguments.all)
        for (const NamedProblem& problem : named_problems()) labels.push_back(problem.label);
    if (labels.empty() && arguments.in.empty()) {
        labels = usual_problems;
        if (!arguments.structure.empty()) labels = {"nequix-main"};
    }
    for (const std::string& label : labels) {
        Request request = read_request({.name = label, .options = {}, .text_file = {}, .derivatives = {}});
        if (arguments.product) request.description = named_problem(label, ProblemForm::product);
        problems.push_back({label, arguments.product ? "product" : request.kind, std::move(request.description)});
    }
    return problems;
}

/// ir_mul for all operands that have channels and components: what a caller who keeps that layout throughout gets.
Description with_layout(Description description, Layout layout) {
    if (auto* polynomial = std::get_if<Polynomial>(&description))
        for (Operand& operand : polynomial->operands) operand.layout = layout;
    return description;
}

class Bench {
 public:
    explicit Bench(const Arguments& arguments) : arguments_(arguments), threads_(arguments.machine.threads) {}

    int run() {
        require_distinct({{"--structure", arguments_.structure}, {"--svg", arguments_.svg}});
        require_writable({{"--svg", arguments_.svg}});
        const std::vector<std::string> names = split(arguments_.passes, ',');
        for (const std::string& name : names)
            if (name != "forward" && name != "backward" && name != "double")
                fail("--passes: expected forward, backward or double, got '" + name + "'");
        if (names.empty()) fail("--passes: expected at least one of forward, backward, double");
        if (arguments_.layout != "mul_ir" && arguments_.layout != "ir_mul")
            fail("--layout: expected mul_ir or ir_mul, got '" + arguments_.layout + "'");
        const std::vector<Problem> problems = problems_of(arguments_);
        std::optional<Graph> graph;
        if (!arguments_.structure.empty()) {
            if (!(arguments_.cutoff > 0)) fail("--structure needs --cutoff above 0");
            std::vector<Structure> structures;
            for (const XyzFrame& frame : read_xyz(arguments_.structure)) structures.push_back(frame.structure);
            graph = build_graph(structures, {.cutoff = arguments_.cutoff});
            report_.fact(
                "structure", "structure",
                arguments_.structure + ": " + std::to_string(graph->nodes) + " atoms, " + std::to_string(graph->edges()) + " edges");
        }
        measured_ = arguments_.machine.peaks(threads_.parallel_for());
        report_.fact("processor", "processor", machine_name());
        report_peaks(report_, measured_);
        report_.fact("dtype", "dtype", arguments_.machine.dtype);
        Table& table = report_.table("results", "",
                                     {{"problem", "problem", false},
                                      {"pass", "pass", false},
                                      {"rows", "rows"},
                                      {"microseconds_per_row", "us/row"},
                                      {"spread", "spread"},
                                      {"gigaflops", "GFLOP/s"},
                                      {"fma_share", "of FMA"},
                                      {"gigabytes_per_second", "GB/s"},
                                      {"copy_share", "of copy"},
                                      {"limit_microseconds_per_row", "limit us/row"},
                                      {"limit_share", "of limit"},
                                      {"schedule", "schedule: paths by kernel", false}});
        for (const Problem& problem : problems) measure(problem, graph, names, table);
        const bool unasked = fallbacks_ > 0 && arguments_.family.empty();
        if (unasked)
            report_.note(std::to_string(fallbacks_) + (fallbacks_ == 1 ? " pass uses" : " passes use") +
                         " the general kernel, which a problem people measure should never need: please report it.");
        report_.note(
            "spread: distance between the quartiles over the median. GB/s: every array once. limit: the longer of bytes over the copy "
            "bandwidth and multiply-adds over "
            "the FMA peak.");
        if (!schedules_.empty()) report_.text("schedules", schedules_);
        if (!arguments_.svg.empty())
            write_file(arguments_.svg, roofline_svg("Clebsch on " + machine_name(), subtitle(), measured_.peaks, points_));
        progress_.now("");
        report_.print(arguments_.json);
        return unasked ? exit_check_failed : exit_done;
    }

 private:
    static std::string machine_name() { return machine_info().processor; }
    std::string subtitle() const {
        return std::to_string(measured_.threads) + (measured_.threads == 1 ? " thread, " : " threads, ") + to_text(measured_.isa) + ", " +
               arguments_.machine.dtype;
    }

    void measure(const Problem& problem, const std::optional<Graph>& graph, const std::vector<std::string>& names, Table& table) {
        const auto wanted = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
        const Description description =
            arguments_.layout == "ir_mul" ? with_layout(problem.description, Layout::ir_mul) : problem.description;
        progress_.now("preparing " + problem.label);
        std::vector<Pass> passes = passes_of(description, split(arguments_.gradients, ','),
                                             wanted("double")     ? 2
                                             : wanted("backward") ? 1
                                                                  : 0);
        std::erase_if(passes, [&](const Pass& pass) { return !wanted(pass.key == "double_backward" ? "double" : pass.key.c_str()); });
        Topology topology;
        for (const Pass& pass : passes) {
            const Topology more = make_topology(pass.description, topology_options(arguments_.sizes, problem.kind, arguments_.quick));
            topology.rows.insert(more.rows.begin(), more.rows.end());
            topology.indices.insert(more.indices.begin(), more.indices.end());
        }
        if (graph && topology.rows.contains("edge")) topology = topology_of(*graph);
        Arrays arrays(arguments_.machine.type());
        std::vector<std::unique_ptr<Workload>> workloads;
        std::vector<std::function<void()>> tasks;
        const ParallelFor parallel_for = threads_.parallel_for();
        for (const Pass& pass : passes) {
            workloads.push_back(std::make_unique<Workload>(pass.description, topology, arrays,
                                                           WorkloadOptions{arguments_.machine.isa(), arguments_.family}));
            tasks.emplace_back([workload = workloads.back().get(), parallel_for] { workload->run(parallel_for); });
        }
        progress_.now("measuring " + problem.label);
        const std::vector<Timing> timings = measure_in_turns(
            tasks, arguments_.seconds * (arguments_.quick ? 0.2 : 1.0) * static_cast<double>(tasks.size()), arguments_.quick ? 3 : 7);
        for (std::size_t p = 0; p < passes.size(); ++p) add_row(problem, passes[p], *workloads[p], timings[p], table);
    }

    void add_row(const Problem& problem, const Pass& pass, const Workload& workload, const Timing& timing, Table& table) {
        const Work work = workload.work();
        const double rows = static_cast<double>(std::max<std::int64_t>(1, workload.rows()));
        const double limit = limit_seconds(work, measured_.peaks);
        const std::string schedule = workload.schedule();
        if (schedule.find("general") != std::string::npos) ++fallbacks_;
        const double flops = 2 * work.multiply_adds / timing.median, moved = work.bytes / timing.median;
        table.row({problem.label, pass.title, workload.rows(), number(timing.median * 1e6 / rows), percent(timing.spread()),
                   number(flops * 1e-9), percent(flops / (2 * measured_.peaks.multiply_adds_per_second)), number(moved * 1e-9),
                   percent(moved / measured_.peaks.copy_bytes_per_second), number(limit * 1e6 / rows), percent(limit / timing.median),
                   schedule});
        points_.push_back({problem.label, pass.title, work, timing.median});
        if (arguments_.schedules) schedules_ += "\n" + problem.label + ", " + pass.title + "\n" + workload.explain();
    }

    const Arguments& arguments_;
    Threads threads_;
    Progress progress_;
    Report report_;
    MeasuredPeaks measured_;
    std::vector<RooflinePoint> points_;
    std::string schedules_;
    int fallbacks_ = 0;
};

int run_on_gpu(const Arguments& arguments, int device) {
    for (const auto& [option, given] : {std::pair{"--structure", !arguments.structure.empty()},
                                        {"--svg", !arguments.svg.empty()},
                                        {"--schedules", arguments.schedules},
                                        {"--quick", arguments.quick}})
        if (given) fail(std::string(option) + ": expected with --device cpu only, got --device " + arguments.machine.device);
    std::vector<GpuProblemToTime> problems;
    for (Problem& problem : problems_of(arguments)) {
        if (arguments.layout == "ir_mul") problem.description = with_layout(problem.description, Layout::ir_mul);
        problems.push_back({problem.label, problem.kind, std::move(problem.description)});
    }
    return gpu_bench(problems, {.passes = split(arguments.passes, ','),
                                .gradients = split(arguments.gradients, ','),
                                .dtype = storage_type(arguments.machine),
                                .sizes = arguments.sizes,
                                .seconds = arguments.seconds,
                                .schedule = arguments.family,
                                .device = device,
                                .blocks = arguments.blocks,
                                .team_warps = arguments.team_warps,
                                .consumers = arguments.consumers,
                                .deterministic = arguments.machine.deterministic,
                                .json = arguments.json});
}

int run(const Arguments& arguments) {
    const std::optional<int> gpu = arguments.machine.gpu();
    if (!gpu)
        for (const auto& [option, number] :
             {std::pair{"--blocks", arguments.blocks}, {"--consumers", arguments.consumers}, {"--team-warps", arguments.team_warps}})
            if (number != 0) fail(std::string(option) + ": expected with --device cuda only, got --device " + arguments.machine.device);
    if (!arguments.list && gpu) return run_on_gpu(arguments, *gpu);
    if (!arguments.list) return Bench(arguments).run();
    Report report;
    Table& table = report.table(
        "problems", "",
        {{"label", "label", false}, {"kind", "kind", false}, {"published", "published as", false}, {"summary", "what", false}});
    for (const NamedProblem& problem : named_problems())
        table.row({problem.label, problem.kind, problem.published.empty() ? Cell() : Cell(problem.published), problem.summary});
    report.print(arguments.json);
    return exit_done;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("bench", "Time of named problems, or of your own irreps, against this machine's limits");
    command->add_option("problems", arguments->problems,
                        "Labels of named problems (--list; default: the ones we compare with other libraries)");
    command->add_flag("--list", arguments->list, "The named problems");
    command->add_flag("--all", arguments->all, "All named problems (takes minutes)");
    command->add_option("--in", arguments->in, "Your own channel-wise convolution: irreps of the nodes");
    command->add_option("--edge", arguments->edge, "... irreps of the edges")->capture_default_str();
    command->add_option("--filter", arguments->filter, "... irreps of the output that are kept (default: all)");
    command->add_option("--structure", arguments->structure, "Take the graph from an extended XYZ file (all its frames)");
    command->add_option("--cutoff", arguments->cutoff, "Longest edge of --structure");
    command->add_option("--passes", arguments->passes, "Some of forward,backward,double")->capture_default_str();
    command->add_option("--gradients", arguments->gradients, "Inputs whose gradients backward computes, such as x,y (default: all)");
    command->add_flag("--product", arguments->product, "Of convolutions, only the tensor product, a row per edge");
    command->add_option("--layout", arguments->layout, "mul_ir (e3nn's) or ir_mul, of all operands")->capture_default_str();
    command->add_option("--kernel", arguments->family,
                        "The only kernel family to use before `general`; with --device cuda the schedule: stream (stream-whole: in one "
                        "kernel, stream-split: in as many as can be), rows or general");
    command->add_option("--seconds", arguments->seconds, "Time for each pass")
        ->check([](const std::string& text) {
            const double seconds = std::strtod(text.c_str(), nullptr);
            return seconds >= 0.01 && seconds <= 600 ? "" : "expected 0.01 to 600 seconds, got '" + text + "'";
        })
        ->capture_default_str();
    add_device_option(*command, arguments->machine);
    command->add_option("--blocks", arguments->blocks, "cuda: blocks of a stream kernel per multiprocessor (default: chosen)")
        ->check(CLI::Range(1, 8));
    command
        ->add_option("--consumers", arguments->consumers, "With --device cuda: consumer warps of a team in stream kernels; default: chosen")
        ->check(CLI::Range(1, 16));
    command
        ->add_option("--team-warps", arguments->team_warps,
                     "cuda: one block per multiprocessor with so many consumer warps on each scheduler (default: chosen)")
        ->check(CLI::Range(1, 6));
    command->add_flag("--quick", arguments->quick, "A quarter of the size, a fifth of the time");
    command->add_flag("--schedules", arguments->schedules, "Print how every pass was scheduled");
    command->add_option("--svg", arguments->svg, "Write a roofline picture to this file");
    add_size_options(*command, arguments->sizes);
    add_machine_options(*command, arguments->machine, true);
    command->add_flag("--json", arguments->json, "For machines");
    command->footer(
        "Arrays hold standard normal numbers. Passes of a problem are measured in turns; times are medians.\n"
        "Examples:\n"
        "  clebsch bench --quick\n"
        "  clebsch bench nequix-main mace-large --threads 1 --svg roofline.svg\n"
        "  clebsch bench --in 64x0e+64x1o --edge 1x0e+1x1o --filter 0e+1o --nodes 1000 --neighbors 30\n"
        "  clebsch bench nequix-main --structure examples/data/water-216.xyz --cutoff 6");
    command->callback([arguments, command, &status] {
        for (const auto& [option, needed] : {std::pair{"--cutoff", "--structure"}, {"--edge", "--in"}, {"--filter", "--in"}})
            if (command->count(option) > 0 && command->count(needed) == 0)
                fail(std::string(option) + ": expected together with " + needed + ", which is not given");
        if (command->count("--in") > 0 && arguments->in.empty()) fail("--in: expected irreps such as 4x0e+4x1o, got ''");
        status = run(*arguments);
    });
}

}  // namespace clebsch::tool
