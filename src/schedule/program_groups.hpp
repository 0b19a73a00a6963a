#pragma once
// Which nodes of a program run together, a few rows at a time, so that what they hand to one another never exists for all rows at once; and
// what is computed again instead of being kept for a later group.
//
// A value goes from one node to another row by row when both iterate over its rows and see them as `each`. Any other way (gathered through
// an index, summed into other rows, shared) needs all of it. The depth of a node is the largest number of such complete values on a way to
// it; nodes of one row space and one depth form a group, and groups run by depth: an edge's geometry; messages of a layer; what its nodes
// do; messages of the next one; the backward pass, layer by layer.
//
// A value that other groups need too is kept in memory or computed again in each of them. It can be computed again when its node has
// results of the group's own rows only, and reads nothing but inputs of the program, kept values of these rows and values that can be
// computed again. It is, when that costs less than a limit per number. A plan has two such limits (below): for few rows what is faster, for
// many rows what takes less memory. There the edge weights of a convolution are made from a few radial numbers where they are needed,
// forward and backward.
#include <cstdint>
#include <string>
#include <vector>

#include "describe/program.hpp"

namespace clebsch {

/// Multiply-adds per number up to which a value is computed again.
struct AgainLimits {
    double of_long_rows = 0, of_short_rows = 0;  ///< short: at most `small_row` numbers, which take little memory
    std::int64_t kept_numbers = 0;               ///< of a row: values of so few are always kept
    bool targets_kept = false;  ///< always: values of a space that an index leads to, such as atoms, which are fewer than edges
};
constexpr AgainLimits keep_much{24, 16};     ///< what a core does while it moves a number to memory and back: keeping more is no faster
constexpr AgainLimits keep_little{128, 16};  ///< last layers of radial networks are computed again: memory decides which systems fit
constexpr AgainLimits keep_on_gpu{128, 0, 256, true};  ///< every node computed again is a kernel to start: edge weights alone are worth it
constexpr std::int64_t small_row = 32;                 ///< numbers
constexpr double work_of_function = 16;                ///< of a number, in multiply-adds

struct TileGroup {
    std::string space;       ///< iteration space of all nodes
    std::vector<int> nodes;  ///< positions in TiledProgram::program, in an order in which they can run
    std::vector<int> again;  ///< values computed again here; of another group, or of no other one
    friend bool operator==(const TileGroup&, const TileGroup&) = default;
};

struct TiledProgram {
    Program program;                ///< the given one with copies of nodes that are computed again; nodes are ordered by group
    std::vector<TileGroup> groups;  ///< in an order in which they can run
    std::vector<int> kept;          ///< values that more than one group uses, the program's arguments aside
};

/// `group`: whether nodes may run together at all; if not, each is a group of its own, in the given order.
TiledProgram tile_program(const Program& program, bool group, const AgainLimits& limits = keep_little);

/// How a node sees a value.
struct RowUse {
    int value = 0;
    bool local = false;  ///< row by row: the value's rows are the node's, seen as `each`
    bool output = false;
};
/// Of a polynomial one for each operand, in their order; of a function the input, then the output.
std::vector<RowUse> row_uses(const Program& program, const Node& node);

/// Of every node: the largest number of complete values on a way to it.
std::vector<int> node_depths(const Program& program);

/// Multiply-adds of a node per row of its iteration space, roughly: entries of coefficients times channels.
double work_per_row(const Program& program, const Node& node);

}  // namespace clebsch
