#include "describe/operations_support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "describe/derivative.hpp"
#include "e3nn_goldens.hpp"

namespace clebsch::operation_testing {
namespace {

std::vector<Value> values_of(const Description& description, Role role) {
    std::vector<Value> values;
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) {
        for (const Operand& operand : polynomial->operands)
            if (operand.role == role) values.push_back({operand.name, polynomial->space_of(operand), operand.segments, operand.layout});
        return values;
    }
    const Program& program = std::get<Program>(description);
    for (int number : role == Role::input ? program.inputs : program.outputs)
        values.push_back(program.values[static_cast<std::size_t>(number)]);
    return values;
}

std::int64_t rows_of(const ReferenceInputs& call, const Value& value) { return value.space.empty() ? 1 : call.rows.at(value.space); }

ReferenceArray normals(std::size_t count, std::mt19937_64& random) {
    std::normal_distribution<double> distribution;
    ReferenceArray array(count);
    for (long double& number : array) number = distribution(random);
    return array;
}

/// Only the arrays a description reads.
ReferenceInputs restricted(const ReferenceInputs& call, const Description& description) {
    ReferenceInputs result = call;
    result.arrays.clear();
    for (const Value& value : inputs_of(description)) result.arrays[value.name] = call.arrays.at(value.name);
    return result;
}

Description reverse(const Description& description, const std::vector<std::string>& inputs) {
    return std::visit([&](const auto& known) -> Description { return vjp(known, inputs); }, description);
}

/// Every row times the block-diagonal D of its segments.
ReferenceArray rotated(const ReferenceArray& array, const Value& value, const Matrix3& rotation) {
    ReferenceArray result = array;
    std::size_t start = 0;
    while (start < array.size()) {
        for (const Segment& segment : value.segments) {
            const auto channels = static_cast<std::size_t>(segment.multiplicity), dim = static_cast<std::size_t>(segment.components);
            if (segment.irrep) {
                const std::vector<double> d = wigner_d(*segment.irrep, rotation);
                for (std::size_t u = 0; u < channels; ++u) {
                    auto place = [&](std::size_t m) { return start + (value.layout == Layout::mul_ir ? u * dim + m : m * channels + u); };
                    for (std::size_t m = 0; m < dim; ++m) {
                        result[place(m)] = 0;
                        for (std::size_t n = 0; n < dim; ++n) result[place(m)] += d[m * dim + n] * array[place(n)];
                    }
                }
            }
            start += channels * dim;
        }
    }
    return result;
}

/// What vjp calls the cotangent of an output: numbered where an input has the name already.
std::string cotangent_of(const std::string& output, const Description& description) {
    const std::vector<Value> inputs = inputs_of(description);
    std::string name = output + "_cotangent";
    for (int n = 2; std::ranges::any_of(inputs, [&](const Value& value) { return value.name == name; }); ++n)
        name = output + "_cotangent_" + std::to_string(n);
    return name;
}

std::vector<std::string> names_of(const std::vector<Value>& values) {
    std::vector<std::string> names;
    for (const Value& value : values)
        if (value.size() > 0) names.push_back(value.name);
    return names;
}

}  // namespace

std::vector<Value> inputs_of(const Description& description) { return values_of(description, Role::input); }
std::vector<Value> outputs_of(const Description& description) { return values_of(description, Role::output); }

Arrays evaluate(const Description& description, const ReferenceInputs& call) {
    const ReferenceInputs read = restricted(call, description);
    return std::visit([&](const auto& known) { return clebsch::evaluate(known, read); }, description);
}

ReferenceInputs random_call(const Description& description, std::mt19937_64& random) {
    ReferenceInputs call;
    call.rows = {{"row", 3}, {"edge", 7}, {"node", 4}, {"graph", 2}, {"element", 3}};
    const std::vector<Index>& indices =
        std::visit([](const auto& known) -> const std::vector<Index>& { return known.indices; }, description);
    for (const Index& index : indices) {
        std::vector<std::int64_t> values(static_cast<std::size_t>(call.rows.at(index.from)));
        for (std::int64_t& value : values) value = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(call.rows.at(index.to)));
        if (index.sorted) std::ranges::sort(values);
        call.indices[index.name] = values;
    }
    for (const Value& value : inputs_of(description))
        call.arrays[value.name] = normals(static_cast<std::size_t>(rows_of(call, value) * value.size()), random);
    return call;
}

ReferenceArray golden(int stream, std::int64_t count) {
    ReferenceArray array;
    for (double number : golden_numbers(stream, count)) array.push_back(number);
    return array;
}

ReferenceArray array_of(const nlohmann::json& numbers) {
    ReferenceArray array;
    for (const auto& number : numbers) array.push_back(number.get<double>());
    return array;
}

double deviation(const ReferenceArray& a, const ReferenceArray& b) {
    if (a.size() != b.size())
        throw std::runtime_error("expected " + std::to_string(b.size()) + " numbers, got " + std::to_string(a.size()));
    long double difference = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference = std::max(difference, std::fabs(a[i] - b[i]));
        size = std::max(size, std::fabs(b[i]));
    }
    if (std::ranges::any_of(a, [](long double number) { return !std::isfinite(number); })) return INFINITY;
    return static_cast<double>(size > 0 ? difference / size : difference);
}

GoldenDeviation compare(const Description& description, const ReferenceInputs& call, const std::string& out,
                        const std::map<std::string, std::string>& gradients, const nlohmann::json& expected) {
    GoldenDeviation result;
    const ReferenceArray value = evaluate(description, call).at(out), output = array_of(expected.at("output"));
    result.output = deviation(value, output);
    ++result.compared;
    std::vector<std::string> inputs;
    for (const auto& [input, key] : gradients)
        if (expected.contains(key)) inputs.push_back(input);
    if (inputs.empty()) return result;
    ReferenceInputs backward = call;
    backward.arrays[out + "_cotangent"] = golden(3, static_cast<std::int64_t>(value.size()));
    const Arrays found = evaluate(reverse(description, inputs), backward);
    for (const std::string& input : inputs) {
        result.gradients = std::max(result.gradients, deviation(found.at(input + "_gradient"), array_of(expected.at(gradients.at(input)))));
        ++result.compared;
    }
    return result;
}

double equivariance_deviation(const Description& description, const ReferenceInputs& call, const Matrix3& rotation) {
    ReferenceInputs turned = call;
    for (const Value& value : inputs_of(description)) turned.arrays[value.name] = rotated(call.arrays.at(value.name), value, rotation);
    const Arrays before = evaluate(description, call), after = evaluate(description, turned);
    double largest = 0;
    for (const Value& value : outputs_of(description))
        largest = std::max(largest, deviation(after.at(value.name), rotated(before.at(value.name), value, rotation)));
    return largest;
}

Matrix3 random_rotation(std::mt19937_64& random, bool improper) {
    std::normal_distribution<double> normal;
    const double w = normal(random), x = normal(random), y = normal(random), z = normal(random);
    Matrix3 matrix = rotation_matrix(Quaternion{w, x, y, z});
    if (improper)
        for (double& entry : matrix) entry = -entry;
    return matrix;
}

double third_derivative_deviation(const Description& description, std::mt19937_64& random) {
    const Description first = reverse(description, names_of(inputs_of(description)));
    const Description second = reverse(first, names_of(inputs_of(first)));
    const std::vector<std::string> inputs = names_of(inputs_of(second));
    const Description third = reverse(second, inputs);
    for (const Description& derivative : {first, second, third}) std::visit([](const auto& known) { validate(known); }, derivative);

    ReferenceInputs call = random_call(second, random);
    Arrays direction;
    for (const std::string& input : inputs) direction[input] = normals(call.arrays.at(input).size(), random);
    auto at = [&](long double step) {
        ReferenceInputs there = call;
        for (const auto& [name, array] : direction)
            for (std::size_t i = 0; i < array.size(); ++i) there.arrays.at(name)[i] += step * array[i];
        return evaluate(second, there);
    };
    // Central difference of fourth order of the second derivative along the direction, against cotangents.
    const long double h = 1e-4L;
    const std::array<std::pair<long double, long double>, 4> stencil = {
        {{-2, 1.0L / 12}, {-1, -8.0L / 12}, {1, 8.0L / 12}, {2, -1.0L / 12}}};
    long double difference = 0, size = 0;
    std::map<std::string, ReferenceArray> cotangents;
    for (const Value& value : outputs_of(second))
        cotangents[value.name] = normals(static_cast<std::size_t>(rows_of(call, value) * value.size()), random);
    for (const auto& [offset, weight] : stencil) {
        const Arrays outputs = at(offset * h);
        for (const auto& [name, array] : outputs)
            for (std::size_t i = 0; i < array.size(); ++i) difference += weight / h * cotangents.at(name)[i] * array[i];
    }
    for (const Value& value : outputs_of(second)) call.arrays[cotangent_of(value.name, second)] = cotangents.at(value.name);
    const Arrays gradients = evaluate(third, call);
    long double derivative = 0;
    for (const std::string& input : inputs) {
        const ReferenceArray& gradient = gradients.at(input + "_gradient");
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            derivative += gradient[i] * direction.at(input)[i];
            size += std::fabs(gradient[i] * direction.at(input)[i]);
        }
    }
    if (!(size > 0)) return INFINITY;  // a test of nothing
    return static_cast<double>(std::fabs(derivative - difference) / size);
}

}  // namespace clebsch::operation_testing
