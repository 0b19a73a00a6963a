#pragma once
// A network whose edges have their reverses: what describe/pairs.hpp rewrites, and graphs for it.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "describe/operations/convolution.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/program_builder.hpp"
#include "describe/operations/radial_network.hpp"
#include "describe/reference.hpp"

namespace clebsch::testing {

/// Inputs: vectors (edge), x (node), kinds (kind), matrices; output: h (node). Two layers: weights of the edges from a radial network, in
/// the second one times a row that the edge's kind chooses.
inline Program paired_network() {
    const Irreps features("8x0e+3x1o+2x1e"), degrees("0e+1o+2e");
    ProgramBuilder program;
    const int vectors = program.input("vectors", "edge", {{1, 3, Irrep{1, Parity::odd}}});
    int h = program.input("x", "node", segments_of(features), Layout::ir_mul);
    HarmonicsOptions harmonics_options;
    harmonics_options.rows = "edge";
    const int harmonics = program.apply("harmonics", normalized_harmonics(degrees, harmonics_options), {vectors}).front();
    RadialOptions radial;
    radial.from_vectors = true;
    radial.basis_size = 4;
    const int basis = program.apply("basis", radial_network(radial), {vectors}).front();
    ConvolutionOptions messages;
    messages.x.layout = messages.out.layout = Layout::ir_mul;
    const Polynomial convolution = clebsch::convolution(features, degrees, features, messages);
    LinearOptions on_nodes;
    on_nodes.rows = "node";
    on_nodes.x.layout = on_nodes.out.layout = Layout::ir_mul;
    const Polynomial mixing = linear(*irreps_of(convolution.operands[3]), features, on_nodes);
    const std::int64_t width = convolution.operands[2].size();
    for (int layer = 0; layer < 2; ++layer) {
        const std::string name = "layer" + std::to_string(layer) + ".";
        const int first = program.input(name + "first", "", {{4 * 48, 1, {}}}),
                  second = program.input(name + "second", "", {{48 * width, 1, {}}});
        const Activation silu = {Function{FunctionKind::silu, 0}, 1.0};
        int weights =
            program.apply(name + "weights", multilayer_perceptron(4, {48}, width, silu, true, "edge"), {basis, first, second}).front();
        if (layer == 1) {
            Polynomial scaling;
            scaling.rows = "edge";
            scaling.indices = {{"kind", "edge", "kind", false}};
            scaling.operands = {make_operand({"weights"}, {{width, 1, {}}}, Role::input),
                                make_operand({"kinds", Layout::mul_ir, row_of("kind")}, {{width, 1, {}}}, Role::input),
                                make_operand({"out"}, {{width, 1, {}}}, Role::output)};
            add_path(scaling, {{0, 0, "u", -1}, {1, 0, "u", -1}, {2, 0, "u", -1}}, Coefficients(), 1.0, {{'u', width}});
            weights = program.apply(name + "scaled", scaling, {weights, program.input("kinds", "kind", {{width, 1, {}}})});
        }
        const int message = program.apply(name + "message", convolution, {h, harmonics, weights});
        h = program.apply(name + "h", mixing, {message, program.input(name + "mixing", "", mixing.operands[1].segments)});
    }
    return program.finish({h});
}

/// Standard normals on a random graph with every edge's reverse, also of nodes with themselves; edges by receiver, in no other order. For
/// the program and for gradients of it.
inline ReferenceInputs on_paired_graph(const Program& program, std::int64_t nodes, std::int64_t pairs, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    struct Edge {
        std::int64_t sender = 0, receiver = 0, pair = 0, kind = 0;
        std::vector<double> vector;
    };
    std::vector<Edge> edges;
    for (std::int64_t p = 0; p < pairs; ++p) {
        Edge edge{.sender = static_cast<std::int64_t>(engine() % static_cast<unsigned>(nodes)),
                  .receiver = static_cast<std::int64_t>(engine() % static_cast<unsigned>(nodes)),
                  .pair = p,
                  .kind = static_cast<std::int64_t>(engine() % 3),
                  .vector = {normal(engine), normal(engine), normal(engine)}};
        edges.push_back(edge);
        std::swap(edge.sender, edge.receiver);
        for (double& number : edge.vector) number = -number;
        edges.push_back(edge);
    }
    std::ranges::shuffle(edges, engine);
    std::ranges::stable_sort(edges, {}, &Edge::receiver);
    ReferenceInputs inputs;
    inputs.rows = {{"node", nodes}, {"edge", 2 * pairs}, {"pair", pairs}, {"kind", 3}};
    std::vector<std::int64_t> number(static_cast<std::size_t>(pairs), -1);
    std::int64_t count = 0;
    for (std::size_t e = 0; e < edges.size(); ++e) {
        inputs.indices["sender"].push_back(edges[e].sender);
        inputs.indices["receiver"].push_back(edges[e].receiver);
        inputs.indices["kind"].push_back(edges[e].kind);
        std::int64_t& pair = number[static_cast<std::size_t>(edges[e].pair)];
        if (pair < 0) {
            pair = count++;
            inputs.indices["first_edge"].push_back(static_cast<std::int64_t>(e));
        }
        inputs.indices["pair"].push_back(pair);
        inputs.arrays["vectors"].insert(inputs.arrays["vectors"].end(), edges[e].vector.begin(), edges[e].vector.end());
    }
    for (const char* index : {"sender", "receiver", "kind", "pair", "first_edge"}) inputs.indices[index];
    inputs.arrays["vectors"];
    for (const int input : program.inputs) {
        const Value& value = program.values[static_cast<std::size_t>(input)];
        if (value.name == "vectors") continue;
        ReferenceArray& array = inputs.arrays[value.name];
        array.resize(static_cast<std::size_t>((value.space.empty() ? 1 : inputs.rows.at(value.space)) * value.size()));
        for (long double& entry : array) entry = normal(engine);
    }
    return inputs;
}

}  // namespace clebsch::testing
