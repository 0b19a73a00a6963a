#pragma once
// Problems that people in this field measure, by label.
#include <string>
#include <string_view>
#include <vector>

#include "describe/operations/registry.hpp"

namespace clebsch {

struct NamedProblem {
    std::string label;
    std::string kind;       ///< "convolution", "fully connected", "product", "linear", "harmonics", "symmetric contraction"
    std::string summary;    ///< irreps and where it comes from, one line
    std::string published;  ///< the label of OpenEquivariance's suite, where it is another; accepted as well
};
const std::vector<NamedProblem>& named_problems();

enum class ProblemForm { as_measured, product };

/// The problem as it is measured: convolutions over edges with per-edge weights (operands x, y, weights, out; indices sender and sorted
/// receiver), products per row. ProblemForm::product gives a convolution's tensor product alone, one row per edge (OpenEquivariance's
/// tables). Throws Error(not_found) listing the labels.
Description named_problem(std::string_view label, ProblemForm form = ProblemForm::as_measured);

}  // namespace clebsch
