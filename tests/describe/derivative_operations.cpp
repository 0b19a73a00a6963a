// Every operation there is a builder for: derivatives to third order against finite differences of the reference.
#include <doctest/doctest.h>

#include <cmath>

#include "derivative_support.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/gate.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/layout_change.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/norm.hpp"
#include "describe/operations/pooling.hpp"
#include "describe/operations/products.hpp"
#include "describe/operations/radial_network.hpp"
#include "describe/operations/rotation.hpp"
#include "describe/operations/symmetric_contraction.hpp"
#include "describe/operations/tensor_square.hpp"

using namespace clebsch;
using namespace clebsch::derivative_testing;

namespace {

template <class Description>
void check_operation(const std::string& name, const Description& description, long double tolerance = 1e-12L) {
    CAPTURE(name);
    Source source(71);
    ReferenceInputs graph;
    graph.rows = {{"row", 2}, {"edge", 4}, {"node", 3}, {"graph", 2}, {"element", 2}};
    graph.indices = {{"sender", {2, 0, -1, 1}}, {"receiver", {0, 0, 1, 2}}, {"species", {1, 0, 1}}, {"graph_of_node", {0, 1, 1}}};
    Description current = description;
    for (int order = 1; order <= 3; ++order) {
        CAPTURE(order);
        ReferenceInputs call = graph;
        fill(call, current, source);
        if (call.arrays.contains("lengths"))
            for (long double& length : call.arrays.at("lengths")) length = 0.5L + std::fmin(std::fabs(length), 3.0L);  // inside the cutoff
        Names inputs;
        for (const Array& array : inputs_of(current)) inputs.push_back(array.name);
        const Deviations deviations = check(current, inputs, call, source);
        CHECK(deviations.finite_differences < tolerance);
        CHECK(deviations.duality < 1e-15L);
        current = order == 2 ? jvp(current, inputs) : vjp(current, inputs);
    }
}

}  // namespace

TEST_CASE("products of irreps, to third order") {
    check_operation("fully connected", tensor_product(fully_connected("2x0e+2x1o", "0e+1o", "2x0e+2x1o")));
    check_operation("full", tensor_product(full_product("2x0e+1o", "0e+2x1o")));
    check_operation("element-wise", tensor_product(elementwise_product("2x0e+2x1o", "2x1o+2x2e")));
    check_operation("square", tensor_square("3x0e+2x1o"));
    check_operation("square to irreps", tensor_square("2x0e+2x1o", "2x0e+2e"));
    check_operation("convolution", convolution("3x0e+2x1o", "0e+1o+2e", "0e+1o"));
}

TEST_CASE("linear maps, rotations, copies and pooling, to third order") {
    LinearOptions species;
    species.rows = "node";
    species.indices = {{"species", "node", "element", false}};
    species.weights.rows = species.bias.rows = row_of("species");
    species.biases = {0};
    check_operation("linear by species", linear("3x0e+2x1o", "2x0e+2x1o", species));
    check_operation("rotation", rotation("2x0e+1o+2x2e"));
    check_operation("layout change", layout_change("2x1o+3x0e", Layout::mul_ir, Layout::ir_mul));
    check_operation("pooling", pool_rows({{2, 3, {}}}));
    check_operation("broadcast", broadcast_rows({{2, 3, {}}}));
}

TEST_CASE("harmonics and powers, to third order") {
    check_operation("harmonics", spherical_harmonics("0e+1o+2e+3o+4e"));
    check_operation("normalised harmonics", normalized_harmonics("0e+1o+2e+3o"), 1e-10L);
    check_operation("symmetric contraction", symmetric_contraction("2x0e+2x1o+2x2e", "2x0e+2x1o", 3));
}

TEST_CASE("gates, norms and radial networks, to third order") {
    const Activation silu{Function{FunctionKind::silu, 0}, 1.2}, tanh{Function{FunctionKind::tanh, 0}, 0.9};
    check_operation("gate", gate("3x0e+0o", {silu, tanh}, "3x0e", {silu}, "2x1o+2e"));
    check_operation("norm", norm("2x1o+2x0e+2e+0o"), 1e-10L);
    check_operation("norm of scalars", norm("2x0e+0o"), 1e-10L);
    NormActivationOptions with_bias;
    with_bias.bias = true;
    check_operation("norm activation", norm_activation("0o+2x1o+2e+2x0e", silu, with_bias), 1e-10L);
    check_operation("layer norm", layer_norm("3x0e+2x1o+2e"), 1e-10L);
    RadialOptions radial;
    radial.basis_size = 3;
    radial.hidden = {4, 3};
    radial.outputs = 5;
    check_operation("bessel", radial_network(radial));
    radial.basis = RadialBasis::gaussian;
    check_operation("gaussian", radial_network(radial));
    radial.from_vectors = true;
    check_operation("of vectors", radial_network(radial), 1e-10L);
}
