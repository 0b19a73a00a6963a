#pragma once
// A random description with everything that a plan for a GPU can be asked for beside it. A seed determines all of it.
#include <string>
#include <variant>
#include <vector>

#include "support/channelwise.hpp"
#include "support/coverage.hpp"
#include "support/device_arrays.hpp"
#include "support/random_descriptions.hpp"

namespace clebsch::testing {

struct GpuDraw {
    std::variant<Polynomial, Program> description;
    int order = 0;  ///< of the derivative that the description is
    std::vector<DType> dtypes;
    DType compute = DType::float32;
    bool deterministic = false, compute_again = true;
    std::string schedule;  ///< of polynomials; one that is forced may not take them
    DeviceRun run;
    std::vector<ReferenceInputs> inputs;  ///< for one plan, rounded to what the dtypes store
};

GpuDraw draw_for_gpu(std::uint64_t seed);

/// What a draw has, for what many of them must have met between them.
void add(Coverage& coverage, const GpuDraw& draw);
/// Names of what none of the counted draws had, and should have; empty: nothing.
std::string lacking(const Coverage& coverage);

}  // namespace clebsch::testing
