#pragma once
// Real spherical harmonics of a vector, as a polynomial and, with a normalised vector, as a program.
#include <string>
#include <vector>

#include "algebra/harmonics.hpp"
#include "describe/operations/path_builder.hpp"
#include "describe/program.hpp"

namespace clebsch {

struct HarmonicsOptions {
    HarmonicsNormalization normalization = HarmonicsNormalization::component;
    std::string rows = "row";
    std::vector<Index> indices = {};
    OperandOptions x = {"vector"}, out = {"harmonics"};
};

/// Irreps of the vector that has harmonics of these irreps: 1o, or 1e (SO(3): 1) where an odd degree has even parity; then all must be
/// even. Throws for irreps that are harmonics of neither.
Irrep harmonics_input(const Irreps& irreps);

/// Y of the vector as it is: homogeneous of degree l, |r|^l. One path `harmonic(l)` per block; a block of multiplicity m repeats its values
/// m times. Operands vector (1 x 3), harmonics.
Polynomial spherical_harmonics(const Irreps& irreps, const HarmonicsOptions& options = {});

/// Y of r/|r|, a program with input `vector` and output `harmonics`. A zero vector has Y = (Y_0, 0, ...) and zero gradients of every order
/// (e3nn has the same value, and 1e12 in the gradient of l = 1). Other lengths are to be such that their square, and in derivatives their
/// higher powers, are numbers of the compute type: docs/operations.md has the range.
Program normalized_harmonics(const Irreps& irreps, const HarmonicsOptions& options = {});

/// r/|r| and |r|^2: what programs of edges begin with. Zero vectors stay zero.
struct UnitVector {
    int unit, squared_length;
};
class ProgramBuilder;
UnitVector unit_vector(ProgramBuilder& program, int vector);

}  // namespace clebsch
