#include "support/operation_samples.hpp"

namespace clebsch::testing {

const std::vector<Sample>& samples() {
    static const std::vector<Sample> list = {
        {"tensor_product",
         {{"in1", "2x1o+3x2e"},
          {"in2", "2x1o+1x1e"},
          {"out", "2x1e+4x1e+2x2e+3x3e+2x1o"},
          {"instructions",
           "0,0,0,uvu,weighted; 0,0,0,uuu,plain,2; 0,0,1,uvuv,weighted; 1,1,2,uvw,weighted; 1,1,3,uvu,plain; 0,1,4,uvu,weighted,0.5"},
          {"x_layout", "ir_mul"}}},
        {"tensor_product",
         {{"in1", "3x1o"},
          {"in2", "3x2e"},
          {"out", "3x3o+2x1o+1x2o+3x2o"},
          {"instructions", "0,0,0,uvu<v,weighted; 0,0,1,u<vw,weighted; 0,0,1,uuw,weighted; 0,0,2,uuw,plain; 0,0,3,uvv,weighted"},
          {"weights", "species"},
          {"out_layout", "ir_mul"}}},
        {"custom_product",
         {{"in1", "2x1o+3x(2)"},
          {"in2", "1x1o+1x(2)"},
          {"out", "2x1e+3x(1)"},
          {"instructions", "0,0,0,uvu,weighted; 1,1,1,uvu,plain"},
          {"coefficients", "; 0,0,0:1 1,1,0:-0.5"}}},
        {"fully_connected",
         {{"in1", "2x0e+1x1o"}, {"in2", "0e+1o+2e"}, {"out", "2x0e+2x1o+1x1e+1x2e"}, {"weights", "per_row"}, {"signs", "e3nn-0.4"}}},
        {"full_product", {{"in1", "2x1o+1x2e"}, {"in2", "1x1e+2x0o"}, {"y_layout", "ir_mul"}}},
        {"elementwise_product", {{"in1", "3x2e+2x1o"}, {"in2", "5x1e"}}},
        {"channelwise_product", {{"in1", "3x0e+2x1o"}, {"in2", "2x1o+1x2e"}, {"filter", "0e+1o+2e"}, {"weights", "per_row"}}},
        {"tensor_square", {{"in", "2x0e+2x1o"}}},
        {"tensor_square", {{"in", "2x0e+2x1o"}, {"out", "2x0e+1x1o+1x2e"}, {"weights", "per_row"}}},
        {"linear",
         {{"in", "2x0e+3x1o+1x0e"},
          {"out", "2x1o+3x0e"},
          {"biases", "true"},
          {"weights", "species"},
          {"f_in", "2"},
          {"x_layout", "ir_mul"}}},
        {"convolution",
         {{"in", "3x0e+2x1o"},
          {"edge", "0e+1o+2e"},
          {"out", "0e+1o+2e"},
          {"scale", "0.5"},
          {"x_layout", "ir_mul"},
          {"out_layout", "ir_mul"}}},
        {"convolution",
         {{"in", "2x1o+2x1e"},
          {"edge", "1o+2e"},
          {"out", "1e+1o"},
          {"weights", "shared"},
          {"output_segments", "merged"},
          {"sorted", "false"}}},
        {"convolution", {{"in", "2x0e+1x1o"}, {"edge", "0e+1o"}, {"out", "3x0e+2x1o"}, {"product", "fully_connected"}}},
        {"convolution", {{"in", "2x1o"}, {"edge", "2x1o"}, {"out", "0e+2e"}, {"weights", "none"}, {"weight_order", "generation"}}},
        {"spherical_harmonics", {{"irreps", "0e+2x1o+2e+3o"}, {"normalize", "false"}, {"normalization", "integral"}}},
        {"spherical_harmonics", {{"irreps", "1o+2e+3o"}, {"normalize", "true"}}},
        {"spherical_harmonics", {{"irreps", "0e+1e+2e"}, {"normalize", "true"}, {"normalization", "norm"}}},
        {"symmetric_contraction", {{"in", "2x0e+2x1o"}, {"out", "2x0e+2x1o+2x2e"}, {"correlation", "3"}, {"x_layout", "ir_mul"}}},
        {"rotation", {{"irreps", "2x0e+2x1o+1x2e+1x1o"}}, false},
        {"rotation", {{"irreps", "2x0o+2x1o+1x1e"}, {"inverse", "true"}, {"matrix_per_irrep", "true"}}, false},
        {"layout_change", {{"irreps", "2x0e+3x1o"}, {"out_layout", "ir_mul"}, {"scale", "2"}}},
        {"pooling", {{"irreps", "2x0e+2x1o"}}},
        {"pooling", {{"irreps", "2x0e+2x1o"}, {"direction", "broadcast"}, {"sorted", "false"}}},
        {"gate",
         {{"scalars", "2x0e+2x0o"},
          {"scalar_functions", "silu,tanh"},
          {"gates", "2x0o+1x0e"},
          {"gate_functions", "tanh,sigmoid"},
          {"gated", "2x1e+1x2o"},
          {"x_layout", "ir_mul"}}},
        {"activation", {{"irreps", "2x0e+1x0o+1x1o+2x0e"}, {"functions", "silu,tanh,none,silu"}}},
        {"norm", {{"irreps", "2x1o+1x2e+1x0o"}}},
        {"norm", {{"irreps", "2x1o+1x2e"}, {"squared", "true"}, {"x_layout", "ir_mul"}}},
        {"norm_activation", {{"irreps", "2x1o+3x0e+1x2e+1x0o"}, {"function", "sigmoid"}, {"bias", "true"}}},
        {"norm_activation", {{"irreps", "2x1o"}, {"function", "tanh"}, {"normalize", "false"}, {"normalization", "exact"}}},
        {"layer_norm", {{"irreps", "3x0e+2x1o+1x2e"}}},
        {"layer_norm", {{"irreps", "2x1o+1x2e"}, {"x_layout", "ir_mul"}, {"epsilon", "0.5"}}},
        {"radial_network", {{"outputs", "3"}, {"hidden", "4"}, {"basis_size", "3"}, {"input", "vectors"}}},
        {"radial_network", {{"basis", "gaussian"}, {"basis_size", "3"}, {"cutoff", "4"}, {"cutoff_power", "3"}, {"input", "vectors"}}},
        {"radial_network", {{"basis", "smooth_finite"}, {"basis_size", "4"}, {"cutoff", "4"}, {"cutoff_power", "0"}, {"input", "vectors"}}},
        {"perceptron", {{"inputs", "3"}, {"hidden", "4,2"}, {"outputs", "2"}}},
        {"named", {{"label", "harmonics-3"}}},
    };
    return list;
}

Description build(const Sample& sample) { return build_operation(sample.operation, sample.options); }

std::string label(const Sample& sample) {
    std::string text = sample.operation;
    for (const auto& [key, value] : sample.options) text += " " + key + "=" + value;
    return text;
}

}  // namespace clebsch::testing
