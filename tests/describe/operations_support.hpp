#pragma once
// What the tests of builders share: calls with random or golden inputs, comparison with e3nn, equivariance, derivatives of third order.
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>
#include <vector>

#include "algebra/rotation.hpp"
#include "describe/operations/registry.hpp"
#include "describe/reference.hpp"

namespace clebsch::operation_testing {

using Arrays = std::map<std::string, ReferenceArray>;

/// An input or output: name, row space, segments and layout.
std::vector<Value> inputs_of(const Description& description);
std::vector<Value> outputs_of(const Description& description);

/// A few rows in every space (row 3, edge 7, node 4, graph 2, element 3), random indices (sorted where promised), standard normal inputs.
ReferenceInputs random_call(const Description& description, std::mt19937_64& random);

Arrays evaluate(const Description& description, const ReferenceInputs& call);

/// Numbers of golden stream `stream`.
ReferenceArray golden(int stream, std::int64_t count);
ReferenceArray array_of(const nlohmann::json& numbers);

/// max |a - b| / max |b|; 0 for empty arrays, and where b is zero the largest |a|.
double deviation(const ReferenceArray& a, const ReferenceArray& b);

/// The output `out` of a call and its gradients against a golden case: `gradients` maps names of inputs to keys ("x" to "grad_x").
/// Cotangent: stream 3.
struct GoldenDeviation {
    double output = 0, gradients = 0;
    int compared = 0;  ///< arrays
};
GoldenDeviation compare(const Description& description, const ReferenceInputs& call, const std::string& out,
                        const std::map<std::string, std::string>& gradients, const nlohmann::json& expected);

/// Largest deviation of f(D x) from D f(x) for an orthogonal matrix; inputs without irreps stay.
double equivariance_deviation(const Description& description, const ReferenceInputs& call, const Matrix3& rotation);

/// A random rotation, or (improper) one times the inversion.
Matrix3 random_rotation(std::mt19937_64& random, bool improper);

/// Builds three reverse derivatives on top of each other, validates them, and gives the deviation of the third from finite differences of
/// the second along a random direction, relative to the sum of the sizes of its terms.
double third_derivative_deviation(const Description& description, std::mt19937_64& random);

}  // namespace clebsch::operation_testing
