#pragma once
// Layers as networks have them: harmonics and a radial network on the edges, a convolution, a linear map on the nodes.
#include <string>

#include "describe/operations/convolution.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/program_builder.hpp"

namespace clebsch::testing {

struct NetworkLayers {
    Irreps features = Irreps("8x0e+5x1o+3x2e");
    Irreps harmonics = Irreps("0e+1o+2e");
    std::int64_t hidden = 40;
    int layers = 2;
    bool receivers_sorted = true;
    Layout layout = Layout::ir_mul;
};

/// Inputs: vectors (edge), x (node), matrices; output: h (node).
inline Program network_layers(const NetworkLayers& options) {
    ProgramBuilder program;
    const int vectors = program.input("vectors", "edge", {{1, 3, Irrep{1, Parity::odd}}});
    int h = program.input("x", "node", segments_of(options.features), options.layout);
    HarmonicsOptions harmonics_options;
    harmonics_options.rows = "edge";
    const int harmonics = program.apply("harmonics", spherical_harmonics(options.harmonics, harmonics_options), {vectors});
    LinearOptions on_edges;
    on_edges.rows = "edge";
    ConvolutionOptions messages;
    messages.receivers_sorted = options.receivers_sorted;
    messages.x.layout = messages.out.layout = options.layout;
    LinearOptions on_nodes;
    on_nodes.rows = "node";
    on_nodes.x.layout = on_nodes.out.layout = options.layout;
    for (int layer = 0; layer < options.layers; ++layer) {
        const std::string name = "layer" + std::to_string(layer) + ".";
        const Polynomial convolution = clebsch::convolution(options.features, options.harmonics, options.features, messages);
        const auto dense_layer = [&](const std::string& out, int x, std::int64_t from, std::int64_t to) {
            const int matrix = program.input(name + out + "_matrix", "", {{from * to, 1, {}}});
            return program.apply(name + out, dense(from, to, true, on_edges), {x, matrix});
        };
        const int first = program.apply(name + "first_active", Function{FunctionKind::silu, 0},
                                        dense_layer("first", harmonics, program.value(harmonics).size(), options.hidden));
        const int second = program.apply(name + "second_active", Function{FunctionKind::silu, 0},
                                         dense_layer("second", first, options.hidden, options.hidden));
        const int weights = dense_layer("weights", second, options.hidden, convolution.operands[2].size());
        const int message = program.apply(name + "message", convolution, {h, harmonics, weights});
        const Polynomial mixing = linear(*irreps_of(convolution.operands[3]), options.features, on_nodes);
        const int matrices = program.input(name + "mixing", "", mixing.operands[1].segments);
        h = program.apply(name + "h", mixing, {message, matrices});
    }
    return program.finish({h});
}

}  // namespace clebsch::testing
