#include "support/normal_inputs.hpp"

#include <algorithm>

#include "run/call.hpp"

namespace clebsch::testing {

ReferenceArray normal_array(std::mt19937_64& engine, std::int64_t count) {
    std::normal_distribution<double> distribution;
    ReferenceArray array(static_cast<std::size_t>(count));
    for (long double& number : array) number = static_cast<float>(distribution(engine));
    return array;
}

ReferenceInputs normal_inputs(const Polynomial& polynomial, std::map<std::string, std::int64_t> rows, unsigned seed, int masked) {
    std::mt19937_64 engine(seed);
    ReferenceInputs inputs;
    inputs.rows = std::move(rows);
    for (const Index& index : polynomial.indices) {
        std::vector<std::int64_t>& values = inputs.indices[index.name];
        for (std::int64_t i = 0; i < inputs.rows.at(index.from); ++i)
            values.push_back(static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(inputs.rows.at(index.to))));
        if (index.sorted) std::ranges::sort(values);
        for (std::int64_t& value : values)
            if (masked > 0 && engine() % static_cast<unsigned>(masked) == 0) value = -1;
    }
    for (const Operand& operand : polynomial.operands) {
        const std::string space = polynomial.space_of(operand);
        if (operand.role == Role::input)
            inputs.arrays[operand.name] = normal_array(engine, operand.size() * (space.empty() ? 1 : inputs.rows.at(space)));
    }
    return inputs;
}

ReferenceInputs normal_inputs(const Polynomial& polynomial, std::int64_t rows, std::int64_t others, unsigned seed) {
    std::map<std::string, std::int64_t> counts;
    for (const std::string& space : row_spaces(polynomial)) counts[space] = space == polynomial.rows ? rows : others;
    return normal_inputs(polynomial, std::move(counts), seed);
}

}  // namespace clebsch::testing
