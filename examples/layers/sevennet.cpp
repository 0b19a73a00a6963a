// Layers as SevenNet builds them: all parities even (SO(3): left and right may differ), paths in the order of their outputs, a linear
// self-connection, gates with silu.
#include "describe/operations/gate.hpp"
#include "layers/layers.hpp"

using namespace layers;

int main() {
    const Activation silu = parse_activation("silu", ActivationNormalization::e3nn);
    Stack stack(Irreps::spherical_harmonics(2, Parity::even), 6);
    const Irreps hidden = "8x0e+4x1e+2x2e", scalars = "8x0e", others = "4x1e+2x2e";
    Irreps irreps = "8x0e";
    int h = stack.linear("embedding", stack.one, "1x0e", irreps, /*per_element=*/true);
    for (const std::string name : {"layer0", "layer1", "layer2"}) {
        const bool last = name == "layer2";
        const Irreps gated = last ? Irreps() : others, gates = last ? Irreps() : Irreps("6x0e");
        const std::vector<Activation> of_gates = last ? std::vector<Activation>{} : std::vector<Activation>{silu};
        const Irreps mixed_irreps = gate_irreps(scalars, {silu}, gates, of_gates, gated).in;

        ConvolutionOptions options;
        options.scale = 1 / 30.0;  // SevenNet's denominator
        Irreps summed;
        const int x = stack.linear(name + ".linear_1", h, irreps, irreps);
        const int message = stack.convolution(name + ".message", x, irreps, last ? scalars : hidden, options, summed);
        const int mixed = stack.program.sum(name + ".mixed", {stack.linear(name + ".linear_2", message, summed, mixed_irreps),
                                                              stack.linear(name + ".self", h, irreps, mixed_irreps)});
        GateOptions gate_options;
        gate_options.rows = "node";
        h = stack.program.apply(name + ".h", gate(scalars, {silu}, gates, of_gates, gated, gate_options), {mixed}).front();
        irreps = last ? scalars : hidden;
    }
    const int hidden_energy = stack.linear("readout", h, irreps, "4x0e");
    return check(stack.model("sevennet", stack.linear("atom_energy", hidden_energy, "4x0e", "1x0e")), /*inversion=*/false);
}
