#pragma once
// A program's arguments, and copies of them in another type. Internal to run/.
#include <optional>
#include <utility>
#include <vector>

#include "describe/program.hpp"
#include "run/call_arguments.hpp"

namespace clebsch {

/// Of a program: its inputs, then its outputs.
struct ProgramArguments : CallArguments {
    Program given;

    ProgramArguments(const Program& program, const std::vector<DType>& dtypes, std::optional<DType> compute);
};

/// Gives every argument of `program` that is `needed` in the compute type, but stored otherwise, a copy that all nodes use instead; returns
/// pairs (argument, copy). `dtypes` are those of the program's values.
std::vector<std::pair<int, int>> add_copies(Program& program, const std::vector<bool>& needed, std::vector<DType>& dtypes, DType compute);

}  // namespace clebsch
