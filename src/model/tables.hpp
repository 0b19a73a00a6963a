#pragma once
// A model whose radial networks are read from tables: for inference, where they take most of the arithmetic (docs/run-a-model.md).
#include <cstdint>
#include <optional>

#include "model/model.hpp"
#include "run/buffers.hpp"

namespace clebsch {

struct TableOptions {
    DType dtype = DType::float32;  ///< of the arithmetic that will read the tables
    /// Largest difference allowed between table and function. It is relative to the largest number of the same value on the same piece,
    /// but to no less than a thousandth of its largest number anywhere. 0: 1e-7 for float32, 1e-12 for float64.
    double tolerance = 0;
    int coefficients = 0;  ///< of a polynomial, 2 to 16; 0: 12 for float32, 16 for float64
};

struct TableReport {
    std::int64_t pieces = 0;
    int coefficients = 0;
    std::int64_t numbers = 0;   ///< per edge that are read from tables
    double largest_error = 0;   ///< found at points between those the polynomials go through; as TableOptions::tolerance
    double shortest_piece = 0;  ///< in Angstrom
    double bytes = 0;           ///< of the tables
};

struct TabulatedModel {
    Model model;
    TableReport report;
};

/// The model with everything that depends on an edge's length alone read from tables between 0 and the cutoff (model/tabulate.hpp). Pieces
/// are halved until the tolerance holds; where they meet, polynomials go through the same values. Throws Error when the model has no such
/// values, when they do not follow from the length of the edge, or when more than 512 pieces, or shorter ones than a 4,096th of the
/// cutoff, would be needed.
TabulatedModel tabulated(const Model& model, const TableOptions& options = {});

}  // namespace clebsch
