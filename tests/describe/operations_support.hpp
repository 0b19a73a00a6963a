#pragma once
// What the tests of builders share: golden inputs, comparison with e3nn, derivatives of third order.
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>

#include "support/any_description.hpp"

namespace clebsch::operation_testing {

using namespace clebsch::testing;

/// Numbers of golden stream `stream`.
ReferenceArray golden(int stream, std::int64_t count);
ReferenceArray array_of(const nlohmann::json& numbers);

/// The output `out` of a call and its gradients against a golden case: `gradients` maps names of inputs to keys ("x" to "grad_x").
/// Cotangent: stream 3.
struct GoldenDeviation {
    double output = 0, gradients = 0;
    int compared = 0;  ///< arrays
};
GoldenDeviation compare(const Description& description, const ReferenceInputs& call, const std::string& out,
                        const std::map<std::string, std::string>& gradients, const nlohmann::json& expected);

/// Builds three reverse derivatives on top of each other, validates them, and gives the deviation of the third from finite differences of
/// the second along a random direction, relative to the sum of the sizes of its terms.
double third_derivative_deviation(const Description& description, std::mt19937_64& random);

}  // namespace clebsch::operation_testing
