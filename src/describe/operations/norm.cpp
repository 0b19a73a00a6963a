#include "describe/operations/norm.hpp"

#include <cmath>

#include "base/error.hpp"
#include "describe/operations/program_builder.hpp"

namespace clebsch {
namespace {

std::vector<Segment> scalars_of(const Irreps& irreps) {
    std::vector<Segment> segments;
    for (const IrrepBlock& block : irreps)
        segments.push_back({block.multiplicity, 1, Irrep{0, block.irrep.parity == Parity::none ? Parity::none : Parity::even}});
    return segments;
}

}  // namespace

Polynomial squared_norm(const Irreps& irreps, const NormOptions& options) {
    Polynomial polynomial;
    polynomial.rows = options.rows;
    polynomial.operands = {make_operand(options.x, segments_of(irreps), Role::input),
                           make_operand(options.out, scalars_of(irreps), Role::output)};
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int segment = static_cast<int>(i);
        add_path(polynomial, {{0, segment, "u", 0}, {0, segment, "u", 1}, {1, segment, "u", -1}},
                 Coefficients::identity(irreps[i].irrep.dim()), 1.0, {{'u', irreps[i].multiplicity}});
    }
    validate(polynomial);
    return polynomial;
}

Program norm(const Irreps& irreps, const NormOptions& options) {
    NormOptions squared = options;
    squared.out = {"squared"};
    ProgramBuilder program;
    const int x = program.input(options.x.name, options.rows, segments_of(irreps), options.x.layout);
    const int squares = program.apply("squared_" + options.x.name, squared_norm(irreps, squared), {x});
    return program.finish({program.apply(options.out.name, Function{FunctionKind::power, 0.5}, squares)});
}

Program layer_norm(const Irreps& irreps, const LayerNormOptions& options) {
    if (!(options.epsilon > 0) || !std::isfinite(options.epsilon))
        fail("layer norm: expected an epsilon above 0, got " + std::to_string(options.epsilon));
    if (irreps.size() == 0) fail("layer norm: expected at least one irrep, got none");
    ProgramBuilder program;
    const int x = program.input(options.x.name, options.rows, segments_of(irreps), options.x.layout);
    const int scales = program.input("scales", "", scalars_of(irreps));

    Assembly mean(program, options.rows, make_operand({"mean_square"}, {{1, 1, {}}}, Role::output));
    const int square = mean.operand(x);
    add_path(mean.polynomial, {{0, 0, "", -1}}, Coefficients(), options.epsilon, {});
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int segment = static_cast<int>(i), dim = irreps[i].irrep.dim();
        add_path(mean.polynomial, {{square, segment, "u", 0}, {square, segment, "u", 1}, {0, 0, "", -1}}, Coefficients::identity(dim),
                 1.0 / (static_cast<double>(irreps.size()) * dim * dim), {{'u', irreps[i].multiplicity}});
    }
    const int inverse = program.apply("inverse_size", Function{FunctionKind::power, -0.5}, mean.finish());

    Assembly scaled(program, options.rows, make_operand(options.out, segments_of(irreps), Role::output));
    const int from = scaled.operand(x), factor = scaled.operand(scales), size = scaled.operand(inverse);
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int segment = static_cast<int>(i);
        add_path(scaled.polynomial, {{from, segment, "u", 0}, {factor, segment, "u", -1}, {size, 0, "", -1}, {0, segment, "u", 1}},
                 Coefficients::identity(irreps[i].irrep.dim()), 1.0, {{'u', irreps[i].multiplicity}});
    }
    return program.finish({scaled.finish()});
}

Program norm_activation(const Irreps& irreps, const Activation& activation, const NormActivationOptions& options) {
    if (!(options.epsilon > 0) || !std::isfinite(options.epsilon))
        fail("norm activation: expected an epsilon above 0, got " + std::to_string(options.epsilon));
    NormOptions squared;
    squared.rows = options.rows;
    squared.x = options.x;
    squared.out = {"squared"};
    const double floor = options.epsilon * options.epsilon;

    ProgramBuilder program;
    const int x = program.input(options.x.name, options.rows, segments_of(irreps), options.x.layout);
    const int bias = options.bias ? program.input("bias", "", scalars_of(irreps)) : -1;
    // max(s, floor) = relu(s - floor) + floor
    const int squares = program.apply("squares", squared_norm(irreps, squared), {x});
    const int excess = program.apply("excess", Function{FunctionKind::relu, 0}, program.affine("squares_less_floor", squares, 1, -floor));
    const int clamped = program.affine("clamped_squares", excess, 1, floor);
    const int length = program.apply("length", Function{FunctionKind::power, 0.5}, clamped);
    int argument = length;
    if (options.bias) {
        Assembly sum(program, options.rows, make_operand({"biased_length"}, scalars_of(irreps), Role::output));
        for (int value : {length, bias}) {
            const int operand = sum.operand(value);
            for (std::size_t i = 0; i < irreps.size(); ++i) {
                const int segment = static_cast<int>(i);
                add_path(sum.polynomial, {{operand, segment, "u", -1}, {0, segment, "u", -1}}, Coefficients(), 1.0,
                         {{'u', irreps[i].multiplicity}});
            }
        }
        argument = sum.finish();
    }
    const int factor = activation.function ? program.apply("activated_length", *activation.function, argument) : argument;
    const int inverse = options.normalize ? program.apply("inverse_length", Function{FunctionKind::power, -0.5}, clamped) : -1;

    Assembly product(program, options.rows, make_operand(options.out, segments_of(irreps), Role::output));
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int segment = static_cast<int>(i);
        std::vector<Factor> factors = {{product.operand(x), segment, "u", 0}, {product.operand(factor), segment, "u", -1}};
        if (options.normalize) factors.push_back({product.operand(inverse), segment, "u", -1});
        factors.push_back({0, segment, "u", 1});
        add_path(product.polynomial, std::move(factors), Coefficients::identity(irreps[i].irrep.dim()), activation.scale,
                 {{'u', irreps[i].multiplicity}});
    }
    return program.finish({product.finish()});
}

}  // namespace clebsch
