#pragma once
// Extended XYZ: frames of atoms with a comment line of key=value pairs that may describe columns, lattice and periodicity.
// The accepted grammar is in docs/files.md. Plain XYZ files are read too.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graph/structure.hpp"

namespace clebsch {

/// One column of a frame: `width` values per atom, of one of four kinds (S, R, I, L in the file).
struct XyzColumn {
    using Values = std::variant<std::vector<std::string>, std::vector<double>, std::vector<std::int64_t>, std::vector<bool>>;
    std::string name;
    std::int64_t width = 1;
    Values values;  ///< atoms x width
    friend bool operator==(const XyzColumn&, const XyzColumn&) = default;
};

struct XyzFrame {
    Structure structure;  ///< from `pos`, `Lattice` and `pbc` (default: periodic where there is a lattice)
    bool has_lattice = false;
    std::vector<std::string> species;                       ///< from `species`, as written; empty if the frame has no such column
    std::vector<XyzColumn> columns;                         ///< the others, in the file's order ("forces", ...)
    std::vector<std::pair<std::string, std::string>> info;  ///< the other keys, in order, with their text; a bare word has the text "T"
    std::string comment;  ///< the whole comment line if it is free text (plain XYZ: no key=value pair), else empty

    std::int64_t atoms() const { return structure.atoms(); }
    const XyzColumn* column(std::string_view name) const;      ///< nullptr when there is none
    const std::string* info_text(std::string_view key) const;  ///< nullptr when there is none
    /// Numbers of a value: "1.5", "1 2 3", "[1, 2, 3]" or "{1 2 3}". Throws when the key is missing or something in it is no number.
    std::vector<double> info_numbers(std::string_view key) const;
    /// Of every atom: from an integer column `Z`, `numbers` or `atomic_numbers`, else from `species` (a symbol or a number).
    /// Throws Error naming the atom whose species is no element.
    std::vector<int> atomic_numbers() const;
    friend bool operator==(const XyzFrame&, const XyzFrame&) = default;
};

/// All frames. `file` is named in errors. Throws Error(parse) with file and line for anything that is not extended XYZ.
std::vector<XyzFrame> parse_xyz(std::string_view content, std::string_view file);
/// At least one: a file without any is an error.
std::vector<XyzFrame> read_xyz(const std::filesystem::path& path);

/// The text that parses back to the same frames, floating-point numbers included.
/// Throws Error for frames that the format cannot hold (empty words in a column, line ends in a value, columns of the wrong size).
std::string format_xyz(const std::vector<XyzFrame>& frames);

}  // namespace clebsch
