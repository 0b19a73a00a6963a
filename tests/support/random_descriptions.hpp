#pragma once
// Random valid descriptions and inputs for them: what backends, derivatives and text are tested on. A seed determines everything; a failing
// test prints its seed and the description's text.
#include <cstdint>
#include <random>
#include <vector>

#include "describe/program.hpp"
#include "describe/reference.hpp"

namespace clebsch::random {

using Engine = std::mt19937_64;

struct Limits {
    std::vector<std::int64_t> channels = {1, 2, 3, 5, 8, 13, 16, 33};  ///< extents of letters
    int paths = 5;                                                     ///< at most, per polynomial
    int outputs = 3;
    int nodes = 6;              ///< at most, per program
    double path_work = 20'000;  ///< multiply-adds per row of one path
    double work = 400'000;      ///< multiply-adds per evaluation; decides the number of rows together with `rows`
    std::int64_t rows = 40;
    bool smooth_only = false;  ///< programs without absolute, sign, relu and step (finite differences, low precision)
};

/// A valid polynomial: all kinds of addressing (each, shared, sorted and unsorted indices, chains), both layouts, irreps and plain
/// segments, e3nn's channel modes and others, named and literal coefficients, powers of an operand, constants, unused segments, 1 to
/// `outputs` outputs.
Polynomial polynomial(Engine& engine, const Limits& limits = {});

/// A valid program of polynomials and functions over common spaces; its values stay near 1 so that functions are meaningful.
Program program(Engine& engine, const Limits& limits = {});

/// Rows from 0 to `limits.rows`, indices (some with masked rows), standard normal arrays.
ReferenceInputs inputs(Engine& engine, const Polynomial& polynomial, const Limits& limits = {});
ReferenceInputs inputs(Engine& engine, const Program& program, const Limits& limits = {});

/// Multiply-adds of a path for one row: letters' combinations times coefficient entries.
double work_per_row(const Path& path);
double work_per_row(const Polynomial& polynomial);

}  // namespace clebsch::random
