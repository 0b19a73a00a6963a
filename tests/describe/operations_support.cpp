#include "describe/operations_support.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "e3nn_goldens.hpp"

namespace clebsch::operation_testing {
namespace {

/// What vjp calls the cotangent of an output: numbered where an input has the name already.
std::string cotangent_of(const std::string& output, const Description& description) {
    const std::vector<Value> inputs = inputs_of(description);
    std::string name = output + "_cotangent";
    for (int n = 2; std::ranges::any_of(inputs, [&](const Value& value) { return value.name == name; }); ++n)
        name = output + "_cotangent_" + std::to_string(n);
    return name;
}

}  // namespace

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
    const Arrays found = evaluate(gradient_of(description, inputs), backward);
    for (const std::string& input : inputs) {
        result.gradients = std::max(result.gradients, deviation(found.at(input + "_gradient"), array_of(expected.at(gradients.at(input)))));
        ++result.compared;
    }
    return result;
}

double third_derivative_deviation(const Description& description, std::mt19937_64& random) {
    const Description first = gradient_of(description, input_names(description));
    const Description second = gradient_of(first, input_names(first));
    const std::vector<std::string> inputs = input_names(second);
    const Description third = gradient_of(second, inputs);
    for (const Description& derivative : {first, second, third}) std::visit([](const auto& known) { validate(known); }, derivative);

    ReferenceInputs call = random_call(second, random);
    Arrays direction;
    for (const std::string& input : inputs) direction[input] = normal_numbers(call.arrays.at(input).size(), random);
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
        cotangents[value.name] = normal_numbers(static_cast<std::size_t>(rows_of(call, value) * value.size()), random);
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
