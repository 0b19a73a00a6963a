#include "describe/operations/harmonics.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "describe/operations/program_builder.hpp"

namespace clebsch {
namespace {

Parity harmonic_parity(Irrep vector, int degree) {
    if (vector.parity == Parity::none) return Parity::none;
    return vector.parity == Parity::odd && degree % 2 == 1 ? Parity::odd : Parity::even;
}

}  // namespace

Irrep harmonics_input(const Irreps& irreps) {
    Irrep vector{1, Parity::odd};
    for (const IrrepBlock& block : irreps) {
        if (block.irrep.parity == Parity::none) vector.parity = Parity::none;
        if (block.irrep.degree % 2 == 1 && block.irrep.parity == Parity::even) vector.parity = Parity::even;
    }
    for (const IrrepBlock& block : irreps)
        if (block.irrep.parity != harmonic_parity(vector, block.irrep.degree))
            fail("spherical harmonics: expected parity p^l for one parity p of the vector, got '" + to_text(irreps) + "'");
    return vector;
}

Polynomial spherical_harmonics(const Irreps& irreps, const HarmonicsOptions& options) {
    if (irreps.size() == 0) fail("spherical harmonics: expected at least one irrep, got none");
    Polynomial polynomial;
    polynomial.rows = options.rows;
    polynomial.indices = options.indices;
    polynomial.operands = {make_operand(options.x, {{1, 3, harmonics_input(irreps)}}, Role::input),
                           make_operand(options.out, segments_of(irreps), Role::output)};
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int degree = irreps[i].irrep.degree;
        std::vector<Factor> factors;
        factors.reserve(static_cast<std::size_t>(degree) + 1);
        for (int n = 0; n < degree; ++n) factors.push_back({0, 0, "", n});
        factors.push_back({1, static_cast<int>(i), "u", degree});
        add_path(polynomial, std::move(factors), Coefficients::harmonic(degree), harmonics_scale(degree, options.normalization),
                 {{'u', irreps[i].multiplicity}});
    }
    validate(polynomial);
    return polynomial;
}

UnitVector unit_vector(ProgramBuilder& program, int vector) {
    const Value value = program.value(vector);
    Polynomial square;
    square.rows = value.space;
    square.operands = {make_operand({"vector"}, value.segments, Role::input), make_operand({"squared_length"}, {{1, 1, {}}}, Role::output)};
    add_path(square, {{0, 0, "", 0}, {0, 0, "", 1}, {1, 0, "", -1}}, Coefficients::identity(3), 1.0, {});

    Polynomial scale;
    scale.rows = value.space;
    scale.operands = {make_operand({"vector"}, value.segments, Role::input), make_operand({"inverse_length"}, {{1, 1, {}}}, Role::input),
                      make_operand({"unit"}, value.segments, Role::output)};
    add_path(scale, {{0, 0, "", 0}, {1, 0, "", -1}, {2, 0, "", 1}}, Coefficients::identity(3), 1.0, {});

    const int squared = program.apply("squared_length", square, {vector});
    const int inverse = program.apply("inverse_length", Function{FunctionKind::power, -0.5}, squared);
    return {program.apply("unit_" + value.name, scale, {vector, inverse}), squared};
}

Program normalized_harmonics(const Irreps& irreps, const HarmonicsOptions& options) {
    if (options.x.rows != each_row() || options.out.rows != each_row() || !options.indices.empty())
        fail("normalized harmonics: vectors and harmonics have one row per row; gather and sum with operations of their own");
    HarmonicsOptions of_unit = options;
    of_unit.x.name = "unit";
    ProgramBuilder program;
    const int vector = program.input(options.x.name, options.rows, {{1, 3, harmonics_input(irreps)}}, options.x.layout);
    const int unit = unit_vector(program, vector).unit;
    return program.finish({program.apply(options.out.name, spherical_harmonics(irreps, of_unit), {unit})});
}

}  // namespace clebsch
