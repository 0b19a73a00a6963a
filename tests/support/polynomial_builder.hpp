#pragma once
// Builds one random polynomial path by path; shared by random polynomials and the polynomial nodes of random programs.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/random_descriptions.hpp"

namespace clebsch::random {

int below(Engine& engine, int n);  ///< uniform in [0, n)
bool chance(Engine& engine, double probability);
double normal(Engine& engine);
template <class T>
const T& pick(Engine& engine, const std::vector<T>& items) {
    return items[static_cast<std::size_t>(below(engine, static_cast<int>(items.size())))];
}

/// The row spaces random descriptions live in: edges between nodes, nodes of graphs and species; every index is present or not.
std::vector<Index> random_indices(Engine& engine);
/// Those of `indices` that rows of `space` reach.
std::vector<Index> reachable(const std::vector<Index>& indices, const std::string& space);

class PolynomialBuilder {
 public:
    PolynomialBuilder(Engine& engine, const Limits& limits, std::string rows, std::vector<Index> indices);

    /// Offers an input whose segments are given (a value of a program); `space` must be reachable.
    void offer(const std::string& name, const std::vector<Segment>& segments, Layout layout, const std::string& space);
    bool reaches(const std::string& space) const;

    void add_path();
    Polynomial take() { return std::move(polynomial_); }

 private:
    struct Mode {
        std::vector<std::string> inputs;
        std::string output;
        int power = 1;  ///< the first `power` inputs are one factor, repeated
    };
    struct Need {  ///< what a factor asks of its segment
        std::string channels;
        std::int64_t multiplicity = 1;
        int components = 1;
        int axis = -1;
        std::optional<Irrep> irrep;
    };
    using Place = std::pair<int, int>;  // operand, segment

    Engine& engine_;
    const Limits& limits_;
    Polynomial polynomial_;
    std::vector<bool> given_;  // operands whose segments may not grow
    std::vector<Addressing> addressings_;

    Mode random_mode();
    void letters_of_random_mode(Mode& mode);
    Place random_input_segment();
    Coefficients choose_coefficients(const Mode& mode, std::vector<Need>& needs, int first_components);
    Coefficients literal(std::vector<Need>& needs, std::vector<std::size_t> carriers, int first_components);
    Coefficients coupling(std::vector<Need>& needs, std::vector<std::size_t> carriers, int first_components);
    Coefficients power_coefficients(std::vector<Need>& needs, int power);
    std::vector<std::pair<char, std::int64_t>> choose_extents(const Mode& mode, double entries, std::int64_t first_multiplicity);
    Place place(const Need& need, Role role);
    void append(Operand& operand, const Need& need);
};

}  // namespace clebsch::random
