#pragma once
// A path seen as a product with a matrix: the operand with the most letters (a weight, or a weight's gradient) has rows and columns, and
// every other factor lies on one of its two sides.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch {

using Letters = std::string;

struct MatrixPath {
    const Path* path = nullptr;
    int weight = 0;                                                  ///< factor
    Letters rows = {}, columns = {};                                 ///< letters of W before and after the split
    std::vector<int> row_side = {}, column_side = {}, neither = {};  ///< the other factors, by the letters they carry

    std::int64_t extent(const Letters& letters) const;
    int output() const { return static_cast<int>(path->factors.size()) - 1; }
    bool weight_is_output() const { return weight == output(); }
};

/// The weight with the most letters, and the first split for which every other factor lies on one side and walks it as at most two nested
/// loops; nothing if there is none. The path has to outlive the result.
std::optional<MatrixPath> as_matrix_path(const Polynomial& polynomial, const Path& path);

/// The value if a path's coefficients are value * delta between the components of factors a and b, all that these have, and no other factor
/// has any part in them.
std::optional<double> diagonal(const Polynomial& polynomial, const Path& path, int a, int b);

}  // namespace clebsch
