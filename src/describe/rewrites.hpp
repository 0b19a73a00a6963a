#pragma once
// Rewrites of descriptions that keep their meaning. Value in, value out; derivatives are in derivative.hpp.
#include <cstdint>
#include <span>
#include <vector>

#include "describe/polynomial.hpp"
#include "describe/program.hpp"

namespace clebsch {

/// A polynomial over some of the operands of another: operand i is the other's operand `kept[i]`.
struct OperandSelection {
    Polynomial polynomial;
    std::vector<int> kept;
};

/// Without the inputs that no path reads and the indices that no remaining operand uses. Outputs stay, written or not; order stays.
OperandSelection drop_unused(const Polynomial& polynomial);

/// Operand i of the result is operand `order[i]`. Throws unless `order` is a permutation of all operands.
Polynomial permuted(const Polynomial& polynomial, std::span<const int> order);

/// Where a segment of a block lies in the operand it was cut from.
struct SegmentPart {
    int segment = 0;
    std::int64_t first_channel = 0;

    friend bool operator==(const SegmentPart&, const SegmentPart&) = default;
};

/// The paths of a polynomial whose channels are in [begin, end), over operands that hold only the segments those paths touch, cut to these
/// channels.
struct ChannelBlock {
    Polynomial polynomial;
    std::int64_t begin = 0, end = 0;                 ///< of the channel letter; 0, 0: paths that are not channel-wise, whole
    std::vector<int> operands;                       ///< operand i of the block is the polynomial's operand operands[i]
    std::vector<std::vector<SegmentPart>> segments;  ///< [operand of the block][segment]
};

/// Splits a polynomial into blocks of channels such that, in each block, every path reaches all of its channels.
/// A path is channel-wise if it has exactly one letter and each factor's channels are that letter or "". Channel-wise paths of extents
/// n_1 < n_2 < ... give blocks [0, n_1), [n_1, n_2), ...; all other paths, if any, follow as a block [0, 0). The sum of the blocks is the
/// polynomial. A factor without channels belongs to every block that its path reaches.
std::vector<ChannelBlock> split_by_channels(const Polynomial& polynomial);

/// Splits paths that multiply a channel-free operand and mix channels into two steps: out[w] = sum_u W[u,w] C x[u] y becomes t[u] = C x[u]
/// y per row (channel-wise), out[w] = sum_u W[u,w] t[u] (a linear map). A path is split when it has the channels x = "u", y = "", W = "uw"
/// or "wu" without components, out = "w" and its multiplications per row fall by more than a factor of `least_gain` (0: whatever they do).
/// So is one whose y has channels "v" too, W = "uvw" or "wuv": t[u,v] = C x[u] y[v] are then many numbers. Gradients of such a W that all
/// rows share are split likewise, into products of all inputs but one, and sums over rows of products times this one, if it has
/// `least_gradient` numbers or more; and with `least_gain` up to 1 gradients of y = "v", W = "uvw": W meets x or the cotangent first
/// (`inner`), the other one what comes of it. Returns a program of up to three nodes whose values are named after operands (and `products`
/// for t, `inner`); a polynomial without such paths gives a program of one node.
Program split_mixing(const Polynomial& polynomial, double least_gain = 1.0, std::int64_t least_gradient = 0);

/// A program to give nodes of its own: the values, indices, inputs and outputs of another.
Program without_nodes(const Program& program);

/// The reverse, and more: a polynomial equal to a program of polynomial nodes all of which run over the same rows. Every intermediate value
/// that is addressed by `each` (or, over the space of one row, shared) is replaced by the paths that make it; coefficients are contracted
/// (a contraction with an identity keeps names). Throws Error(unsupported) when a node is a function, rows differ, an intermediate is
/// reached through an index, or letters run out.
Polynomial as_polynomial(const Program& program);

}  // namespace clebsch
