#pragma once
// What a subcommand found out: facts and tables that print either for people or as JSON. Subcommands fill a report and never format output
// themselves.
#include <cstdint>
#include <deque>
#include <string>
#include <variant>
#include <vector>

namespace clebsch::tool {

/// One value: as machines read it, and as it is shown.
struct Cell {
    using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string>;
    Value value;
    std::string text;

    Cell() : text("-") {}                                                    // nothing: null, "-"
    Cell(std::string words) : value(words), text(std::move(words)) {}        // NOLINT(google-explicit-constructor): a cell is its content
    Cell(const char* words) : Cell(std::string(words)) {}                    // NOLINT(google-explicit-constructor)
    Cell(std::int64_t count) : value(count), text(std::to_string(count)) {}  // NOLINT(google-explicit-constructor)
    Cell(int count) : Cell(std::int64_t{count}) {}                           // NOLINT(google-explicit-constructor)
    Cell(bool yes) : value(yes), text(yes ? "yes" : "no") {}                 // NOLINT(google-explicit-constructor)
    Cell(Value machine, std::string shown) : value(std::move(machine)), text(std::move(shown)) {}
};

/// A number with so many significant digits, without exponent between 1e-3 and 1e7; an infinite or undefined one is null.
Cell number(double value, int digits = 3);
/// With so many decimals, so that a column lines up.
Cell decimal(double value, int decimals);
/// As short as it goes: 6, 0.25.
Cell plain(double value);
/// 0.123 as "12 %".
Cell percent(double fraction);
/// An error such as 3.2e-08.
Cell scientific(double value);
/// Bytes, as "1.2 GB".
Cell bytes(double count);
std::string joined(const std::vector<std::string>& words, const std::string& separator);

struct Column {
    std::string key;  ///< in JSON
    std::string title;
    bool right = true;  ///< numbers are aligned to the right, words to the left
};

class Table {
 public:
    Table(std::string key, std::string title, std::vector<Column> columns)
        : key_(std::move(key)), title_(std::move(title)), columns_(std::move(columns)) {}

    /// Throws std::logic_error unless there is a cell for every column.
    void row(std::vector<Cell> cells);
    bool empty() const { return rows_.empty(); }

 private:
    friend class Report;
    std::string key_, title_;
    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

class Report {
 public:
    /// "label   value". Facts that follow one another are aligned.
    void fact(std::string key, std::string label, Cell cell);
    /// Words for people only.
    void note(std::string text);
    /// Text of several lines: printed as it is, a string in JSON.
    void text(std::string key, std::string content);
    /// Stays valid while the report lives.
    Table& table(std::string key, std::string title, std::vector<Column> columns);

    std::string for_people() const;
    std::string as_json() const;
    /// One of them, on standard output.
    void print(bool json) const;

 private:
    struct Fact {
        std::string key, label;
        Cell cell;
    };
    struct Text {
        std::string key, content;  ///< no key: a note
    };
    std::deque<std::variant<Fact, Text, Table>> items_;
};

}  // namespace clebsch::tool
