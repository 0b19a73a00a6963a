// clebsch irreps: what a list of irreps is, and what comes out of two of them.
#include <CLI/CLI.hpp>
#include <memory>

#include "algebra/irreps.hpp"
#include "base/error.hpp"
#include "tool/command.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {
namespace {

struct Arguments {
    std::string first, second;
    std::string keep;
    bool json = false;
};

void describe(Report& report, const Irreps& irreps) {
    report.fact("irreps", "irreps", to_text(irreps));
    report.fact("dim", "numbers per row", irreps.dim());
    report.fact("channels", "channels", irreps.num_irreps());
    report.fact("sorted", "sorted", to_text(irreps.sorted().irreps));
    report.fact("simplified", "simplified", to_text(irreps.simplified()));
    report.fact("regrouped", "sorted and simplified", to_text(irreps.regrouped()));
    Table& blocks = report.table("blocks", "",
                                 {{"block", "block"},
                                  {"irrep", "irrep", false},
                                  {"channels", "channels"},
                                  {"components", "components"},
                                  {"begin", "begin"},
                                  {"end", "end"}});
    const auto slices = irreps.slices();
    for (std::size_t i = 0; i < irreps.size(); ++i)
        blocks.row(
            {std::int64_t(i), to_text(irreps[i].irrep), irreps[i].multiplicity, irreps[i].irrep.dim(), slices[i].first, slices[i].second});
}

std::int64_t channels_of(const IrrepBlock& first, const IrrepBlock& second) {
    std::int64_t channels = 0;
    if (__builtin_mul_overflow(first.multiplicity, second.multiplicity, &channels))
        fail("irreps: the channels of " + to_text(Irreps({first})) + " times " + to_text(Irreps({second})) + " do not fit in 64 bits");
    return channels;
}

void multiply(Report& report, const Irreps& first, const Irreps& second, const Irreps* keep) {
    report.fact("first", "first", to_text(first));
    report.fact("second", "second", to_text(second));
    std::vector<IrrepBlock> all, channel_wise;
    struct Row {
        std::size_t i, j;
        Irrep irrep;
    };
    std::vector<Row> rows;
    for (std::size_t i = 0; i < first.size(); ++i)
        for (std::size_t j = 0; j < second.size(); ++j)
            for (const Irrep irrep : product(first[i].irrep, second[j].irrep)) {
                if (irrep.degree > max_degree) continue;
                if (keep != nullptr && keep->count(irrep) == 0) continue;
                rows.push_back({i, j, irrep});
                all.push_back({channels_of(first[i], second[j]), irrep});
                channel_wise.push_back({first[i].multiplicity, irrep});
            }
    report.fact("paths", "paths", std::int64_t(rows.size()));
    report.fact("product", "full product", to_text(Irreps(all).regrouped()));
    report.fact("product_dim", "numbers per row", Irreps(all).dim());
    report.fact("channel_wise", "channel-wise product", to_text(Irreps(channel_wise).regrouped()));
    report.fact("weights", "weights, one per path and channel", Irreps(channel_wise).num_irreps());
    Table& table = report.table(
        "products", "",
        {{"first", "first", false}, {"second", "second", false}, {"result", "result", false}, {"channels", "channels (full)"}});
    for (const Row& row : rows)
        table.row({std::to_string(first[row.i].multiplicity) + "x" + to_text(first[row.i].irrep),
                   std::to_string(second[row.j].multiplicity) + "x" + to_text(second[row.j].irrep), to_text(row.irrep),
                   channels_of(first[row.i], second[row.j])});
}

int run(const Arguments& arguments) {
    Report report;
    const Irreps first(arguments.first);
    if (arguments.second.empty()) {
        if (!arguments.keep.empty()) fail("--keep: expected a second list of irreps, whose products it chooses from");
        describe(report, first);
    } else {
        const Irreps second(arguments.second), keep(arguments.keep);
        multiply(report, first, second, arguments.keep.empty() ? nullptr : &keep);
    }
    report.print(arguments.json);
    return exit_done;
}

}  // namespace

void add_irreps(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("irreps", "Dimensions and slices of a list of irreps, or the products of two lists");
    command->add_option("irreps", arguments->first, "Irreps in e3nn's grammar, or SO(3) irreps such as 32x0+16x1")->required();
    command->add_option("second", arguments->second, "A second list: every product of a block of each is shown");
    command->add_option("--keep", arguments->keep, "Only products that are one of these irreps (multiplicities do not matter)");
    command->add_flag("--json", arguments->json, "For machines");
    command->footer(
        "Examples:\n"
        "  clebsch irreps 128x0e+64x1o+32x2e\n"
        "  clebsch irreps 128x0e+64x1o 0e+1o+2e --keep 0e+1o");
    command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace clebsch::tool
