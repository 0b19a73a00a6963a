#include "tool/program_picture.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/file.hpp"
#include "schedule/program_order.hpp"
#include "tool/svg.hpp"

namespace clebsch::tool {
namespace {

constexpr double width = 1280, left = 40, right = 900, top = 96, line_height = 19, header = 28, padding = 10, gap = 22;
constexpr double heading = 28;  ///< room for the words above a way
constexpr double first_track = right + 26, track_width = 13, last_track = width - 30;
constexpr double words = left + 235;      ///< where the second column of a group begins
constexpr std::size_t most_names = 5;     ///< of a list in a line; the tooltip has all of them
constexpr std::size_t most_letters = 98;  ///< of a line, likewise
constexpr const char* tape_colour = "#6940a5";
constexpr const char* matrix_colour = "#0b6e99";
constexpr const char* product_colour = "#d9730d";
constexpr const char* function_colour = "#0f7b6c";

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// One line of a group: what runs as a single step.
struct Line {
    const char* colour = "";
    std::string kind, text, all;
    bool again = false;
};

/// A kept value: written by one group, read by others.
struct Kept {
    int value = 0;
    std::size_t writer = 0;
    std::vector<std::size_t> readers;
    double x = 0;  ///< of its line
};

std::string names_text(const Program& program, const std::vector<int>& values, std::size_t most) {
    std::vector<std::string> names;
    for (const int value : values) {
        if (names.size() == most && values.size() > most + 1) {
            names.push_back("and " + std::to_string(values.size() - most) + " more");
            break;
        }
        names.push_back(program.values[at(value)].name);
    }
    return joined(names, ", ");
}

std::string shortened(const std::string& text) {
    if (text.size() <= most_letters) return text;
    return text.substr(0, text.find_last_of(' ', most_letters)) + " \u2026";
}

/// Whether a channel letter is summed: a weight matrix or a sum over channels.
bool mixes_channels(const Polynomial& polynomial) {
    return std::ranges::any_of(polynomial.paths, [](const Path& path) {
        const std::string& kept = path.factors.back().channels;
        return std::ranges::any_of(path.factors, [&](const Factor& factor) {
            return std::ranges::any_of(
                factor.channels, [&](char letter) { return letter >= 'a' && letter <= 'z' && kept.find(letter) == std::string::npos; });
        });
    });
}

/// What a polynomial does with rows, in a word.
std::string addressing_word(const Polynomial& polynomial) {
    bool gathers = false, scatters = false;
    for (const Operand& operand : polynomial.operands) {
        if (operand.rows.kind != Addressing::Kind::indexed) continue;
        (operand.role == Role::output ? scatters : gathers) = true;
    }
    return gathers && scatters ? "gather, scatter" : gathers ? "gather" : scatters ? "scatter" : "";
}

/// One way to run a program, from some height of the picture downwards.
class Way {
 public:
    Way(const TiledProgram& tiled, std::string words_above, double begin)
        : tiled_(tiled), program_(tiled.program), words_above_(std::move(words_above)), begin_(begin) {
        for (const TileGroup& group : tiled.groups) lines_.push_back(lines_of(group));
        find_kept();
        place();
    }

    double end() const { return bottoms_.empty() ? begin_ : bottoms_.back(); }

    std::string draw() const {
        std::string svg;
        if (!words_above_.empty()) svg += svg_text(left, begin_ + 14, words_above_, "font-size=\"14\" font-weight=\"600\"");
        for (std::size_t g = 0; g < lines_.size(); ++g) svg += group(g);
        for (const Kept& kept : kept_) svg += line_of(kept);
        return svg;
    }

 private:
    std::vector<Line> lines_of(const TileGroup& group) const {
        std::vector<Line> lines;
        for (const NodeGroup& step : order_nodes(program_, group.nodes, true)) {
            std::vector<int> reads, writes;
            for (const int n : step.nodes) {
                for (const int value : values_of(program_.nodes[at(n)], Role::output)) writes.push_back(value);
                for (const int value : values_of(program_.nodes[at(n)], Role::input))
                    if (std::ranges::find(reads, value) == reads.end()) reads.push_back(value);
            }
            std::erase_if(reads, [&](int value) { return std::ranges::find(writes, value) != writes.end(); });
            const Node& first = program_.nodes[at(step.nodes.front())];
            Line line;
            std::vector<int> results = step.lanes ? step.stored : writes;
            if (results.empty()) results = writes;
            if (step.lanes) {
                line.colour = tape_colour;
                line.kind = std::to_string(step.nodes.size()) + (step.nodes.size() == 1 ? " node" : " nodes") + " as one tape";
            } else if (const auto* node = std::get_if<PolynomialNode>(&first)) {
                const bool mixes = mixes_channels(node->polynomial);
                const std::string rows = addressing_word(node->polynomial);
                line.colour = mixes ? matrix_colour : product_colour;
                line.kind = mixes
                                ? "matrix product"
                                : std::to_string(node->polynomial.paths.size()) + (node->polynomial.paths.size() == 1 ? " path" : " paths");
                if (!rows.empty()) line.kind += ", " + rows;
            } else {
                line.colour = function_colour;
                line.kind = to_text(std::get<FunctionNode>(first).function);
            }
            line.text = names_text(program_, results, most_names) + "  \u2190  " + names_text(program_, reads, most_names);
            line.all = names_text(program_, writes, writes.size()) + "  \u2190  " + names_text(program_, reads, reads.size());
            line.again = std::ranges::all_of(writes, [&](int value) { return std::ranges::find(group.again, value) != group.again.end(); });
            lines.push_back(std::move(line));
        }
        return lines;
    }

    void find_kept() {
        std::map<int, std::size_t> known;
        for (std::size_t g = 0; g < tiled_.groups.size(); ++g)
            for (const int n : tiled_.groups[g].nodes)
                for (const int value : values_of(program_.nodes[at(n)], Role::output))
                    if (std::ranges::find(tiled_.kept, value) != tiled_.kept.end()) {
                        known[value] = kept_.size();
                        kept_.push_back({value, g, {}, 0});
                    }
        for (std::size_t g = 0; g < tiled_.groups.size(); ++g)
            for (const int n : tiled_.groups[g].nodes)
                for (const int value : values_of(program_.nodes[at(n)], Role::input)) {
                    const auto found = known.find(value);
                    if (found == known.end() || kept_[found->second].writer == g) continue;
                    std::vector<std::size_t>& readers = kept_[found->second].readers;
                    if (readers.empty() || readers.back() != g) readers.push_back(g);
                }
    }

    /// Heights of the groups, and for every kept value the leftmost line that is free from its writer to its last reader.
    void place() {
        double y = begin_ + (words_above_.empty() ? 0 : heading);
        for (std::size_t g = 0; g < lines_.size(); ++g) {
            tops_.push_back(y);
            y += header + line_height * static_cast<double>(lines_[g].size() + (kept_text(g).empty() ? 0 : 1)) + padding;
            bottoms_.push_back(y);
            y += gap;
        }
        std::vector<std::size_t> free_after;  // of every line: the last reader of the value that has it
        for (Kept& kept : kept_) {
            if (kept.readers.empty()) continue;
            std::size_t track = 0;
            while (track < free_after.size() && free_after[track] > kept.writer) ++track;
            if (track == free_after.size()) free_after.push_back(0);
            free_after[track] = kept.readers.back();
            kept.x = first_track + track_width * static_cast<double>(track);
        }
        if (!free_after.empty()) {
            const double room = (last_track - first_track) / static_cast<double>(free_after.size());
            if (room < track_width)
                for (Kept& kept : kept_) kept.x = first_track + (kept.x - first_track) * room / track_width;
        }
    }

    std::string kept_text(std::size_t g) const {
        std::vector<std::string> names;
        for (const Kept& kept : kept_)
            if (kept.writer == g)
                names.push_back(program_.values[at(kept.value)].name + " (" + std::to_string(program_.values[at(kept.value)].size()) + ")");
        if (names.size() > most_names + 2) {
            const std::size_t more = names.size() - most_names;
            names.resize(most_names);
            names.push_back("and " + std::to_string(more) + " more");
        }
        return joined(names, ", ");
    }

    std::string group(std::size_t g) const {
        const std::string& space = tiled_.groups[g].space;
        const double height = bottoms_[g] - tops_[g];
        std::string svg =
            formatted("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\" fill=\"#fbfbfa\" stroke=\"#c7c6c4\"/>\n", left,
                      tops_[g], right - left, height);
        const std::string what = lines_[g].size() > 1 ? ", a few rows at a time through all lines" : "";
        svg += svg_text(left + 12, tops_[g] + 19, "group " + std::to_string(g) + ": " + (space.empty() ? "once" : "per " + space) + what,
                        "font-weight=\"600\"");
        double y = tops_[g] + header + 13;
        for (const Line& line : lines_[g]) {
            svg += "<g><title>" + svg_escaped(line.all) + "</title>";
            svg += formatted("<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" rx=\"2\" fill=\"%s\"%s/>", left + 14, y - 9.5,
                             line.again ? "white" : line.colour,
                             line.again ? formatted(" stroke=\"%s\" stroke-dasharray=\"2 1.5\"", line.colour).c_str() : "");
            svg += svg_text(left + 32, y, line.kind, formatted("fill=\"%s\"", line.colour).c_str());
            svg += svg_text(words, y, shortened(line.text), "");
            svg += "</g>\n";
            y += line_height;
        }
        const std::string kept = kept_text(g);
        if (!kept.empty()) svg += svg_text(words, y, shortened("kept: " + kept), "fill=\"#787774\"");
        return svg;
    }

    std::string line_of(const Kept& kept) const {
        if (kept.readers.empty()) return "";
        const Value& value = program_.values[at(kept.value)];
        const char* colour = svg_colours[at(kept.value) % svg_colours.size()];
        const double begin = bottoms_[kept.writer] - 8, end = tops_[kept.readers.back()] + 15;
        std::string svg =
            "<g><title>" +
            svg_escaped(value.name + ": " + std::to_string(value.size()) + " numbers per " + (value.space.empty() ? "call" : value.space)) +
            "</title>";
        svg += formatted("<path d=\"M%.1f %.1f H%.1f V%.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"/>", right, begin, kept.x, end,
                         colour);
        for (const std::size_t reader : kept.readers) {
            const double y = tops_[reader] + 15;
            svg += formatted("<path d=\"M%.1f %.1f H%.1f m5 -3.5 l-5 3.5 l5 3.5\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\"/>",
                             kept.x, y, right, colour);
        }
        return svg + "</g>\n";
    }

    const TiledProgram& tiled_;
    const Program& program_;
    std::string words_above_;
    double begin_;
    std::vector<std::vector<Line>> lines_;  ///< of every group
    std::vector<double> tops_, bottoms_;
    std::vector<Kept> kept_;
};

std::string legend() {
    std::string svg;
    double x = left;
    const auto entry = [&](const char* colour, const std::string& meaning, double room, bool dashed = false) {
        svg += formatted("<rect x=\"%.1f\" y=\"66\" width=\"10\" height=\"10\" rx=\"2\" fill=\"%s\"%s/>", x, dashed ? "white" : colour,
                         dashed ? formatted(" stroke=\"%s\" stroke-dasharray=\"2 1.5\"", colour).c_str() : "");
        svg += svg_text(x + 16, 75, meaning, "fill=\"#787774\"");
        x += room;
    };
    entry(tape_colour, "nodes fused into one tape", 185);
    entry(product_colour, "channel-wise products", 165);
    entry(matrix_colour, "matrix products over channels", 205);
    entry(function_colour, "functions", 95);
    entry(svg_faint_colour, "computed again, not kept", 180, true);
    svg += svg_text(right + 20, 75, "values kept between groups", "fill=\"#787774\"");
    return svg;
}

std::string size_text(const TiledProgram& tiled) {
    return std::to_string(tiled.program.nodes.size()) + " nodes in " + std::to_string(tiled.groups.size()) + " groups";
}

}  // namespace

std::string program_svg(const std::string& title, const ProgramPlan& plan) {
    std::string body, subtitle = "numbers in brackets: numbers per row of a kept value";
    const std::vector<ProgramPlan::Way> ways = plan.ways();
    if (ways.size() == 1) subtitle = size_text(*ways[0].division) + "; " + subtitle;
    else subtitle = "two ways to run it, by the number of rows; " + subtitle;
    double y = top;
    for (const ProgramPlan::Way& each : ways) {
        const Way way(*each.division, each.when.empty() ? "" : each.when + ": " + size_text(*each.division), y);
        body += way.draw();
        y = way.end() + 40;
    }
    return svg_begin(width, y, left, title, subtitle) + legend() + body + "</svg>\n";
}

void draw_program(Report& report, const std::string& file, const std::string& title, const ProgramPlan& plan) {
    write_file(file, program_svg(title, plan));
    report.fact("picture", "picture of the program", file);
}

}  // namespace clebsch::tool
