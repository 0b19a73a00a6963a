#include "support/magnitudes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace clebsch::testing {
namespace {

ReferenceArray absolute(ReferenceArray array) {
    for (long double& number : array) number = std::fabs(number);
    return array;
}

/// What is special about the numbers of a compute type.
struct Range {
    long double least, most, unit;  ///< smallest normal number, largest number, rounding of 1
};
Range range_of(DType compute) {
    const auto of = []<class T>(T) {
        using limits = std::numeric_limits<T>;
        return Range{limits::min(), limits::max(), limits::epsilon()};
    };
    return compute == DType::float64 ? of(double{}) : of(float{});
}

/// Nothing is known of a number that may be beyond the largest one: infinite.
ReferenceArray within(ReferenceArray array, const Range& range) {
    for (long double& number : array) number = number <= range.most ? std::max(number, range.least) : INFINITY;
    return array;
}

/// |f'(x)| to a few digits, by a central difference.
long double slope(const Function& function, long double x) {
    const long double step = x == 0 ? 1e-9L : 1e-7L * std::fabs(x);
    return std::fabs(evaluate(function, x + step) - evaluate(function, x - step)) / (2 * step);
}

/// |f(x)| + |f'(x)| size; nothing is known where the function has no value for an argument that rounding may give instead of x: of one that
/// underflows, say, the logarithm.
long double magnitude(const Function& function, long double x, long double size, const Range& range) {
    const long double error = std::max(size * range.unit, range.least);  // what is less than the smallest normal number may be zero
    if (!std::isfinite(evaluate(function, x - error)) || !std::isfinite(evaluate(function, x + error))) return INFINITY;
    return std::fabs(evaluate(function, x)) + slope(function, x) * size;
}

}  // namespace

Polynomial with_magnitudes(const Polynomial& polynomial) {
    Polynomial result = polynomial;
    for (Path& path : result.paths) {
        path.scale = std::fabs(path.scale);
        std::vector<CoefficientEntry> entries = path.coefficients.entries();
        const auto negative = [](const CoefficientEntry& entry) { return entry.value < 0; };
        if (std::ranges::none_of(entries, negative)) continue;
        for (CoefficientEntry& entry : entries) entry.value = std::fabs(entry.value);
        path.coefficients = Coefficients::literal(path.coefficients.shape(), std::move(entries));
    }
    return result;
}

std::map<std::string, ReferenceArray> magnitudes(const Polynomial& polynomial, const ReferenceInputs& inputs, DType compute) {
    ReferenceInputs positive = inputs;
    for (auto& [name, array] : positive.arrays) array = absolute(std::move(array));
    std::map<std::string, ReferenceArray> outputs = evaluate(with_magnitudes(polynomial), positive);
    for (auto& [name, array] : outputs) array = within(std::move(array), range_of(compute));
    return outputs;
}

std::map<std::string, ReferenceArray> magnitudes(const Program& program, const ReferenceInputs& inputs, DType compute) {
    const Range range = range_of(compute);
    Program all = program;  // every value is an output, to see the arguments of functions
    all.outputs.clear();
    for (const Node& node : program.nodes) {
        if (const auto* function = std::get_if<FunctionNode>(&node)) {
            all.outputs.push_back(function->output);
            continue;
        }
        const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
        for (std::size_t i = 0; i < arguments.size(); ++i)
            if (polynomial.operands[i].role == Role::output) all.outputs.push_back(arguments[i]);
    }
    std::map<std::string, ReferenceArray> values = evaluate(all, inputs);
    values.insert(inputs.arrays.begin(), inputs.arrays.end());

    const auto name = [&](int value) { return program.values[static_cast<std::size_t>(value)].name; };
    std::map<std::string, ReferenceArray> result;
    for (const int input : program.inputs) result[name(input)] = absolute(values.at(name(input)));
    for (const Node& node : program.nodes) {
        if (const auto* function = std::get_if<FunctionNode>(&node)) {
            const ReferenceArray& x = values.at(name(function->input));
            ReferenceArray sizes = result.at(name(function->input));
            for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = magnitude(function->function, x[i], sizes[i], range);
            result[name(function->output)] = within(std::move(sizes), range);
            continue;
        }
        const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
        ReferenceInputs positive{inputs.rows, inputs.indices, {}};
        for (std::size_t i = 0; i < arguments.size(); ++i)
            if (polynomial.operands[i].role == Role::input) positive.arrays[polynomial.operands[i].name] = result.at(name(arguments[i]));
        std::map<std::string, ReferenceArray> outputs = evaluate(with_magnitudes(polynomial), positive);
        for (std::size_t i = 0; i < arguments.size(); ++i)
            if (polynomial.operands[i].role == Role::output)
                result[name(arguments[i])] = within(std::move(outputs.at(polynomial.operands[i].name)), range);
    }
    std::map<std::string, ReferenceArray> outputs;
    for (const int output : program.outputs) outputs[name(output)] = result.at(name(output));
    return outputs;
}

double error_in_magnitudes(const ReferenceArray& result, const ReferenceArray& reference, const ReferenceArray& magnitudes) {
    if (result.size() != reference.size()) return INFINITY;
    long double difference = 0, norm = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
        if (std::isinf(magnitudes[i])) continue;
        if (!std::isfinite(result[i])) return INFINITY;
        difference += (result[i] - reference[i]) * (result[i] - reference[i]);
        norm += magnitudes[i] * magnitudes[i];
    }
    if (difference == 0) return 0;
    return static_cast<double>(std::sqrt(difference / norm));
}

}  // namespace clebsch::testing
