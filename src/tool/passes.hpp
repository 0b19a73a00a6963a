#pragma once
// The passes that matter to who trains or runs a model: forward, gradients of all inputs, and the gradients of those.
#include <string>
#include <vector>

#include "tool/request.hpp"

namespace clebsch::tool {

struct Pass {
    std::string key, title;  ///< "backward", "backward"
    Description description;
};

/// forward; backward: gradients of `inputs` (all, if empty); double backward: gradients of the backward pass with respect to all that it
/// takes. order: 0 to 2, the highest derivative. A pass without inputs to differentiate is left out.
std::vector<Pass> passes_of(const Description& description, const std::vector<std::string>& inputs, int order);

}  // namespace clebsch::tool
