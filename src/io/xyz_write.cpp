#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "io/xyz.hpp"

namespace clebsch {

namespace {

bool is_blank_or_control(char letter) { return static_cast<unsigned char>(letter) <= 0x20; }

/// A key or value of the comment line, in quotes where it would not read back bare.
std::string comment_piece(std::string_view text) {
    const bool bare = !text.empty() && std::none_of(text.begin(), text.end(), [](char letter) {
        return is_blank_or_control(letter) || std::string_view("=\"'\\[]{}").find(letter) != std::string_view::npos;
    });
    if (bare) return std::string(text);
    std::string out = "\"";
    for (const char letter : text) {
        if (letter == '\0' || letter == '\r') fail("extended XYZ: a key or value holds a zero byte or carriage return: " + in_quotes(text));
        if (letter == '"' || letter == '\\') out += '\\';
        if (letter == '\n') {
            out += "\\n";
        } else {
            out += letter;
        }
    }
    return out + "\"";
}

std::string column_word(const std::string& word, const std::string& column) {
    if (word.empty() || std::any_of(word.begin(), word.end(), is_blank_or_control))
        fail("extended XYZ: column " + in_quotes(column) + ": a word is empty or has blanks: " + in_quotes(word));
    return word;
}
std::string column_word(double value, const std::string&) { return number_text(value); }
std::string column_word(std::int64_t value, const std::string&) { return std::to_string(value); }
std::string column_word(bool value, const std::string&) { return value ? "T" : "F"; }

void format_frame(const XyzFrame& frame, std::string& out) {
    const std::int64_t atoms = frame.atoms();
    std::vector<XyzColumn> columns;
    if (!frame.species.empty()) columns.push_back({"species", 1, frame.species});
    columns.push_back({"pos", 3, frame.structure.positions});
    columns.insert(columns.end(), frame.columns.begin(), frame.columns.end());

    static constexpr char kinds[] = {'S', 'R', 'I', 'L'};  // in the order of XyzColumn::Values
    std::string properties;
    std::set<std::string> names, keys;
    for (const XyzColumn& column : columns) {
        const auto size = std::visit([](const auto& values) { return static_cast<std::int64_t>(values.size()); }, column.values);
        if (column.width < 1 || size / column.width != atoms || size % column.width != 0)
            fail("extended XYZ: column " + in_quotes(column.name) + ": expected " + std::to_string(column.width) + " values for each of " +
                 std::to_string(atoms) + " atoms, got " + std::to_string(size));
        if (column.name.empty() || column.name.find(':') != std::string::npos)
            fail("extended XYZ: a column cannot be named " + in_quotes(column.name));
        if (!names.insert(column.name).second) fail("extended XYZ: two columns are named " + in_quotes(column.name));
        properties +=
            (properties.empty() ? "" : ":") + column.name + ":" + kinds[column.values.index()] + ":" + std::to_string(column.width);
    }

    const bool periodic =
        std::find(frame.structure.periodic.begin(), frame.structure.periodic.end(), true) != frame.structure.periodic.end();
    if (!frame.has_lattice && (periodic || frame.structure.cell != std::array<double, 9>{}))
        fail("extended XYZ: a frame with a cell or periodic directions needs has_lattice");

    out += std::to_string(atoms) + "\n";
    const bool plain = !frame.comment.empty() || (frame.info.empty() && !frame.has_lattice && frame.columns.empty() &&
                                                  frame.species.size() == static_cast<std::size_t>(atoms));
    if (plain) {
        if (frame.has_lattice || !frame.info.empty() || !frame.columns.empty() || (frame.species.empty() && atoms > 0) ||
            frame.comment.find_first_of("=\n\r") != std::string::npos || frame.comment.find('\0') != std::string::npos)
            fail("extended XYZ: a frame with a free comment has only species and positions, and no '=' or line end in the comment");
        out += frame.comment;
    } else {
        if (frame.has_lattice) {
            out += "Lattice=\"";
            for (std::size_t i = 0; i < 9; ++i) out += (i ? " " : "") + number_text(frame.structure.cell[i]);
            out += "\" ";
        }
        out += "Properties=" + comment_piece(properties);
        for (const auto& [key, value] : frame.info) {
            std::string lower = key;
            for (char& letter : lower)
                if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
            // The three keys of the format are reserved whatever their case.
            if (key.empty() || lower == "lattice" || lower == "properties" || lower == "pbc" || !keys.insert(key).second)
                fail("extended XYZ: key " + in_quotes(key) + " is empty, repeated or reserved");
            out += " " + comment_piece(key) + "=" + comment_piece(value);
        }
        out += " pbc=\"";
        for (std::size_t i = 0; i < 3; ++i) out += std::string(i ? " " : "") + (frame.structure.periodic[i] ? 'T' : 'F');
        out += '"';
    }
    out += '\n';
    for (std::int64_t atom = 0; atom < atoms; ++atom) {
        bool first = true;
        for (const XyzColumn& column : columns) {
            std::visit(
                [&](const auto& values) {
                    for (std::int64_t i = atom * column.width; i < (atom + 1) * column.width; ++i) {
                        out += (first ? "" : " ") + column_word(values[static_cast<std::size_t>(i)], column.name);
                        first = false;
                    }
                },
                column.values);
        }
        out += '\n';
    }
}

}  // namespace

std::string format_xyz(const std::vector<XyzFrame>& frames) {
    std::string out;
    for (const XyzFrame& frame : frames) format_frame(frame, out);
    return out;
}

}  // namespace clebsch
