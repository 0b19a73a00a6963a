#pragma once
// Programs over the edges of graphs in which every edge has its reverse: sender and receiver exchanged, the vector negated. What belongs to
// an edge alone is the same for its reverse or changes its sign, so that one row is enough for both of them, a pair.
#include <optional>
#include <string>

#include "describe/program.hpp"

namespace clebsch {

/// Names in a program, and of what its rewritten form has beside.
struct PairNames {
    std::string edges = "edge", sender = "sender", receiver = "receiver";
    std::string vectors = "vectors";   ///< the only input of the edges; those of the reverse are these negated
    std::string pairs = "pair";        ///< row space: a row for an edge and its reverse
    std::string pair = "pair";         ///< index, edges -> pairs
    std::string first = "first_edge";  ///< index, pairs -> edges, sorted: the edge whose vector the pair has
};

/// Two programs of one meaning. They differ in where sums over edges find, on the way forth, what belongs to an edge alone.
struct PairedGradient {
    Program of_pairs;    ///< what is the same for the reverse is the pair's: computed once for both, and kept until all edges were summed
    Program made_again;  ///< computed for every edge, where the sum needs it
};

/// value_and_vjp(program, {vectors}) with rows of pairs in the place of rows of edges: all that belongs to an edge alone, and the whole way
/// back, where the two edges of a pair add to one gradient of each value. The sums at atoms stay sums over edges on the way forth: in the
/// order of their receivers they are summed in registers. The gradient of `vectors` is that of both edges at the first edge of a pair, and
/// zero at the other. Both programs have the indices `pair` and `first`, used or not.
///
/// Nothing where that is not possible. A program may compute values of an edge from `vectors`, shared values and rows of other indices (the
/// same for both edges of a pair) as long as every number is even or odd under a change of sign of the vector; multiply them with what
/// sender and receiver have; and sum that, one value per node, at sender or receiver.
std::optional<PairedGradient> gradient_in_pairs(const Program& program, const PairNames& names = {});

}  // namespace clebsch
