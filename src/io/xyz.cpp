#include "io/xyz.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "io/elements.hpp"

namespace clebsch {

namespace {

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\v' || letter == '\f'; }

/// The next word of `rest`, which is advanced past it; empty at the end.
std::string_view next_word(std::string_view& rest) {
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
    std::size_t size = 0;
    while (size < rest.size() && !is_space(rest[size])) ++size;
    const std::string_view word = rest.substr(0, size);
    rest.remove_prefix(size);
    return word;
}

std::optional<std::int64_t> to_integer(std::string_view word) {
    if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return value;
}

/// Decimal numbers, with Fortran's 1.0d-3 too; nan and inf as C prints them. Values too small for a double are zero or subnormal.
std::optional<double> to_real(std::string_view word) {
    if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
    std::string fortran;
    if (const std::size_t exponent = word.find_first_of("dD"); exponent != std::string_view::npos && word.size() < 64) {
        fortran = word;
        fortran[exponent] = 'e';
        word = fortran;
    }
    double value = 0.0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc::result_out_of_range && end == word.data() + word.size()) {
        const std::size_t exponent = word.find_first_of("eE");
        // 1e-400 rounds to zero; 1e400 has no double.
        if (exponent != std::string_view::npos && exponent + 1 < word.size() && word[exponent + 1] == '-')
            return word[0] == '-' ? -0.0 : 0.0;
        return std::nullopt;
    }
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return value;
}

std::optional<bool> to_logical(std::string_view word) {
    for (const std::string_view text : {"T", "True", "true", "TRUE", ".true."})
        if (word == text) return true;
    for (const std::string_view text : {"F", "False", "false", "FALSE", ".false."})
        if (word == text) return false;
    return std::nullopt;
}

/// Words of a list value: separated by blanks and commas, brackets ignored.
std::vector<std::string_view> list_words(std::string_view text) {
    std::vector<std::string_view> out;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && !is_space(text[i]) && std::string_view(",[]{}").find(text[i]) == std::string_view::npos) continue;
        if (i > begin) out.push_back(text.substr(begin, i - begin));
        begin = i + 1;
    }
    return out;
}

bool equal_ignoring_case(std::string_view a, std::string_view lower) {
    return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                      [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x - 'A' + 'a' : x) == y; });
}

class Parser {
 public:
    Parser(std::string_view content, std::string_view file) : rest_(content), file_(file) {}

    std::vector<XyzFrame> frames() {
        std::vector<XyzFrame> out;
        while (!rest_.empty()) {
            const std::string_view line = next_line();
            std::string_view words = line;
            const std::string_view count = next_word(words);
            if (count.empty()) {  // blank lines may end the file, nothing else
                while (!rest_.empty()) {
                    std::string_view more = next_line();
                    if (!next_word(more).empty())
                        reject("text after a blank line: expected the number of atoms of a frame right after the frame before it");
                }
                break;
            }
            const std::optional<std::int64_t> atoms = to_integer(count);
            if (!atoms || *atoms < 0 || !next_word(words).empty()) reject("expected the number of atoms, got " + in_quotes(line));
            out.push_back(frame(*atoms));
        }
        return out;
    }

 private:
    [[noreturn]] void reject(const std::string& message) const { fail_at_line(file_, line_, message); }

    std::string_view next_line() {
        const std::size_t end = rest_.find('\n');
        std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
        ++line_;
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (line.find('\0') != std::string_view::npos) reject("a zero byte: this is not a text file");
        return line;
    }

    XyzFrame frame(std::int64_t atoms) {
        XyzFrame out;
        if (rest_.empty()) reject("the file ends before the comment line of a frame");
        std::string properties;
        comment(next_line(), out, properties);
        if (properties.empty()) properties = "species:S:1:pos:R:3";
        std::vector<XyzColumn> columns = parse_properties(properties);
        const std::int64_t comment_line = line_;
        for (std::int64_t atom = 0; atom < atoms; ++atom) {
            if (rest_.empty())
                reject("the file ends after atom " + std::to_string(atom) + " of the " + std::to_string(atoms) + " that line " +
                       std::to_string(comment_line - 1) + " promises");
            read_atom(next_line(), columns);
        }
        for (XyzColumn& column : columns) {
            if (column.name == "pos") {
                out.structure.positions = std::get<std::vector<double>>(std::move(column.values));
            } else if (column.name == "species" && column.width == 1 && std::holds_alternative<std::vector<std::string>>(column.values)) {
                out.species = std::get<std::vector<std::string>>(std::move(column.values));
            } else {
                out.columns.push_back(std::move(column));
            }
        }
        return out;
    }

    std::vector<XyzColumn> parse_properties(std::string_view text) {
        std::vector<XyzColumn> out;
        bool has_positions = false;
        std::set<std::string> names;
        std::vector<std::string_view> fields;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find(':', begin), text.size());
            fields.push_back(text.substr(begin, end - begin));
            begin = end + 1;
        }
        if (fields.size() % 3 != 0) reject("Properties=" + in_quotes(text) + ": expected name:kind:width for every column");
        for (std::size_t i = 0; i < fields.size(); i += 3) {
            XyzColumn column;
            column.name = fields[i];
            const std::optional<std::int64_t> width = to_integer(fields[i + 2]);
            if (column.name.empty()) reject("Properties=" + in_quotes(text) + ": a column has no name");
            if (!width || *width < 1 || *width > 1'000'000)
                reject("Properties: width of column " + in_quotes(column.name) + ": expected 1 to 1000000, got " +
                       in_quotes(fields[i + 2]));
            column.width = *width;
            if (fields[i + 1] == "S") {
                column.values = std::vector<std::string>();
            } else if (fields[i + 1] == "R") {
                column.values = std::vector<double>();
            } else if (fields[i + 1] == "I") {
                column.values = std::vector<std::int64_t>();
            } else if (fields[i + 1] == "L") {
                column.values = std::vector<bool>();
            } else {
                reject("Properties: kind of column " + in_quotes(column.name) + ": expected S, R, I or L, got " + in_quotes(fields[i + 1]));
            }
            if (!names.insert(column.name).second) reject("Properties: column " + in_quotes(column.name) + " appears twice");
            if (column.name == "pos") {
                if (column.width != 3 || fields[i + 1] != "R") reject("Properties: column 'pos': expected pos:R:3");
                has_positions = true;
            }
            out.push_back(std::move(column));
        }
        if (!has_positions) reject("Properties=" + in_quotes(text) + ": there is no column pos:R:3");
        return out;
    }

    void read_atom(std::string_view line, std::vector<XyzColumn>& columns) {
        std::string_view rest = line;
        std::int64_t words = 0;
        for (XyzColumn& column : columns) {
            for (std::int64_t i = 0; i < column.width; ++i, ++words) {
                const std::string_view word = next_word(rest);
                if (word.empty()) {
                    std::int64_t expected = 0;
                    for (const XyzColumn& each : columns) expected += each.width;
                    reject("an atom with " + std::to_string(words) + " of " + std::to_string(expected) + " columns: expected " +
                           in_quotes(column.name) + " next");
                }
                std::visit([&](auto& values) { append(values, word, column.name); }, column.values);
            }
        }
        if (const std::string_view extra = next_word(rest); !extra.empty())
            reject("an atom with more than the " + std::to_string(words) + " columns that Properties describes: " + in_quotes(extra));
    }

    void append(std::vector<std::string>& values, std::string_view word, const std::string&) { values.emplace_back(word); }
    void append(std::vector<double>& values, std::string_view word, const std::string& name) {
        const std::optional<double> value = to_real(word);
        if (!value) reject("column " + in_quotes(name) + ": expected a number, got " + in_quotes(word));
        if (name == "pos" && !std::isfinite(*value)) reject("column 'pos': expected a finite number, got " + in_quotes(word));
        values.push_back(*value);
    }
    void append(std::vector<std::int64_t>& values, std::string_view word, const std::string& name) {
        const std::optional<std::int64_t> value = to_integer(word);
        if (!value) reject("column " + in_quotes(name) + ": expected an integer, got " + in_quotes(word));
        values.push_back(*value);
    }
    void append(std::vector<bool>& values, std::string_view word, const std::string& name) {
        const std::optional<bool> value = to_logical(word);
        if (!value) reject("column " + in_quotes(name) + ": expected T or F, got " + in_quotes(word));
        values.push_back(*value);
    }

    /// A quoted or bare piece of the comment line: ends at an unquoted blank, or at '=' if it is a key.
    std::string piece(std::string_view& rest, bool key) {
        std::string out;
        const char first = rest.front();
        if (first == '"' || first == '\'') {
            for (std::size_t i = 1; i < rest.size(); ++i) {
                if (rest[i] == '\\' && i + 1 < rest.size() && (rest[i + 1] == first || rest[i + 1] == '\\' || rest[i + 1] == 'n')) {
                    out += rest[i + 1] == 'n' ? '\n' : rest[i + 1];
                    ++i;
                } else if (rest[i] == first) {
                    rest.remove_prefix(i + 1);
                    return out;
                } else {
                    out += rest[i];
                }
            }
            reject("a quote without an end: " + in_quotes(rest));
        }
        if (!key && (first == '[' || first == '{')) {  // a list; brackets nest
            std::int64_t depth = 0;
            for (std::size_t i = 0; i < rest.size(); ++i) {
                if (rest[i] == '[' || rest[i] == '{') ++depth;
                if (rest[i] == ']' || rest[i] == '}') --depth;
                if (depth == 0) {
                    out = rest.substr(0, i + 1);
                    rest.remove_prefix(i + 1);
                    return out;
                }
            }
            reject("a bracket without an end: " + in_quotes(rest));
        }
        std::size_t size = 0;
        while (size < rest.size() && !is_space(rest[size]) && !(key && rest[size] == '=')) ++size;
        out = rest.substr(0, size);
        rest.remove_prefix(size);
        return out;
    }

    void comment(std::string_view line, XyzFrame& out, std::string& properties) {
        if (line.find('=') == std::string_view::npos) {
            out.comment = line;
            return;
        }
        bool has_periodic = false, has_properties = false;
        std::set<std::string> keys;
        std::string_view rest = line;
        const auto skip_blanks = [&] {
            while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
        };
        for (skip_blanks(); !rest.empty(); skip_blanks()) {
            const std::string key = piece(rest, true);
            if (key.empty()) reject("an empty key before " + in_quotes(rest));
            const std::string_view after_key = rest;
            skip_blanks();
            std::string value = "T";
            if (!rest.empty() && rest.front() == '=') {
                rest.remove_prefix(1);
                skip_blanks();
                value = rest.empty() ? std::string() : piece(rest, false);
            } else {
                rest = after_key;
            }
            if (!rest.empty() && !is_space(rest.front()))
                reject("expected a blank after the value of " + in_quotes(key) + ", got " + in_quotes(rest));
            if (equal_ignoring_case(key, "lattice")) {
                if (out.has_lattice) reject("key 'Lattice' appears twice");
                lattice(value, out);
            } else if (equal_ignoring_case(key, "pbc")) {
                if (has_periodic) reject("key 'pbc' appears twice");
                periodicity(value, out);
                has_periodic = true;
            } else if (equal_ignoring_case(key, "properties")) {
                if (has_properties || value.empty()) reject("key 'Properties' appears twice or is empty");
                properties = value;
                has_properties = true;
            } else {
                if (!keys.insert(key).second) reject("key " + in_quotes(key) + " appears twice");
                out.info.emplace_back(key, std::move(value));
            }
        }
        if (!has_periodic && out.has_lattice) out.structure.periodic = {true, true, true};
        const auto& periodic = out.structure.periodic;
        if (!out.has_lattice && (periodic[0] || periodic[1] || periodic[2])) reject("pbc says periodic, but there is no Lattice");
    }

    void lattice(std::string_view text, XyzFrame& out) {
        const std::vector<std::string_view> words = list_words(text);
        if (words.size() != 9) reject("Lattice: expected 9 numbers (vectors a, b, c), got " + std::to_string(words.size()));
        for (std::size_t i = 0; i < 9; ++i) {
            const std::optional<double> value = to_real(words[i]);
            if (!value || !std::isfinite(*value)) reject("Lattice: expected a finite number, got " + in_quotes(words[i]));
            out.structure.cell[i] = *value;
        }
        out.has_lattice = true;
    }
    void periodicity(std::string_view text, XyzFrame& out) {
        std::vector<std::string_view> words = list_words(text);
        if (words.size() == 1 && words[0].size() == 3)
            words = {words[0].substr(0, 1), words[0].substr(1, 1), words[0].substr(2, 1)};  // "TTF"
        if (words.size() != 3) reject("pbc: expected three of T and F, got " + in_quotes(text));
        for (std::size_t i = 0; i < 3; ++i) {
            std::optional<bool> value = to_logical(words[i]);
            if (words[i] == "1") value = true;
            if (words[i] == "0") value = false;
            if (!value) reject("pbc: expected T or F, got " + in_quotes(words[i]));
            out.structure.periodic[i] = *value;
        }
    }

    std::string_view rest_, file_;
    std::int64_t line_ = 0;
};

}  // namespace

const XyzColumn* XyzFrame::column(std::string_view name) const {
    for (const XyzColumn& each : columns)
        if (each.name == name) return &each;
    return nullptr;
}

const std::string* XyzFrame::info_text(std::string_view key) const {
    for (const auto& [name, value] : info)
        if (name == key) return &value;
    return nullptr;
}

std::vector<double> XyzFrame::info_numbers(std::string_view key) const {
    const std::string* text = info_text(key);
    if (!text) throw Error(ErrorKind::not_found, "the frame has no value " + in_quotes(key));
    std::vector<double> out;
    for (const std::string_view word : list_words(*text)) {
        const std::optional<double> value = to_real(word);
        if (!value) throw Error(ErrorKind::parse, "value " + in_quotes(key) + ": expected numbers, got " + in_quotes(word));
        out.push_back(*value);
    }
    return out;
}

std::vector<int> XyzFrame::atomic_numbers() const {
    std::vector<int> out;
    const auto add = [&](std::int64_t number, const std::string& shown) {
        if (number < 1 || number > 118) fail("atom " + std::to_string(out.size()) + ": " + shown + " is no chemical element");
        out.push_back(static_cast<int>(number));
    };
    for (const char* name : {"Z", "numbers", "atomic_numbers"}) {
        const XyzColumn* found = column(name);
        if (!found || found->width != 1 || !std::holds_alternative<std::vector<std::int64_t>>(found->values)) continue;
        for (const std::int64_t number : std::get<std::vector<std::int64_t>>(found->values))
            add(number, "atomic number " + std::to_string(number));
        return out;
    }
    if (species.empty() && atoms() > 0) fail("the frame has neither a column of species nor of atomic numbers");
    for (const std::string& name : species)
        add(atomic_number(name).value_or(static_cast<int>(std::clamp<std::int64_t>(to_integer(name).value_or(0), 0, 119))),
            "species " + in_quotes(name));
    return out;
}

std::vector<XyzFrame> parse_xyz(std::string_view content, std::string_view file) { return Parser(content, file).frames(); }
std::vector<XyzFrame> read_xyz(const std::filesystem::path& path) {
    std::vector<XyzFrame> frames = parse_xyz(read_file(path), path.native());
    if (frames.empty())
        throw Error(ErrorKind::parse, "file " + in_quotes(path.native()) + ": expected at least one frame, the file is empty");
    return frames;
}

}  // namespace clebsch
