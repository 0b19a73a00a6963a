#pragma once
// Polynomials and programs by the same words: their arrays, random calls, derivatives, evaluation by the reference or by a plan, rotations.
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algebra/rotation.hpp"
#include "describe/operations/registry.hpp"
#include "describe/reference.hpp"
#include "run/buffers.hpp"
#include "schedule/cpu_target.hpp"

namespace clebsch::testing {

using Arrays = std::map<std::string, ReferenceArray>;

/// An input or output: name, row space, segments and layout.
std::vector<Value> inputs_of(const Description& description);
std::vector<Value> outputs_of(const Description& description);
/// Inputs that have numbers.
std::vector<std::string> input_names(const Description& description);

std::int64_t rows_of(const ReferenceInputs& call, const Value& value);

/// Standard normal numbers that float32 holds exactly.
ReferenceArray normal_numbers(std::size_t count, std::mt19937_64& random);

/// A few rows in every space, random indices (sorted where promised), standard normal inputs that float32 holds exactly.
ReferenceInputs random_call(const Description& description, std::mt19937_64& random,
                            const std::map<std::string, std::int64_t>& rows = {
                                {"row", 3}, {"edge", 7}, {"node", 4}, {"graph", 2}, {"element", 3}});

/// The reference, given at least the arrays that the description reads.
Arrays evaluate(const Description& description, const ReferenceInputs& call);

/// A plan with every array in one dtype, of all kernel families or (but for `general`) of one; the result is infinite where anything
/// outside the outputs was touched.
Arrays run(const Description& description, const ReferenceInputs& call, DType dtype, InstructionSet instruction_set,
           const std::string& family = "");

/// What rounding errors are measured against (support/magnitudes.hpp).
Arrays magnitudes(const Description& description, const ReferenceInputs& call, DType compute);

/// Gradients to these inputs, or to all.
Description gradient_of(const Description& description, const std::vector<std::string>& inputs);
Description gradient_of(const Description& description);

/// max |a - b| / max |b|; 0 for empty arrays, and where b is zero the largest |a|.
double deviation(const ReferenceArray& a, const ReferenceArray& b);

/// Largest deviation of f(D x) from D f(x) for an orthogonal matrix, f by `evaluate` (the reference) or anything that gives outputs by
/// name; inputs without irreps stay.
using Evaluator = std::function<Arrays(const ReferenceInputs&)>;
double equivariance_deviation(const Description& description, const ReferenceInputs& call, const Matrix3& rotation,
                              const Evaluator& evaluator);
double equivariance_deviation(const Description& description, const ReferenceInputs& call, const Matrix3& rotation);

/// A random rotation, or (improper) one times the inversion.
Matrix3 random_rotation(std::mt19937_64& random, bool improper);

}  // namespace clebsch::testing
