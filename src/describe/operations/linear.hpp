#pragma once
// Linear maps between irreps: channels mix within equal irreps.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "describe/operations/path_builder.hpp"
#include "describe/operations/tensor_product.hpp"

namespace clebsch {

struct LinearOptions {
    /// (input segment, output segment); weights follow this order. Absent: every pair of equal irreps, loops over inputs, outputs
    /// innermost.
    std::optional<std::vector<std::pair<int, int>>> instructions = {};
    PathNormalization path_normalization = PathNormalization::element;  ///< element or path; none is e3nn's error but allowed here
    /// Output segments that get a bias; "every 0e" is `scalar_biases`. Only 0e (or SO(3) 0) may have one.
    std::vector<int> biases = {};
    /// Copies of the input and of the output irreps in a row, every one mapped to every other with weights of its own (e3nn's f_in, f_out):
    /// the row is f_in x irreps, weights are (f_in, f_out, weights of the instructions); 1/sqrt(f_in) enters the scale.
    int f_in = 1, f_out = 1;
    double scale = 1.0;  ///< of every weighted path, beside the normalisation
    std::string rows = "row";
    std::vector<Index> indices = {};
    OperandOptions x = {"x"}, out = {"out"};
    /// One segment (mul_in mul_out channels, C order) per instruction. row_of("species") reads a set per species.
    OperandOptions weights = {"weights", Layout::mul_ir, shared_row()};
    OperandOptions bias = {"bias", Layout::mul_ir, shared_row()};
};

/// out = sum over instructions of scale/sqrt(fan in) x W, plus biases. Operands x, weights, bias (if any), out. With path normalisation
/// 'element' the fan-in is the number of input channels that reach the output segment; with 'path' it is mul_in times the number of
/// instructions into it. (o3.Linear)
Polynomial linear(const Irreps& in, const Irreps& out, const LinearOptions& options = {});

/// The output segments that may have a bias: all of 0e (or 0 of SO(3)).
std::vector<int> scalar_segments(const Irreps& irreps);

/// out[v] = scale/sqrt(fan in) sum_u x[u] W[u, v] + bias[v] on plain channels; W is one (in, out) matrix in C order. `fan_in`: divide by
/// sqrt(in).
Polynomial dense(std::int64_t in, std::int64_t out, bool fan_in, const LinearOptions& options = {}, bool bias = false);

}  // namespace clebsch
