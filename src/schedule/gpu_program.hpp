#pragma once
// How the nodes of a program become kernels on a GPU: which run together as one tape, a thread per row or per number of a row, and which
// run as polynomials of their own.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/program.hpp"
#include "schedule/lanes.hpp"

namespace clebsch {

/// Nodes that run as one kernel.
struct GpuProgramStep {
    std::vector<int> nodes;   ///< positions in the program, in an order in which they can run
    std::vector<int> stored;  ///< tapes: written values that others need
    std::int64_t width = 0;   ///< tapes: threads of a row. 1: all numbers of a row in one; n: number by number. 0: a polynomial
};

/// Of the nodes given (a group of schedule/program_groups.hpp: one row space), in an order that brings what suits one tape side by side.
/// Functions of values without numbers are left out.
std::vector<GpuProgramStep> gpu_steps(const Program& program, const std::vector<int>& nodes);

/// A node that treats the numbers of its values one by one, all values alike, on values of one number; nothing for others. `numbers`:
/// how many there are in a row.
std::optional<Node> number_by_number(const Program& program, const Node& node, std::int64_t& numbers);

/// Neighbouring steps that can run as one kernel, a block taking some rows through all of them (emit/chain.hpp): over the same rows,
/// without indices, and of little work. `alone`: steps that run otherwise, as matrix products do. Lists of positions in `steps`, in order,
/// all steps once.
std::vector<std::vector<std::size_t>> step_chains(const Program& program, const std::vector<GpuProgramStep>& steps,
                                                  const std::vector<bool>& alone);
/// Rows that a block takes through a chain.
std::int64_t chain_rows(const Program& program, const std::vector<const GpuProgramStep*>& chain);

/// The tape of a step.
LanesCode tape_of(const Program& program, const GpuProgramStep& step);

}  // namespace clebsch
