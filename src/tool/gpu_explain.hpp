#pragma once
// How a polynomial would run on a GPU that need not be there.
#include <string>

#include "run/buffers.hpp"
#include "tool/request.hpp"

namespace clebsch::tool {

/// Prints, with `json` as one object, the schedule (`deterministic`: of sums in a fixed order), and what the compiler says of the kernels
/// where it is found; with `source` also their text. Returns an exit code. Throws Error(unsupported) for programs, Error(invalid_argument)
/// for an unknown target.
int explain_gpu(const Request& request, const std::string& target, DType dtype, bool deterministic, bool source, bool json);

}  // namespace clebsch::tool
