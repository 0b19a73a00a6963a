// Layers as MACE builds them: a convolution, then a symmetric contraction of correlation 3 with weights per element, and a readout of every
// layer.
#include "describe/operations/symmetric_contraction.hpp"
#include "layers/layers.hpp"

using namespace layers;

int main() {
    Stack stack(Irreps::spherical_harmonics(3), 5);
    const Irreps hidden = "6x0e+6x1o", target = "6x0e+6x1o+6x2e+6x3o";
    Irreps irreps = "6x0e";
    int h = stack.linear("embedding", stack.one, "1x0e", irreps, /*per_element=*/true);
    std::vector<int> energies;
    for (const std::string name : {"layer0", "layer1"}) {
        const bool first = name == "layer0";
        const Irreps out = first ? hidden : Irreps("6x0e");
        Irreps summed;
        const int up = stack.linear(name + ".linear_up", h, irreps, irreps);
        const int message = stack.convolution(name + ".message", up, irreps, target, {}, summed);
        ProgramBuilder& program = stack.program;
        const int a = program.affine(name + ".a", stack.linear(name + ".linear", message, summed, target), 1 / 30.0);

        ContractionOptions options;
        options.x.layout = options.out.layout = Layout::mul_ir;
        const Polynomial contraction = symmetric_contraction(target, out, 3, options);
        const int weights = program.input(name + ".contraction", "element", contraction.operands[1].segments, Layout::ir_mul);
        const int product = stack.linear(name + ".product", program.apply(name + ".b", contraction, {a, weights}), out, out);
        // The first layer's skip belongs to the interaction in some variants; here it is the residual form in both.
        h = program.sum(name + ".h", {product, stack.linear(name + ".skip", h, irreps, out, /*per_element=*/true)});
        irreps = out;
        energies.push_back(stack.linear(name + ".readout", h, irreps, "1x0e"));
    }
    return check(stack.model("mace", stack.program.sum("atom_energy", energies)));
}
