#pragma once
// Convolution over the edges of a graph: gather x at the sender, tensor product with the edge's y, sum at the receiver.
#include <string>
#include <vector>

#include "describe/operations/products.hpp"
#include "describe/operations/tensor_product.hpp"

namespace clebsch {

/// Order of instructions, hence of weights. generation: loops in1, in2, output irreps (NequIP); by_output: then sorted by output segment,
/// stable (MACE, SevenNet, Nequix).
enum class WeightOrder { generation, by_output };

/// per_path: one output segment per path, sorted by irrep (what e3nn models sum and then mix linearly); merged: paths of equal irrep and
/// multiplicity add up in one segment, and e3nn's 'element' normalisation counts them.
enum class OutputSegments { per_path, merged };

struct ConvolutionOptions {
    WeightOrder weight_order = WeightOrder::by_output;
    OutputSegments output_segments = OutputSegments::per_path;
    IrrepNormalization irrep_normalization = IrrepNormalization::component;
    PathNormalization path_normalization = PathNormalization::element;
    SignTable signs = SignTable::e3nn_0_5;
    double scale = 1.0;                                    ///< of every path, e.g. 1/sqrt(average number of neighbours)
    bool weighted = true;                                  ///< false: no weights, paths sum over the channels of y
    std::string edges = "edge", nodes = "node";            ///< row spaces
    std::string sender = "sender", receiver = "receiver";  ///< indices from edges to nodes
    bool receivers_sorted = true;
    OperandOptions x = {"x"}, y = {"y"}, out = {"out"};  ///< their rows are set: sender, edge, receiver
    OperandOptions weights = {"weights"};                ///< per edge, or shared_row() for one set
};

/// The products of every block of `in` with every block of `edge_irreps` into irreps of `filter` (multiplicities there do not matter), mode
/// uvu. An empty filter keeps every product.
ProductPlan channelwise_product(const Irreps& in, const Irreps& edge_irreps, const Irreps& filter,
                                WeightOrder order = WeightOrder::by_output, OutputSegments outputs = OutputSegments::per_path,
                                bool weighted = true);

/// Operands x (node rows through sender), y (edge), weights (edge), out (node rows through receiver, summed).
Polynomial convolution(const Irreps& in, const Irreps& edge_irreps, const Irreps& filter, const ConvolutionOptions& options = {});

/// Any tensor product as a convolution: e.g. a fully connected one.
Polynomial convolution(const ProductPlan& plan, const ConvolutionOptions& options = {});

}  // namespace clebsch
