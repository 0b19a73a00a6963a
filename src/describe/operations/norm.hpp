#pragma once
// Norms of irreps, channel by channel, and functions of them.
#include <string>

#include "describe/operations/activation.hpp"

namespace clebsch {

struct NormOptions {
    std::string rows = "row";
    OperandOptions x = {"x"}, out = {"out"};  ///< rows: each
};

/// |x|^2 of every channel: one segment of scalars per block. Operands x, out. (o3.Norm with squared=True)
Polynomial squared_norm(const Irreps& irreps, const NormOptions& options = {});

/// |x| of every channel; its gradient at 0 is 0. Program: input x, output out. (o3.Norm)
Program norm(const Irreps& irreps, const NormOptions& options = {});

struct NormActivationOptions {
    bool normalize = true;  ///< x f(|x| + b)/|x|; false: x f(|x| + b)
    double epsilon = 1e-8;  ///< |x|^2 is at least epsilon^2
    bool bias = false;      ///< adds an input `bias`, shared, one number b per channel
    std::string rows = "row";
    OperandOptions x = {"x"}, out = {"out"};  ///< rows: each
};
/// Program: inputs x (and bias), output out. (nn.NormActivation)
Program norm_activation(const Irreps& irreps, const Activation& activation, const NormActivationOptions& options = {});

struct LayerNormOptions {
    double epsilon = 1e-12;  ///< added to the mean square
    std::string rows = "row";
    OperandOptions x = {"x"}, out = {"out"};  ///< rows: each
};
/// out = x scale[channel] / sqrt(epsilon + mean over blocks of s/(2l+1)^2), s the sum of x^2 over a block's channels and components. No
/// centring, no bias. Program: inputs x and scales (shared, one number per channel), output out. (the layer norm of Nequix)
Program layer_norm(const Irreps& irreps, const LayerNormOptions& options = {});

}  // namespace clebsch
