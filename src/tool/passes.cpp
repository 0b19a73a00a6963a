#include "tool/passes.hpp"

#include "tool/workload.hpp"

namespace clebsch::tool {

std::vector<Pass> passes_of(const Description& description, const std::vector<std::string>& inputs, int order) {
    std::vector<Pass> passes = {{"forward", "forward", description}};
    const std::vector<std::string> first = inputs.empty() ? input_names(description) : inputs;
    if (order < 1 || first.empty()) return passes;
    passes.push_back({"backward", "backward", reverse(description, first)});
    if (order < 2) return passes;
    const Description& backward = passes.back().description;
    passes.push_back({"double_backward", "double backward", reverse(backward, input_names(backward))});
    return passes;
}

}  // namespace clebsch::tool
