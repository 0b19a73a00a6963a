#include "tool/force_field_file.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"

namespace clebsch::tool {

void add_model_options(CLI::App& command, ModelOptions& options) {
    command.add_flag("--tables", options.tables,
                     "Read radial networks from tables instead of computing them (faster, see --table-tolerance)");
    command
        .add_option("--table-tolerance", options.table_tolerance,
                    "Largest relative error of a table's numbers (default 1e-7 in float32, 1e-12 in float64)")
        ->check(not_positive)
        ->each([&options](const std::string&) { options.tables = true; });
    command
        .add_option("--keep-megabytes", options.keep_megabytes,
                    "Memory up to which intermediates of the edges are kept for the backward pass instead of computed again (default 67)")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
}

PotentialOptions potential_options(const MachineOptions& machine, const ModelOptions& model) {
    PotentialOptions options{.dtype = machine.type(),
                             .threads = machine.threads,
                             .instruction_set = machine.isa(),
                             .table_tolerance = {},
                             .gpu = machine.gpu(),
                             .deterministic = machine.deterministic};
    if (model.tables) options.table_tolerance = model.table_tolerance;
    if (model.keep_megabytes && options.gpu) fail("--keep-megabytes: expected with --device cpu only, got --device " + machine.device);
    if (model.keep_megabytes) options.keep_bytes = *model.keep_megabytes * 1'000'000;
    return options;
}

void report_tables(Report& report, const Potential& potential) {
    if (!potential.tables()) return;
    const TableReport& tables = *potential.tables();
    report.fact("table_pieces", "radial networks",
                {tables.pieces, "tables of " + std::to_string(tables.pieces) + " pieces, " + std::to_string(tables.coefficients) +
                                    " coefficients for each of " + std::to_string(tables.numbers) + " numbers of an edge"});
    report.fact("table_bytes", "their size", bytes(tables.bytes));
    report.fact("table_error", "their largest relative error", scientific(tables.largest_error));
}

std::unique_ptr<ForceField> load_force_field(const std::string& file, const MachineOptions& machine, const ModelOptions& model) {
    return std::make_unique<Potential>(Potential::load(file, potential_options(machine, model)));
}

}  // namespace clebsch::tool
