#pragma once
// In which order the nodes of a group run, and which of them as one step.
#include <span>
#include <vector>

#include "describe/program.hpp"

namespace clebsch {

struct NodeGroup {
    std::vector<int> nodes;   ///< positions in the program, in an order in which they can run
    bool lanes = false;       ///< as one tape (schedule/lanes.hpp)
    std::vector<int> stored;  ///< lanes: written values that other groups or the outputs need
};

/// Of the nodes given (a group of schedule/program_groups.hpp, all others done or later): those that suit a tape (`fuse`: if any may) and
/// share a row space follow one another as far as what they read allows; the others keep their order. A function of many numbers, or a
/// single function, is no tape.
std::vector<NodeGroup> order_nodes(const Program& program, std::span<const int> nodes, bool fuse);

/// Values a node reads or writes, in the order of its operands.
std::vector<int> values_of(const Node& node, Role role);

}  // namespace clebsch
