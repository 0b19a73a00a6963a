// clebsch graph: the neighbours in a structure file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "graph/neighbours.hpp"
#include "io/xyz.hpp"
#include "tool/command.hpp"
#include "tool/report.hpp"
#include "tool/structures.hpp"

namespace clebsch::tool {
namespace {

struct Arguments {
    std::string file;
    double cutoff = 0;
    bool json = false;
};

/// Degrees in at most 16 bins of equal width.
void add_histogram(Report& report, const std::vector<std::int64_t>& histogram) {
    const auto degrees = static_cast<std::int64_t>(histogram.size());
    const auto first = static_cast<std::int64_t>(std::ranges::find_if(histogram, [](std::int64_t n) { return n > 0; }) - histogram.begin());
    const std::int64_t width = std::max<std::int64_t>(1, (degrees - first + 15) / 16);
    Table& table = report.table("degrees", "edges per atom", {{"from", "from"}, {"to", "to"}, {"atoms", "atoms"}, {"bar", "", false}});
    std::int64_t most = 1;
    std::vector<std::int64_t> bins;
    for (std::int64_t begin = first; begin < degrees; begin += width) {
        std::int64_t atoms = 0;
        for (std::int64_t d = begin; d < std::min(begin + width, degrees); ++d) atoms += histogram[static_cast<std::size_t>(d)];
        bins.push_back(atoms);
        most = std::max(most, atoms);
    }
    for (std::size_t b = 0; b < bins.size(); ++b) {
        const std::int64_t begin = first + static_cast<std::int64_t>(b) * width;
        const double length = 40.0 * static_cast<double>(bins[b]) / static_cast<double>(most);
        table.row({begin, std::min(begin + width, degrees) - 1, bins[b], std::string(static_cast<std::size_t>(std::ceil(length)), '#')});
    }
}

int run(const Arguments& arguments) {
    const std::vector<XyzFrame> frames = read_xyz(arguments.file);
    Report report;
    report.fact("file", "file", arguments.file);
    report.fact("cutoff", "cutoff", plain(arguments.cutoff));
    report.fact("frames", "frames", std::int64_t(frames.size()));
    std::vector<std::int64_t> histogram;
    std::int64_t atoms = 0, edges = 0;
    struct Row {
        std::string composition, periodic;
        std::int64_t atoms, edges, least, most, isolated;
        double shortest, longest;
    };
    std::vector<Row> rows;
    for (std::size_t f = 0; f < frames.size(); ++f) {
        const XyzFrame& frame = frames[f];
        const Graph graph = in_frame(arguments.file, f, [&] { return build_graph(frame.structure, arguments.cutoff); });
        Row row{composition(frame), periodic_text(frame.structure), graph.nodes, graph.edges(), 0, 0, 0, INFINITY, 0};
        for (std::int64_t e = 0; e < graph.edges(); ++e) {
            const double* v = graph.vectors.data() + 3 * e;
            const double length = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
            row.shortest = std::min(row.shortest, length);
            row.longest = std::max(row.longest, length);
        }
        const std::vector<std::int64_t> degrees = degree_histogram(graph);
        if (histogram.size() < degrees.size()) histogram.resize(degrees.size(), 0);
        row.least = graph.nodes > 0 ? std::int64_t(degrees.size()) : 0;
        for (std::size_t d = 0; d < degrees.size(); ++d) {
            histogram[d] += degrees[d];
            if (degrees[d] == 0) continue;
            row.least = std::min(row.least, std::int64_t(d));
            row.most = std::int64_t(d);
        }
        row.isolated = degrees.empty() ? 0 : degrees[0];
        atoms += row.atoms;
        edges += row.edges;
        rows.push_back(std::move(row));
    }
    report.fact("atoms", "atoms", atoms);
    report.fact("edges", "edges", edges);
    report.fact("mean_degree", "edges per atom", number(atoms > 0 ? static_cast<double>(edges) / static_cast<double>(atoms) : 0.0, 4));
    Table& table = report.table("structures", "",
                                {{"frame", "frame"},
                                 {"composition", "composition", false},
                                 {"periodic", "periodic", false},
                                 {"atoms", "atoms"},
                                 {"edges", "edges"},
                                 {"least", "least"},
                                 {"mean", "mean"},
                                 {"most", "most per atom"},
                                 {"isolated", "isolated"},
                                 {"shortest", "shortest"},
                                 {"longest", "longest edge"}});
    for (std::size_t f = 0; f < rows.size(); ++f) {
        const Row& row = rows[f];
        const double mean = row.atoms > 0 ? static_cast<double>(row.edges) / static_cast<double>(row.atoms) : 0;
        table.row({std::int64_t(f + 1), row.composition, row.periodic, row.atoms, row.edges, row.least, number(mean, 4), row.most,
                   row.isolated, number(row.shortest, 4), row.edges > 0 ? number(row.longest, 4) : Cell()});
    }
    if (atoms > 0) add_histogram(report, histogram);
    report.print(arguments.json);
    return exit_done;
}

}  // namespace

void add_graph(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("graph", "Atoms, edges and degrees of the structures in an extended XYZ file");
    command->add_option("file", arguments->file, "Extended or plain XYZ, any number of frames")->required();
    command->add_option("--cutoff", arguments->cutoff, "Longest edge, in the file's unit of length (Angstrom)")->required();
    command->add_flag("--json", arguments->json, "For machines");
    command->footer("Example:\n  clebsch graph examples/data/water-216.xyz --cutoff 6");
    command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace clebsch::tool
