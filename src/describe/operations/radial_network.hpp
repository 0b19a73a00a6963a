#pragma once
// From edge lengths to weights of paths: a radial basis, a cutoff, a multilayer perceptron.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/operations/activation.hpp"

namespace clebsch {

/// bessel: prefactor sin(n pi d/cutoff)/d, n = 1..size (its limit at d = 0).
/// gaussian: exp(-((d - c_n)/s)^2)/1.12 and smooth_finite: 1.14136 e^2 f((d - c_n)/s + 1) f(1 - (d - c_n)/s) with f(x) = exp(-1/x) for x >
/// 0, else 0, as in e3nn's soft_one_hot_linspace: centres c_n in [start, cutoff] at distance s, both ends among them or (open_ends) one
/// step inside.
enum class RadialBasis { bessel, gaussian, smooth_finite };
RadialBasis parse_radial_basis(std::string_view text);

struct RadialOptions {
    RadialBasis basis = RadialBasis::bessel;
    int basis_size = 8;
    double cutoff = 5.0;
    std::optional<double> bessel_prefactor = {};  ///< default sqrt(2/cutoff) (MACE, e3nn); NequIP and Nequix: 2/cutoff
    double start = 0.0;                           ///< of centres
    bool open_ends = true;
    /// Power p of the cutoff u(t) = 1 - (p+1)(p+2)/2 t^p + p(p+2) t^(p+1) - p(p+1)/2 t^(p+2), t = d/cutoff, 0 from t = 1 on. It multiplies
    /// the basis. 0: none. (Written as (1 - t)^3 times a sum of positive terms, which is the same.)
    int cutoff_power = 6;
    std::vector<std::int64_t> hidden = {64, 64};                     ///< widths between the matrices; empty: one matrix
    std::int64_t outputs = 0;                                        ///< number of weights; 0: no matrices, the output is the basis
    Activation activation = {Function{FunctionKind::silu, 0}, 1.0};  ///< after every matrix but the last
    bool fan_in = false;             ///< every matrix is divided by sqrt(number of its inputs) (e3nn's FullyConnectedNet, MACE, SevenNet)
    bool from_vectors = false;       ///< the input is `vectors` (1 x 3 per edge) instead of `lengths` (1 per edge)
    std::string edges = "edge";      ///< row space
    std::string output = "weights";  ///< name of the output
};

/// Program: inputs lengths (or vectors), matrix_0, matrix_1, ... (shared; (inputs, outputs) in C order); one output of `outputs` channels
/// per edge. It fits the weights of a convolution with as many: the columns of the last matrix are the paths' weights, path after path.
/// Lengths are to be >= 0. At length 0 everything has its limit; the gradient of a vector there is 0.
Program radial_network(const RadialOptions& options);

/// out[n] = f(in)[n] of a multilayer perceptron on plain channels: inputs x, matrix_0, ...; as in e3nn's FullyConnectedNet with fan_in.
Program multilayer_perceptron(std::int64_t inputs, const std::vector<std::int64_t>& hidden, std::int64_t outputs,
                              const Activation& activation, bool fan_in, const std::string& rows = "row");

}  // namespace clebsch
