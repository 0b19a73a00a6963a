// An operation of one's own, in a page: dipoles in a field. Every row has 4 dipoles (4x1o) and one field vector (1x1o); the operation gives
// the torque on each dipole (its cross product with the field, a pseudovector) and their weighted energy. The coefficients are written
// here, not taken from a table.
//
// After ./dev build: ninja -C build/release example_own_operation && build/release/examples/example_own_operation
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "describe/derivative.hpp"
#include "describe/operations/tensor_product.hpp"
#include "describe/reference.hpp"
#include "describe/text.hpp"

using namespace clebsch;

int main() {
    // 1. Coefficients: sparse entries {component of dipole, component of field, component of output}.
    const Coefficients cross = Coefficients::literal(
        {3, 3, 3}, {{{0, 1, 2}, 1}, {{1, 2, 0}, 1}, {{2, 0, 1}, 1}, {{1, 0, 2}, -1}, {{2, 1, 0}, -1}, {{0, 2, 1}, -1}});
    const Coefficients dot = Coefficients::literal({3, 3, 1}, {{{0, 0, 0}, -1}, {{1, 1, 0}, -1}, {{2, 2, 0}, -1}});

    // 2. Which segments meet, and how their channels do: uvu keeps the dipoles apart (torques), uvw sums them with weights (energy).
    const Irreps dipoles("4x1o"), field("1x1o"), output("4x1e+1x0e");
    TensorProductOptions options;
    options.irrep_normalization = IrrepNormalization::none;
    options.path_normalization = PathNormalization::none;
    options.x.name = "dipoles";
    options.y.name = "field";
    const Polynomial operation = tensor_product(
        dipoles, field, output, {{0, 0, 0, ChannelMode::uvu, false, 1.0, cross}, {0, 0, 1, ChannelMode::uvw, true, 1.0, dot}}, options);
    std::printf("%s\n", to_text(operation).c_str());

    // 3. Its derivative is an operation again: cotangents in, gradients out. So is the derivative of that.
    const std::vector<std::string> inputs = {"dipoles", "field", "weights"};
    const Polynomial gradient = vjp(operation, inputs);
    std::printf("%s\n", to_text(gradient).c_str());

    // 4. Evaluate both on two rows.
    ReferenceInputs call;
    call.rows["row"] = 2;
    for (int i = 0; i < 24; ++i) call.arrays["dipoles"].push_back(std::sin(1.0 + i));
    call.arrays["field"] = {0.5, -1.0, 2.0, 1.5, 0.25, -0.75};
    call.arrays["weights"] = {1, 1, 1, 1};
    const ReferenceArray out = evaluate(operation, call).at("out");
    const ReferenceArray& d = call.arrays["dipoles"];
    for (int u = 0; u < 4; ++u)
        std::printf("dipole %d: torque (% .4Lf, % .4Lf, % .4Lf), torque . dipole = % .1Le\n", u, out[3 * u], out[3 * u + 1], out[3 * u + 2],
                    out[3 * u] * d[3 * u] + out[3 * u + 1] * d[3 * u + 1] + out[3 * u + 2] * d[3 * u + 2]);
    std::printf("energy of row 0: % .6Lf\n", out[12]);

    call.arrays["out_cotangent"] = ReferenceArray(out.size(), 0);
    call.arrays["out_cotangent"][12] = 1;  // the gradient of row 0's energy
    const auto gradients = evaluate(gradient, call);
    const ReferenceArray& force = gradients.at("dipoles_gradient");
    std::printf("its gradient to dipole 0: (% .4Lf, % .4Lf, % .4Lf), which is minus the field\n", force[0], force[1], force[2]);
    return std::fabs(force[0] + 0.5L) + std::fabs(force[1] - 1.0L) + std::fabs(force[2] + 2.0L) < 1e-15L ? 0 : 1;
}
