#pragma once
// Random polynomials and programs on random graphs, and the two tests that any derivative has to pass: finite differences and duality.
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "describe/derivative.hpp"
#include "describe/reference.hpp"

namespace clebsch::derivative_testing {

using Names = std::vector<std::string>;

/// Operands or values of one role, with their row space and numbers per row.
struct Array {
    std::string name, space;
    std::int64_t size = 0;
};
std::vector<Array> inputs_of(const Polynomial& polynomial);
std::vector<Array> outputs_of(const Polynomial& polynomial);
std::vector<Array> inputs_of(const Program& program);
std::vector<Array> outputs_of(const Program& program);

class Source {
 public:
    explicit Source(std::uint64_t seed) : random_(seed) {}
    int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
    double normal() { return std::normal_distribution<>()(random_); }
    ReferenceArray normals(std::int64_t count) {
        ReferenceArray array(static_cast<std::size_t>(count));
        for (long double& number : array) number = normal();
        return array;
    }

 private:
    std::mt19937_64 random_;
};

/// Spaces edge, node and graph with indices sender, receiver (sorted), reverse (edge -> edge) and graph (node -> graph); some entries are
/// masked.
ReferenceInputs random_graph(Source& source, bool with_masks = true);

/// Standard normal numbers for every input of a polynomial or program that has none yet.
template <class Description>
void fill(ReferenceInputs& call, const Description& description, Source& source) {
    for (const Array& array : inputs_of(description)) {
        if (call.arrays.contains(array.name)) continue;
        const std::int64_t rows = array.space.empty() ? 1 : call.rows.at(array.space);
        call.arrays[array.name] = source.normals(rows * array.size);
    }
}

/// Over edges, nodes, or the single row: 1 to 4 inputs, 1 or 2 outputs in any row space; paths of degree 0 to 4 with all kinds of channels,
/// powers, named and literal coefficients.
Polynomial random_polynomial(Source& source);

/// Polynomials and smooth functions over values of all spaces; values are used several times.
Program random_program(Source& source);

/// A program of polynomials over edges alone, whose values are all addressed by `each`.
Program random_chain(Source& source);

/// Names of 1 to all inputs of floating-point kind.
template <class Description>
Names random_inputs(const Description& description, Source& source) {
    Names names;
    for (const Array& array : inputs_of(description))
        if (source.below(3) > 0) names.push_back(array.name);
    if (names.empty() && !inputs_of(description).empty()) names.push_back(inputs_of(description).front().name);
    return names;
}

/// Largest deviations, relative to the sizes of what is compared.
struct Deviations {
    long double finite_differences = 0;  ///< of directional derivatives of every output, jvp against central differences of 6th order
    long double duality = 0;             ///< <cotangent, jvp(direction)> - <vjp(cotangent), direction>
};

/// `call` holds every input of the description.
Deviations check(const Polynomial& polynomial, const Names& inputs, const ReferenceInputs& call, Source& source);
Deviations check(const Program& program, const Names& inputs, const ReferenceInputs& call, Source& source);

}  // namespace clebsch::derivative_testing
