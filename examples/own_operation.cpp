// An operation of one's own, in a page: dipoles in a field. Every row has 4 dipoles (4x1o) and one field vector (1x1o); the operation gives
// the torque on each dipole (its cross product with the field, a pseudovector) and their weighted energy. The coefficients are written
// here, not taken from a table. Only the installed header is used.
//
// In this repository, after ./dev build: ninja -C build/release example_own_operation && build/release/examples/example_own_operation
// Installed: c++ -std=c++20 own_operation.cpp $(pkg-config --cflags --libs clebsch)
#include <clebsch/clebsch.hpp>
#include <cmath>
#include <cstdio>

// Operands, then paths: which segments meet, how their channels do (u keeps the dipoles apart for the torques; the energy lacks it, so that
// it sums them with weights), and sparse coefficients {shape; component of dipole, component of field, component of output: value, ...}.
// docs/text.md is the grammar.
const char* const dipoles_in_a_field = R"(
    clebsch polynomial 0
    basis e3nn-0.5
    rows row
    input dipoles: 4x1o mul_ir @ each
    input field: 1x1o mul_ir @ each
    input weights: 4x(1) mul_ir @ shared
    output out: 4x1e+1x0e mul_ir @ each
    path u=4: out.0[u|k] +=
        {3,3,3; 0,1,2: 1; 1,2,0: 1; 2,0,1: 1; 1,0,2: -1; 2,1,0: -1; 0,2,1: -1}[i,j,k] * dipoles.0[u|i] * field.0[|j]
    path u=4: out.1[|k] += -1 * {3,3,1; 0,0,0: 1; 1,1,0: 1; 2,2,0: 1}[i,j,k] * dipoles.0[u|i] * field.0[|j] * weights.0[u]
)";

int main() {
    const clebsch::Operation operation(dipoles_in_a_field);

    // Its derivative is an operation again: cotangents in, gradients out. So is the derivative of that.
    const clebsch::Operation gradient = operation.vjp({"dipoles", "field", "weights"});
    std::printf("%s\n%s\n", operation.text().c_str(), gradient.text().c_str());

    // A plan runs it on this machine; here on two rows. The reference, slow and in extended precision, says what comes out.
    std::vector<double> dipoles(2 * 12), field{0.5, -1.0, 2.0, 1.5, 0.25, -0.75}, weights(4, 1.0), out(2 * 13), exact(2 * 13);
    for (std::size_t i = 0; i < dipoles.size(); ++i) dipoles[i] = std::sin(1.0 + static_cast<double>(i));
    const clebsch::Rows rows{{"row", 2}};
    const clebsch::Arrays inputs{{"dipoles", dipoles}, {"field", field}, {"weights", weights}};
    const clebsch::Plan plan(operation, CLEBSCH_FLOAT64);
    plan.run(rows, inputs, {}, {{"out", out}});
    clebsch::evaluate_reference(operation, rows, inputs, {}, {{"out", exact}});
    double error = 0;
    for (std::size_t i = 0; i < out.size(); ++i) error = std::fmax(error, std::fabs(out[i] - exact[i]));
    for (std::size_t u = 0; u < 4; ++u) {
        const double *d = &dipoles[3 * u], *torque = &out[3 * u];
        std::printf("dipole %zu: torque (% .4f, % .4f, % .4f), torque . dipole = % .0e\n", u, torque[0], torque[1], torque[2],
                    torque[0] * d[0] + torque[1] * d[1] + torque[2] * d[2]);
    }
    std::printf("energy of row 0: % .6f; largest difference to the reference: %.0e\n", out[12], error);

    // The gradient of row 0's energy.
    std::vector<double> cotangent(out.size()), force(dipoles.size()), field_gradient(field.size()), weights_gradient(weights.size());
    cotangent[12] = 1;
    clebsch::Arrays given = inputs;
    given.emplace("out_cotangent", cotangent);
    clebsch::Plan(gradient, CLEBSCH_FLOAT64)
        .run(rows, given, {}, {{"dipoles_gradient", force}, {"field_gradient", field_gradient}, {"weights_gradient", weights_gradient}});
    std::printf("its gradient to dipole 0: (% .4f, % .4f, % .4f), which is minus the field\n", force[0], force[1], force[2]);
    return error < 1e-15 && force[0] == -0.5 && force[1] == 1.0 && force[2] == -2.0 ? 0 : 1;
}
