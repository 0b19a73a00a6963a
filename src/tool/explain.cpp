// clebsch explain: what an operation is, what it costs, and how it would run here.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/operations/named_problems.hpp"
#include "describe/text.hpp"
#include "tool/command.hpp"
#include "tool/explain_model.hpp"
#include "tool/gpu_bench.hpp"
#include "tool/gpu_explain.hpp"
#include "tool/machine_options.hpp"
#include "tool/output_files.hpp"
#include "tool/program_picture.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"
#include "tool/request.hpp"
#include "tool/workload.hpp"

namespace clebsch::tool {
namespace {

struct Arguments {
    OperationArguments operation;
    MachineOptions machine;
    ModelOptions model_options;
    SizeOptions sizes;
    double copy = 0, fma = 0;  // GB/s, GFLOP/s
    std::string target;        // a GPU architecture; empty: this processor
    std::string svg;           // a picture of the program; empty: none
    bool source = false;
    bool measure = false, print_text = false, all = false, json = false;
};

constexpr std::size_t most_rows = 40;  ///< of a table of paths or nodes, unless all are asked for

/// Neighbours that are alike added up: 23 segments of weights are one to a reader.
std::string merged_text(const std::vector<Segment>& segments) {
    std::vector<Segment> merged;
    for (const Segment& segment : segments) {
        if (!merged.empty() && merged.back().irrep == segment.irrep && merged.back().components == segment.components)
            merged.back().multiplicity += segment.multiplicity;
        else merged.push_back(segment);
    }
    return to_text(merged);
}

std::string rows_text(const Addressing& rows) {
    if (rows.kind == Addressing::Kind::each) return "each";
    if (rows.kind == Addressing::Kind::shared) return "one for all";
    return "by " + joined(rows.via, ", ");
}

std::string short_coefficients(const Coefficients& coefficients) {
    return coefficients.name().empty() ? std::to_string(coefficients.entries().size()) + " numbers" : coefficients.name();
}

void add_polynomial(Report& report, const Polynomial& polynomial, bool all) {
    Table& operands = report.table("operands", "operands, in the order of a call",
                                   {{"name", "name", false},
                                    {"role", "role", false},
                                    {"rows", "rows", false},
                                    {"space", "row space", false},
                                    {"layout", "layout", false},
                                    {"numbers", "numbers"},
                                    {"segments", "segments", false}});
    for (const Operand& operand : polynomial.operands)
        operands.row({operand.name, operand.role == Role::input ? "input" : "output", rows_text(operand.rows), polynomial.space_of(operand),
                      operand.layout == Layout::mul_ir ? "mul_ir" : "ir_mul", operand.size(), merged_text(operand.segments)});
    Table& paths =
        report.table("paths", "paths: output += scale x coefficients x inputs, summed over the letters of channels the output lacks",
                     {{"path", "path"},
                      {"output", "output", false},
                      {"inputs", "inputs", false},
                      {"coefficients", "coefficients", false},
                      {"scale", "scale"}});
    const std::size_t shown = all ? polynomial.paths.size() : std::min(most_rows, polynomial.paths.size());
    for (std::size_t p = 0; p < shown; ++p) {
        const Path& path = polynomial.paths[p];
        std::vector<std::string> factors;
        for (const Factor& factor : path.factors) {
            const Operand& operand = polynomial.operands[static_cast<std::size_t>(factor.operand)];
            factors.push_back(operand.name + "[" + (factor.channels.empty() ? "" : factor.channels + ": ") +
                              to_text(operand.segments[static_cast<std::size_t>(factor.segment)]) + "]");
        }
        const std::string output = factors.back();
        factors.pop_back();
        paths.row({std::int64_t(p), output, joined(factors, " "), short_coefficients(path.coefficients), number(path.scale, 5)});
    }
    if (shown < polynomial.paths.size())
        report.note("... and " + std::to_string(polynomial.paths.size() - shown) + " more paths (--all shows them)\n");
}

void add_program(Report& report, const Program& program, bool all) {
    Table& values = report.table("arguments", "inputs and outputs, in the order of a call",
                                 {{"name", "name", false},
                                  {"role", "role", false},
                                  {"space", "row space", false},
                                  {"layout", "layout", false},
                                  {"numbers", "numbers"},
                                  {"segments", "segments", false}});
    for (const Argument& argument : arguments_of(program))
        values.row({argument.name, argument.role == Role::input ? "input" : "output",
                    argument.space.empty() ? "one for all" : argument.space, argument.layout == Layout::mul_ir ? "mul_ir" : "ir_mul",
                    argument.size, merged_text(argument.segments)});
    Table& nodes = report.table(
        "nodes", "nodes",
        {{"node", "node"}, {"results", "results", false}, {"what", "what", false}, {"inputs", "of", false}, {"paths", "paths"}});
    const auto name = [&](int value) { return program.values[static_cast<std::size_t>(value)].name; };
    const std::size_t shown = all ? program.nodes.size() : std::min(most_rows, program.nodes.size());
    for (std::size_t n = 0; n < shown; ++n) {
        if (const auto* function = std::get_if<FunctionNode>(&program.nodes[n])) {
            nodes.row({std::int64_t(n), name(function->output), to_text(function->function), name(function->input), Cell()});
            continue;
        }
        const auto& node = std::get<PolynomialNode>(program.nodes[n]);
        std::vector<std::string> results, inputs;
        for (std::size_t i = 0; i < node.arguments.size(); ++i)
            (node.polynomial.operands[i].role == Role::output ? results : inputs).push_back(name(node.arguments[i]));
        nodes.row({std::int64_t(n), joined(results, " "), "polynomial", joined(inputs, " "), std::int64_t(node.polynomial.paths.size())});
    }
    if (shown < program.nodes.size())
        report.note("... and " + std::to_string(program.nodes.size() - shown) + " more nodes (--all shows them)\n");
}

void add_limit(Report& report, const Arguments& arguments, const Work& work, std::int64_t rows) {
    const double per_row = 1.0 / static_cast<double>(std::max<std::int64_t>(1, rows));
    report.fact("multiply_adds_per_row", "multiply-adds per row", number(work.multiply_adds * per_row, 5));
    report.fact("flops_per_row", "flops per row (2 per multiply-add)", number(2 * work.multiply_adds * per_row, 5));
    report.fact("bytes_per_row", "bytes per row (every array once)", number(work.bytes * per_row, 5));
    Peaks peaks{arguments.copy * 1e9, arguments.fma * 0.5e9};
    if (arguments.measure) {
        const Threads threads(arguments.machine.threads);
        const MeasuredPeaks measured = arguments.machine.peaks(threads.parallel_for());
        report_peaks(report, measured);
        if (arguments.copy <= 0) peaks.copy_bytes_per_second = measured.peaks.copy_bytes_per_second;
        if (arguments.fma <= 0) peaks.multiply_adds_per_second = measured.peaks.multiply_adds_per_second;
    }
    if (peaks.copy_bytes_per_second > 0 && peaks.multiply_adds_per_second > 0) {
        const double limit = limit_seconds(work, peaks);
        const bool memory = work.bytes / peaks.copy_bytes_per_second >= work.multiply_adds / peaks.multiply_adds_per_second;
        report.fact("limit_seconds", "predicted limit of this call", {limit, number(limit * 1e6, 4).text + " us"});
        report.fact("limit_microseconds_per_row", "predicted limit per row",
                    {limit * per_row * 1e6, number(limit * per_row * 1e6, 4).text + " us"});
        report.fact("limited_by", "limited by", memory ? "bytes over the copy bandwidth" : "multiply-adds over the FMA peak");
    } else {
        report.fact("limit_seconds", "predicted limit", {std::monostate{}, "give --measure, or --copy and --fma"});
    }
}

void print_list(bool json) {
    if (!json) {
        std::fputs(available_operations().c_str(), stdout);
        return;
    }
    Report report;
    Table& known = report.table("operations", "operations", {{"name", "name", false}, {"help", "help", false}});
    for (const OperationInfo& operation : operations()) known.row({operation.name, operation.help});
    Table& problems = report.table("named_problems", "named problems",
                                   {{"label", "label", false}, {"kind", "kind", false}, {"summary", "summary", false}});
    for (const NamedProblem& problem : named_problems()) problems.row({problem.label, problem.kind, problem.summary});
    report.print(json);
}

void print_options(const OperationInfo& operation, bool json) {
    if (!json) {
        std::fputs(operation_help(operation.name).c_str(), stdout);
        return;
    }
    Report report;
    report.fact("operation", "operation", operation.name);
    report.fact("help", "help", operation.help);
    Table& options = report.table("options", "options",
                                  {{"name", "name", false},
                                   {"type", "type", false},
                                   {"required", "required", false},
                                   {"default", "default", false},
                                   {"choices", "choices", false},
                                   {"help", "help", false}});
    for (const OptionInfo& option : operation.options)
        options.row({option.name, option.type, option.required, option.default_value, joined(option.choices, ","), option.help});
    report.print(json);
}

int run(const Arguments& arguments) {
    if (is_checkpoint(arguments.operation.name)) require_distinct({{"MODEL", arguments.operation.name}, {"--svg", arguments.svg}});
    require_distinct({{"--text", arguments.operation.text_file}, {"--svg", arguments.svg}});
    require_writable({{"--svg", arguments.svg}});
    if (arguments.target.empty())
        for (const auto& [option, given] : {std::pair{"--source", arguments.source}, {"--deterministic", arguments.machine.deterministic}})
            if (given) fail(std::string(option) + ": expected together with --target, which is not given");
    if (arguments.operation.name.empty() && arguments.operation.text_file.empty()) {
        print_list(arguments.json);
        return exit_done;
    }
    if (is_checkpoint(arguments.operation.name)) {
        if (!arguments.target.empty()) fail("--target: expected an operation, got the model " + in_quotes(arguments.operation.name, 4096));
        Report report;
        explain_model(report, arguments.operation.name, arguments.machine, arguments.model_options, arguments.sizes, arguments.svg);
        report.print(arguments.json);
        return exit_done;
    }
    const auto& known = operations();
    const auto found = std::ranges::find(known, arguments.operation.name, &OperationInfo::name);
    if (found != known.end() && arguments.operation.options.empty() &&
        std::ranges::any_of(found->options, [](const OptionInfo& option) { return option.required; })) {
        print_options(*found, arguments.json);
        return exit_done;
    }
    Progress progress;
    progress.now("deriving");
    const Request request = read_request(arguments.operation);
    if (!arguments.target.empty())
        return explain_gpu(request, arguments.target, storage_type(arguments.machine), arguments.machine.deterministic, arguments.source,
                           arguments.json);
    if (arguments.print_text && !arguments.json) {
        std::fputs(text_of(request.description).c_str(), stdout);
        return exit_done;
    }
    Report report;
    const auto* polynomial = std::get_if<Polynomial>(&request.description);
    report.fact("operation", "operation", request.title);
    report.fact("form", "form", polynomial != nullptr ? "polynomial" : "program");
    report.fact("hash", "hash", std::visit([](const auto& value) { return to_text(hash_of(value)); }, request.description));
    const std::string space = iteration_space(request.description);
    report.fact("row_space", "one row per", space.empty() ? "call" : space);
    if (polynomial != nullptr) add_polynomial(report, *polynomial, arguments.all);
    else add_program(report, std::get<Program>(request.description), arguments.all);

    const auto isa = arguments.machine.isa();
    const auto options = topology_options(arguments.sizes, request.kind, false);
    std::map<std::string, std::int64_t> rows = make_topology(request.description, options).rows;
    std::vector<std::int64_t> row_counts;
    std::vector<std::string> sizes;
    for (const std::string& name : spaces_of(request.description)) {
        row_counts.push_back(rows.at(name));
        if (!name.empty()) sizes.push_back(std::to_string(rows.at(name)) + " " + name);
    }
    const std::vector<DType> dtypes(arguments_of(request.description).size(), arguments.machine.type());
    Work work;
    std::string schedule;
    std::optional<ProgramPlan> program_plan;
    const ProgramOptions options_of_plan{.dtypes = dtypes, .instruction_set = isa};
    progress.now("preparing a plan");
    if (polynomial != nullptr) {
        const PolynomialPlan plan(*polynomial, {.dtypes = dtypes, .instruction_set = isa});
        work = plan.work(row_counts), schedule = plan.explain();
    } else {
        program_plan.emplace(std::get<Program>(request.description), options_of_plan);
        work = program_plan->work(row_counts), schedule = program_plan->explain();
    }
    report.note("schedule");
    report.text("schedule", schedule);
    report.note("");
    report.fact("sizes", "rows of this call", sizes.empty() ? Cell() : Cell(joined(sizes, ", ")));
    add_limit(report, arguments, work, space.empty() ? 1 : rows.at(space));
    if (arguments.print_text) report.text("text", text_of(request.description));
    if (!arguments.svg.empty()) {
        if (polynomial != nullptr) program_plan.emplace(as_program(*polynomial), options_of_plan);
        draw_program(report, arguments.svg, request.title, *program_plan);
    }
    progress.now("");
    report.print(arguments.json);
    return exit_done;
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(
        "explain",
        "Segments, paths, cost, schedule and predicted limit of an operation or a derivative of one; layers and steps of a model");
    add_operation_arguments(*command, arguments->operation, true);
    command->add_flag("--print-text", arguments->print_text, "Only the canonical text (docs/text.md)");
    command->add_flag("--all", arguments->all, "All paths and nodes, however many");
    command->add_option("--copy", arguments->copy, "Copy bandwidth in GB/s, for the limit")->check(not_positive);
    command->add_option("--fma", arguments->fma, "Peak of multiply-adds in GFLOP/s, for the limit")->check(not_positive);
    command->add_flag("--measure", arguments->measure, "Measure what of these is not given");
    add_size_options(*command, arguments->sizes);
    add_machine_options(*command, arguments->machine, true);
    add_model_options(*command, arguments->model_options);
    command->add_option("--target", arguments->target, "How it would run on a GPU: sm_80, sm_90, sm_100, sm_120 (no GPU is needed)");
    command->add_flag("--deterministic", arguments->machine.deterministic, "With --target: sums in a fixed order");
    command->add_flag("--source", arguments->source, "With --target: the kernels as CUDA C++");
    command->add_option("--svg", arguments->svg, "Write a picture of the program to this file: what is fused, and what is kept in between");
    command->add_flag("--json", arguments->json, "For machines");
    command->footer(
        "Examples:\n"
        "  clebsch explain                                      what there is\n"
        "  clebsch explain convolution                          what an operation needs\n"
        "  clebsch explain nequix-main --measure\n"
        "  clebsch explain nequix-mp-1.nqx --svg model.svg      a model: layers, steps, memory, and a picture\n"
        "  clebsch explain nequix-main --derivative x,y,weights\n"
        "  clebsch explain --text my_operation.txt --print-text");
    command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace clebsch::tool
