#include "describe/operations/norm.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"
#include "describe/operations/program_builder.hpp"

namespace clebsch {
namespace {

std::vector<Segment> scalars_of(const Irreps& irreps) {
    std::vector<Segment> segments;
    for (const IrrepBlock& block : irreps)
        segments.push_back({block.multiplicity, 1, Irrep{0, block.irrep.parity == Parity::none ? Parity::none : Parity::even}});
    return segments;
}

/// |x| of every channel, as a value called `out`. Scalars take the function `absolute`: derivatives of the root of a square are sums of
/// terms that cancel.
int norms(ProgramBuilder& program, const Irreps& irreps, const std::string& rows, int x, const OperandOptions& out) {
    const Value value = program.value(x);
    std::vector<int> scalars;
    Polynomial squared;
    squared.rows = rows;
    squared.operands = {make_operand({"x", value.layout}, value.segments, Role::input), make_operand({"squared"}, {}, Role::output)};
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int segment = static_cast<int>(i);
        if (irreps[i].irrep.degree == 0) {
            scalars.push_back(segment);
            continue;
        }
        std::vector<Segment>& squares = squared.operands[1].segments;
        squares.push_back(scalars_of(irreps)[i]);
        add_path(squared, {{0, segment, "u", 0}, {0, segment, "u", 1}, {1, static_cast<int>(squares.size()) - 1, "u", -1}},
                 Coefficients::identity(irreps[i].irrep.dim()), 1.0, {{'u', irreps[i].multiplicity}});
    }
    const auto roots = [&](const std::string& name) {
        return program.apply(name, Function{FunctionKind::power, 0.5}, program.apply("squared_" + value.name, squared, {x}));
    };
    if (scalars.empty()) return roots(out.name);
    const int root = scalars.size() < irreps.size() ? roots("roots") : -1;
    const ActivatedSegments absolute =
        activate_segments(program, x, scalars, std::vector<Activation>(scalars.size(), {Function{FunctionKind::absolute, 0}, 1.0}));
    Assembly result(program, rows, make_operand(out, scalars_of(irreps), Role::output));
    int next_scalar = 0, next_root = 0;
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const bool scalar = irreps[i].irrep.degree == 0;
        const auto at = static_cast<std::size_t>(next_scalar);
        const int operand = result.operand(scalar ? absolute.values[at] : root);
        add_path(result.polynomial, {{operand, scalar ? absolute.segments[at] : next_root, "u", -1}, {0, static_cast<int>(i), "u", -1}},
                 Coefficients(), 1.0, {{'u', irreps[i].multiplicity}});
        ++(scalar ? next_scalar : next_root);
    }
    return result.finish();
}

/// x/max(|x|, epsilon) of the scalars, by its pieces: the sign, and x/epsilon around zero. `less_floor`: |x| - epsilon of every block.
/// Segments follow `scalars`.
int directions(ProgramBuilder& program, const Irreps& irreps, const std::string& rows, int x, int less_floor,
               const std::vector<int>& scalars, double epsilon) {
    const Function step{FunctionKind::step, 0}, sign{FunctionKind::sign, 0};
    const int outside = program.apply("outside", step, less_floor);
    const int inside = program.affine("inside", outside, -1, 1);
    const ActivatedSegments signs = activate_segments(program, x, scalars, std::vector<Activation>(scalars.size(), {sign, 1.0}), "signs");
    std::vector<Segment> segments;
    segments.reserve(scalars.size());
    for (const int s : scalars) segments.push_back(scalars_of(irreps)[static_cast<std::size_t>(s)]);
    Assembly result(program, rows, make_operand({"directions"}, segments, Role::output));
    for (std::size_t i = 0; i < scalars.size(); ++i) {
        const Factor out{0, static_cast<int>(i), "u", -1};
        const std::vector<std::pair<char, std::int64_t>> extents = {{'u', segments[i].multiplicity}};
        add_path(result.polynomial,
                 {{result.operand(signs.values[i]), signs.segments[i], "u", -1}, {result.operand(outside), scalars[i], "u", -1}, out},
                 Coefficients(), 1.0, extents);
        add_path(result.polynomial, {{result.operand(x), scalars[i], "u", -1}, {result.operand(inside), scalars[i], "u", -1}, out},
                 Coefficients(), 1 / epsilon, extents);
    }
    return result.finish();
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
    ProgramBuilder program;
    const int x = program.input(options.x.name, options.rows, segments_of(irreps), options.x.layout);
    return program.finish({norms(program, irreps, options.rows, x, options.out)});
}

Program layer_norm(const Irreps& irreps, const LayerNormOptions& options) {
    if (!(options.epsilon > 0) || !std::isfinite(options.epsilon))
        fail("layer norm: expected an epsilon above 0, got " + number_text(options.epsilon));
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
        fail("norm activation: expected an epsilon above 0, got " + number_text(options.epsilon));
    ProgramBuilder program;
    const int x = program.input(options.x.name, options.rows, segments_of(irreps), options.x.layout);
    const int bias = options.bias ? program.input("bias", "", scalars_of(irreps)) : -1;
    const int lengths = norms(program, irreps, options.rows, x, {"lengths"});
    // max(|x|, epsilon) = relu(|x| - epsilon) + epsilon
    const int less_floor = program.affine("lengths_less_floor", lengths, 1, -options.epsilon);
    const int excess = program.apply("excess", Function{FunctionKind::relu, 0}, less_floor);
    const int clamped = program.affine("clamped_lengths", excess, 1, options.epsilon);
    int argument = clamped;
    if (options.bias) {
        Assembly sum(program, options.rows, make_operand({"biased_length"}, scalars_of(irreps), Role::output));
        for (int value : {clamped, bias}) {
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
    std::vector<int> scalars;
    for (std::size_t i = 0; i < irreps.size(); ++i)
        if (options.normalize && irreps[i].irrep.degree == 0) scalars.push_back(static_cast<int>(i));
    const int inverse = options.normalize && scalars.size() < irreps.size()
                            ? program.apply("inverse_length", Function{FunctionKind::power, -1}, clamped)
                            : -1;
    const int direction = scalars.empty() ? -1 : directions(program, irreps, options.rows, x, less_floor, scalars, options.epsilon);

    Assembly product(program, options.rows, make_operand(options.out, segments_of(irreps), Role::output));
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int segment = static_cast<int>(i);
        const auto scalar = std::ranges::find(scalars, segment);
        const Factor f{product.operand(factor), segment, "u", -1};
        std::vector<Factor> factors;
        if (scalar != scalars.end()) {
            factors = {{product.operand(direction), static_cast<int>(scalar - scalars.begin()), "u", 0}, f};
        } else {
            factors = {{product.operand(x), segment, "u", 0}, f};
            if (options.normalize) factors.push_back({product.operand(inverse), segment, "u", -1});
        }
        factors.push_back({0, segment, "u", 1});
        add_path(product.polynomial, std::move(factors), Coefficients::identity(irreps[i].irrep.dim()), activation.scale,
                 {{'u', irreps[i].multiplicity}});
    }
    return program.finish({product.finish()});
}

}  // namespace clebsch
