// Layers as NequIP builds them: features of both parities, self-connection with weights per element, gate with tanh for odd scalars.
#include "describe/operations/gate.hpp"
#include "layers/layers.hpp"

using namespace layers;

namespace {

/// What one layer's gate reads and writes.
struct Gated {
    Irreps in, out;
    Program program;
};

Gated gate_of(const Irreps& even_scalars, const Irreps& odd_scalars, const Irreps& gated) {
    const Activation silu = parse_activation("silu", ActivationNormalization::e3nn),
                     tanh = parse_activation("tanh", ActivationNormalization::e3nn);
    const Irreps scalars = even_scalars + odd_scalars, gates({{gated.num_irreps(), Irrep{0, Parity::even}}});
    std::vector<Activation> of_scalars = {silu};
    if (odd_scalars.size() > 0) of_scalars.push_back(tanh);
    GateOptions options;
    options.rows = "node";
    const GateIrreps irreps = gate_irreps(scalars, of_scalars, gates, {silu}, gated);
    return {irreps.in, irreps.out, gate(scalars, of_scalars, gates, {silu}, gated, options)};
}

}  // namespace

int main() {
    Stack stack(Irreps::spherical_harmonics(2), 6);
    Irreps irreps = "8x0e";
    int h = stack.linear("embedding", stack.one, "1x0e", irreps, /*per_element=*/true);
    for (const std::string name : {"layer0", "layer1", "layer2"}) {
        const bool first = name == "layer0";  // nothing of odd scalars or pseudovectors can be made of scalars and harmonics
        const Gated gate = first ? gate_of("8x0e", Irreps(), "4x1o+2x2e") : gate_of("8x0e", "4x0o", "4x1o+3x1e+2x2e+2x2o");

        ConvolutionOptions options;
        options.weight_order = WeightOrder::generation;
        options.scale = 1 / std::sqrt(30.0);
        Irreps summed;
        const int x = stack.linear(name + ".linear_1", h, irreps, irreps);
        const int message = stack.convolution(name + ".message", x, irreps, gate.in, options, summed);
        const int mixed = stack.program.sum(name + ".mixed", {stack.linear(name + ".linear_2", message, summed, gate.in),
                                                              stack.linear(name + ".self", h, irreps, gate.in, /*per_element=*/true)});
        h = stack.program.apply(name + ".h", gate.program, {mixed}).front();
        irreps = gate.out;
    }
    return check(stack.model("nequip", stack.linear("atom_energy", h, irreps, "1x0e")));
}
