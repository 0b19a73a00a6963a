#include "describe/operations/activation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.hpp"
#include "describe/operations/program_builder.hpp"
#include "describe/operations/text_fields.hpp"

namespace clebsch {
namespace {

/// e3nn 0.6.0: (mean of f(z)^2)^-1/2 over torch.randn(1_000_000, dtype=float64) with seed 0, on the CPU.
constexpr std::array<std::pair<FunctionKind, double>, 8> e3nn_constants = {{
    {FunctionKind::silu, 1.6791767923989418},
    {FunctionKind::tanh, 1.5937334472592695},
    {FunctionKind::sigmoid, 1.8467055342154763},
    {FunctionKind::relu, 1.4163393446331365},
    {FunctionKind::absolute, 1.001110600838467},
    {FunctionKind::softplus, 1.0426436590527184},
    {FunctionKind::sin, 1.5218334864623193},
    {FunctionKind::cos, 1.326609063570005},
}};

/// Nequix 0.4: over the normal quantiles i/1000002.
constexpr double nequix_silu = 1.676562056079884;

/// Trapezoidal rule against the normal density: exact to rounding for smooth functions, and for those with a kink at the grid point 0 to
/// 1e-9.
double exact_scale(const Function& function) {
    if (function.kind == FunctionKind::relu) return std::numbers::sqrt2;
    constexpr int steps = 1 << 13;
    constexpr long double limit = 12;
    long double sum = 0;
    for (int i = -steps; i <= steps; ++i) {
        const long double z = limit * i / steps, value = evaluate(function, z);
        sum += value * value * std::exp(-z * z / 2);
    }
    const long double moment = sum * (limit / steps) / std::sqrt(2 * std::numbers::pi_v<long double>);
    if (!(moment > 0) || !std::isfinite(moment)) fail("activation: " + to_text(function) + " has no second moment to normalise");
    return static_cast<double>(1 / std::sqrt(moment));
}

Parity parity_of_power(double exponent) {
    if (exponent != std::floor(exponent)) return Parity::none;
    return std::fmod(exponent, 2) == 0 ? Parity::even : Parity::odd;
}

std::pair<char, std::int64_t> channels(const Segment& segment) { return {'u', segment.multiplicity}; }

}  // namespace

ActivationNormalization parse_activation_normalization(std::string_view text) {
    if (text == "none") return ActivationNormalization::none;
    if (text == "e3nn") return ActivationNormalization::e3nn;
    if (text == "exact") return ActivationNormalization::exact;
    if (text == "nequix") return ActivationNormalization::nequix;
    fail("activation normalization '" + std::string(text) + "': expected none, e3nn, exact or nequix");
}

double activation_scale(const Function& function, ActivationNormalization normalization) {
    switch (normalization) {
        case ActivationNormalization::none:
            return 1.0;
        case ActivationNormalization::exact:
            return exact_scale(function);
        case ActivationNormalization::nequix:
            if (function.kind == FunctionKind::silu) return nequix_silu;
            fail("activation: Nequix has no constant for " + to_text(function) + "; give it as '" + to_text(function) +
                 ":1.5', or take exact");
        case ActivationNormalization::e3nn:
            break;
    }
    const auto found = std::ranges::find(e3nn_constants, function.kind, &std::pair<FunctionKind, double>::first);
    if (found == e3nn_constants.end())
        fail("activation: e3nn's constant for " + to_text(function) + " is not known; give it as '" + to_text(function) +
             ":1.5', or take exact");
    return found->second;
}

Activation parse_activation(std::string_view text, ActivationNormalization normalization) {
    text = trimmed(text);
    const auto colon = text.find(':');
    const std::string_view name = trimmed(text.substr(0, colon));
    Activation result;
    if (name != "none") result.function = parse_function(name);
    if (colon != std::string_view::npos)
        result.scale = parse_number(trimmed(text.substr(colon + 1)), "activation '" + std::string(text) + "'");
    else if (result.function) result.scale = activation_scale(*result.function, normalization);
    return result;
}

std::vector<Activation> parse_activations(std::string_view text, ActivationNormalization normalization) {
    std::vector<Activation> activations;
    for (const std::string& field : split_fields(text, ',')) activations.push_back(parse_activation(field, normalization));
    return activations;
}

Parity parity_of(const Activation& activation) {
    if (!activation.function) return Parity::odd;
    switch (activation.function->kind) {
        case FunctionKind::sin:
        case FunctionKind::tanh:
        case FunctionKind::erf:
        case FunctionKind::sign:
            return Parity::odd;
        case FunctionKind::cos:
        case FunctionKind::absolute:
            return Parity::even;
        case FunctionKind::power:
            return parity_of_power(activation.function->parameter);
        case FunctionKind::sinc:
            return std::fmod(activation.function->parameter, 2) == 0 ? Parity::even : Parity::odd;
        default:
            return Parity::none;
    }
}

Irrep activated(Irrep irrep, const Activation& activation) {
    if (!activation.function) return irrep;
    if (irrep.degree != 0) fail("activation: " + to_text(*activation.function) + " acts on scalars, got " + to_text(irrep));
    if (irrep.parity != Parity::odd) return irrep;
    const Parity parity = parity_of(activation);
    if (parity == Parity::none) fail("activation: " + to_text(*activation.function) + " is neither even nor odd, so it cannot act on 0o");
    return {0, parity};
}

ActivatedSegments activate_segments(ProgramBuilder& program, int value, const std::vector<int>& segments,
                                    const std::vector<Activation>& activations, const std::string& prefix) {
    const Value from = program.value(value);
    ActivatedSegments result{std::vector<int>(segments.size(), value), segments};
    // One value for all segments of equal function.
    std::vector<Function> functions;
    for (const Activation& activation : activations)
        if (activation.function && std::ranges::find(functions, *activation.function) == functions.end())
            functions.push_back(*activation.function);
    for (std::size_t f = 0; f < functions.size(); ++f) {
        Polynomial take;
        take.rows = from.space;
        take.operands = {make_operand({"x", from.layout}, from.segments, Role::input), make_operand({"taken"}, {}, Role::output)};
        std::vector<std::size_t> members;
        for (std::size_t i = 0; i < segments.size(); ++i) {
            if (activations[i].function != functions[f]) continue;
            const Segment& segment = from.segments[static_cast<std::size_t>(segments[i])];
            if (segment.components != 1)
                fail("activation: " + to_text(functions[f]) + " acts on scalars, got " + std::to_string(segment.components) +
                     " components");
            const int place = static_cast<int>(take.operands[1].segments.size());
            take.operands[1].segments.push_back({segment.multiplicity, 1, {}});
            add_path(take, {{0, segments[i], "u", -1}, {1, place, "u", -1}}, Coefficients(), 1.0, {channels(segment)});
            result.segments[i] = place;
            members.push_back(i);
        }
        const std::string name = prefix + std::to_string(value) + "_" + std::to_string(f);
        // A value that is all of one function needs no copy.
        const bool all = members.size() == from.segments.size();
        const int applied = program.apply("activated_" + name, functions[f], all ? value : program.apply(name, take, {value}));
        for (std::size_t i : members) {
            result.values[i] = applied;
            if (all) result.segments[i] = segments[i];
        }
    }
    return result;
}

Program activation(const Irreps& irreps, const std::vector<Activation>& activations, const ActivationOptions& options) {
    if (activations.size() != irreps.size())
        fail("activation: expected one function per block of '" + to_text(irreps) + "', got " + std::to_string(activations.size()));
    std::vector<Segment> out = segments_of(irreps);
    std::vector<int> segments;
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        out[i].irrep = activated(irreps[i].irrep, activations[i]);
        segments.push_back(static_cast<int>(i));
    }
    ProgramBuilder program;
    const int x = program.input(options.x.name, options.rows, segments_of(irreps), options.x.layout);
    const ActivatedSegments active = activate_segments(program, x, segments, activations);
    Assembly assembly(program, options.rows, make_operand(options.out, out, Role::output));
    for (std::size_t i = 0; i < irreps.size(); ++i) {
        const int operand = assembly.operand(active.values[i]);
        add_path(assembly.polynomial, {{operand, active.segments[i], "u", 0}, {0, static_cast<int>(i), "u", 1}},
                 Coefficients::identity(out[i].components), activations[i].scale, {channels(out[i])});
    }
    return program.finish({assembly.finish()});
}

}  // namespace clebsch
