#include "support/any_description.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "describe/derivative.hpp"
#include "support/magnitudes.hpp"
#include "support/run_program.hpp"

namespace clebsch::testing {
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

/// Only the arrays a description reads.
ReferenceInputs restricted(const ReferenceInputs& call, const Description& description) {
    ReferenceInputs result = call;
    result.arrays.clear();
    for (const Value& value : inputs_of(description)) result.arrays[value.name] = call.arrays.at(value.name);
    return result;
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

}  // namespace

std::int64_t rows_of(const ReferenceInputs& call, const Value& value) { return value.space.empty() ? 1 : call.rows.at(value.space); }

ReferenceArray normal_numbers(std::size_t count, std::mt19937_64& random) {
    std::normal_distribution<double> distribution;
    ReferenceArray array(count);
    for (long double& number : array) number = static_cast<float>(distribution(random));
    return array;
}

std::vector<Value> inputs_of(const Description& description) { return values_of(description, Role::input); }
std::vector<Value> outputs_of(const Description& description) { return values_of(description, Role::output); }

Arrays evaluate(const Description& description, const ReferenceInputs& call) {
    const ReferenceInputs read = restricted(call, description);
    return std::visit([&](const auto& known) { return clebsch::evaluate(known, read); }, description);
}

ReferenceInputs random_call(const Description& description, std::mt19937_64& random, const std::map<std::string, std::int64_t>& rows) {
    ReferenceInputs call;
    call.rows = rows;
    const std::vector<Index>& indices =
        std::visit([](const auto& known) -> const std::vector<Index>& { return known.indices; }, description);
    for (const Index& index : indices) {
        std::vector<std::int64_t> values(static_cast<std::size_t>(call.rows.at(index.from)));
        for (std::int64_t& value : values) value = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(call.rows.at(index.to)));
        if (index.sorted) std::ranges::sort(values);
        call.indices[index.name] = values;
    }
    for (const Value& value : inputs_of(description))
        call.arrays[value.name] = normal_numbers(static_cast<std::size_t>(rows_of(call, value) * value.size()), random);
    return call;
}

std::vector<std::string> input_names(const Description& description) {
    std::vector<std::string> names;
    for (const Value& value : inputs_of(description))
        if (value.size() > 0) names.push_back(value.name);
    return names;
}

Description gradient_of(const Description& description, const std::vector<std::string>& inputs) {
    return std::visit([&](const auto& known) -> Description { return vjp(known, inputs); }, description);
}

Description gradient_of(const Description& description) { return gradient_of(description, input_names(description)); }

Arrays magnitudes(const Description& description, const ReferenceInputs& call, DType compute) {
    const ReferenceInputs read = restricted(call, description);
    return std::visit([&](const auto& known) { return testing::magnitudes(known, read, compute); }, description);
}

Arrays run(const Description& description, const ReferenceInputs& call, DType dtype, InstructionSet instruction_set,
           const std::string& family) {
    RunResult result;
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) {
        const std::vector<DType> dtypes(polynomial->operands.size(), dtype);
        result = run_plan(
            PolynomialPlan(*polynomial, {.dtypes = dtypes, .compute = {}, .instruction_set = instruction_set, .family = family}), call);
    } else {
        const Program& program = std::get<Program>(description);
        ProgramOptions options;
        options.dtypes.assign(program.inputs.size() + program.outputs.size(), dtype);
        options.instruction_set = instruction_set;
        options.family = family;
        result = run_program(ProgramPlan(program, options), call);
    }
    if (!result.surroundings_intact)
        for (auto& [name, numbers] : result.outputs) std::ranges::fill(numbers, INFINITY);
    return std::move(result.outputs);
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

double equivariance_deviation(const Description& description, const ReferenceInputs& call, const Matrix3& rotation,
                              const Evaluator& evaluator) {
    ReferenceInputs turned = call;
    for (const Value& value : inputs_of(description)) turned.arrays[value.name] = rotated(call.arrays.at(value.name), value, rotation);
    const Arrays before = evaluator(call), after = evaluator(turned);
    double largest = 0;
    for (const Value& value : outputs_of(description))
        largest = std::max(largest, deviation(after.at(value.name), rotated(before.at(value.name), value, rotation)));
    return largest;
}

double equivariance_deviation(const Description& description, const ReferenceInputs& call, const Matrix3& rotation) {
    return equivariance_deviation(description, call, rotation,
                                  [&](const ReferenceInputs& turned) { return evaluate(description, turned); });
}

Matrix3 random_rotation(std::mt19937_64& random, bool improper) {
    std::normal_distribution<double> normal;
    const double w = normal(random), x = normal(random), y = normal(random), z = normal(random);
    Matrix3 matrix = rotation_matrix(Quaternion{w, x, y, z});
    if (improper)
        for (double& entry : matrix) entry = -entry;
    return matrix;
}

}  // namespace clebsch::testing
