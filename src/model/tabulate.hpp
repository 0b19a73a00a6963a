#pragma once
// Functions of one number, such as the weights that a radial network makes from the length of an edge, replaced by tables of polynomials:
// a rewrite of programs for inference. It keeps the meaning as well as the tables keep the functions; model/tables.hpp makes them.
#include <optional>
#include <string>
#include <vector>

#include "describe/program.hpp"

namespace clebsch {

struct TabulateOptions {
    int coefficients = 12;            ///< of every polynomial, 2 to 16: its degree is one less
    std::int64_t least_numbers = 64;  ///< values with fewer numbers per row are computed as before
    std::string piece = "piece";      ///< name of the new index, the new row space and the new values
};

/// A program in which values that depend on one number per row only are read from tables. The range of the number is divided into pieces,
/// on each of which a value is sum over k of x^k table[k], x = slope times the number + offset.
struct Tabulation {
    std::string number;  ///< of the given program
    std::string space;   ///< its row space
    /// From the number and shared inputs of the given program to the values.
    Program functions;
    /// The given program with an index `piece` from the number's space to the pieces, and as last inputs `piece.frame` (slope and offset
    /// of every piece) and the table of every output of `functions`, in their order: coefficients x numbers of the value per piece, in C
    /// order. Inputs that nothing reads any more are gone. A row whose piece is -1 gets zeros.
    Program tabulated;
    std::vector<std::string> tables;  ///< names of those inputs
};

/// Finds the number (the last value of one number per row that most such values depend on) and the values: those with at least
/// `least_numbers` numbers per row, of one component each, that follow row by row from the number and from shared inputs, and that
/// something else reads. Nothing when there is none.
std::optional<Tabulation> tabulate(const Program& program, const TabulateOptions& options = {});

}  // namespace clebsch
