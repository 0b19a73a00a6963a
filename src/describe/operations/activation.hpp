#pragma once
// Functions of scalars, with e3nn's normalising constants.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "describe/operations/path_builder.hpp"
#include "describe/program.hpp"

namespace clebsch {

/// scale x function(value); no function: the value as it is (scale still multiplies).
struct Activation {
    std::optional<Function> function = {};
    double scale = 1.0;

    friend bool operator==(const Activation&, const Activation&) = default;
};

/// Where the factor comes from that gives f(z) a second moment of 1 for standard normal z.
/// none: 1. e3nn: the constant of e3nn's normalize2mom, estimated there from a million samples (silu 1.6791767923989418,
/// exact 1.6765324703310907). exact: the integral. nequix: the constant of Nequix (silu only: 1.676562056079884).
enum class ActivationNormalization { none, e3nn, exact, nequix };
ActivationNormalization parse_activation_normalization(std::string_view text);

/// Throws where e3nn or Nequix have no constant for the function.
double activation_scale(const Function& function, ActivationNormalization normalization);

/// "silu", "tanh", "power(2)", "none"; "silu:1.5" states the factor itself.
Activation parse_activation(std::string_view text, ActivationNormalization normalization);
/// The same, separated by commas.
std::vector<Activation> parse_activations(std::string_view text, ActivationNormalization normalization);

/// f(-x) = f(x): even; -f(x): odd; else none.
Parity parity_of(const Activation& activation);
/// What a scalar becomes: 0o becomes 0e through an even function and stays 0o through an odd one; throws where it has no parity or the
/// irrep is no scalar.
Irrep activated(Irrep irrep, const Activation& activation);

struct ActivationOptions {
    std::string rows = "row";
    OperandOptions x = {"x"}, out = {"out"};  ///< rows: each
};

/// One activation per block. Blocks without a function may have any irrep. Program: input x, output out, in the order of `irreps`.
/// (nn.Activation)
Program activation(const Irreps& irreps, const std::vector<Activation>& activations, const ActivationOptions& options = {});

class ProgramBuilder;

/// Applies activations to segments of a value. `values[i]`, segment `segments[i]`: where the function of segment i lies (its scale is not
/// applied yet). Names of new values begin with `prefix`: another one for a second call on the same value.
struct ActivatedSegments {
    std::vector<int> values, segments;
};
ActivatedSegments activate_segments(ProgramBuilder& program, int value, const std::vector<int>& segments,
                                    const std::vector<Activation>& activations, const std::string& prefix = "scalars");

}  // namespace clebsch
