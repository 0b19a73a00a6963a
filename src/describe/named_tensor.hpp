#pragma once
// The tensors the library knows by name: their grammar, shapes and entries (describe/coefficients.hpp lists them).
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/coefficients.hpp"
#include "describe/exchange.hpp"

namespace clebsch {

/// What a name stands for; the entries are computed when asked for.
struct NamedTensor {
    std::string name;  ///< canonical: no spaces, irreps as `to_text` writes them
    std::vector<int> shape;
    std::vector<int> block;  ///< as in ExchangeForm
    std::function<std::vector<CoefficientEntry>()> terms;
};

/// Throws Error(parse) that quotes the call: unknown name, wrong arguments, no such coupling.
NamedTensor parse_named_tensor(std::string_view call);

}  // namespace clebsch
