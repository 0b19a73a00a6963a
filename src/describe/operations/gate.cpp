#include "describe/operations/gate.hpp"

#include "base/error.hpp"
#include "describe/operations/products.hpp"
#include "describe/operations/program_builder.hpp"

namespace clebsch {
namespace {

/// Where everything lies in the sorted input.
struct GatePlan {
    GateIrreps irreps;
    std::vector<int> scalars, gates, gated;  // segments of the input
    std::vector<Activation> scalar_activations, gate_activations;
};

void check_scalars(const char* what, const Irreps& irreps, const std::vector<Activation>& activations) {
    for (const IrrepBlock& block : irreps)
        if (block.irrep.degree != 0) fail(std::string("gate: expected scalars as ") + what + ", got '" + to_text(irreps) + "'");
    if (activations.size() != irreps.size())
        fail(std::string("gate: expected one function per block of the ") + what + " '" + to_text(irreps) + "', got " +
             std::to_string(activations.size()));
}

GatePlan plan_gate(const Irreps& scalar_irreps, const std::vector<Activation>& scalar_activations, const Irreps& gate_scalars,
                   const std::vector<Activation>& gate_activations, const Irreps& gated_irreps) {
    const Irreps scalars = scalar_irreps.simplified(), gates = gate_scalars.simplified(), gated = gated_irreps.simplified();
    check_scalars("scalars", scalars, scalar_activations);
    check_scalars("gates", gates, gate_activations);
    if (gates.num_irreps() != gated.num_irreps())
        fail("gate: expected one gate per gated channel, got " + std::to_string(gates.num_irreps()) + " gates '" + to_text(gates) +
             "' for " + std::to_string(gated.num_irreps()) + " channels '" + to_text(gated) + "'");

    // Blocks of gates and gated are split until they align; a piece of the gates keeps the function of its block.
    GatePlan plan;
    plan.scalar_activations = scalar_activations;
    const ProductPlan aligned = elementwise_product(gated, gates);
    std::vector<IrrepBlock> out;
    for (std::size_t i = 0; i < scalars.size(); ++i)
        out.push_back({scalars[i].multiplicity, activated(scalars[i].irrep, scalar_activations[i])});
    std::size_t block = 0;
    std::int64_t left = gates.size() > 0 ? gates[0].multiplicity : 0;
    for (std::size_t i = 0; i < aligned.in2.size(); ++i) {
        while (left == 0) left = gates[++block].multiplicity;
        left -= aligned.in2[i].multiplicity;
        plan.gate_activations.push_back(gate_activations[block]);
        const Irrep gate = activated(aligned.in2[i].irrep, gate_activations[block]);
        out.push_back({aligned.in1[i].multiplicity, product(aligned.in1[i].irrep, gate).front()});
    }
    plan.irreps.out = Irreps(std::move(out));

    const Irreps::Sorted sorted = (scalars + aligned.in2 + aligned.in1).sorted();
    plan.irreps.in = sorted.irreps;
    std::size_t next = 0;
    for (auto [group, count] :
         {std::pair(&plan.scalars, scalars.size()), std::pair(&plan.gates, aligned.in2.size()), std::pair(&plan.gated, aligned.in1.size())})
        for (std::size_t i = 0; i < count; ++i) group->push_back(sorted.permutation[next++]);
    return plan;
}

}  // namespace

GateIrreps gate_irreps(const Irreps& scalars, const std::vector<Activation>& scalar_activations, const Irreps& gates,
                       const std::vector<Activation>& gate_activations, const Irreps& gated) {
    return plan_gate(scalars, scalar_activations, gates, gate_activations, gated).irreps;
}

Program gate(const Irreps& scalars, const std::vector<Activation>& scalar_activations, const Irreps& gates,
             const std::vector<Activation>& gate_activations, const Irreps& gated, const GateOptions& options) {
    const GatePlan plan = plan_gate(scalars, scalar_activations, gates, gate_activations, gated);
    ProgramBuilder program;
    const int x = program.input(options.x.name, options.rows, segments_of(plan.irreps.in), options.x.layout);

    std::vector<int> segments = plan.scalars;
    segments.insert(segments.end(), plan.gates.begin(), plan.gates.end());
    std::vector<Activation> activations = plan.scalar_activations;
    activations.insert(activations.end(), plan.gate_activations.begin(), plan.gate_activations.end());
    const ActivatedSegments active = activate_segments(program, x, segments, activations);

    Assembly assembly(program, options.rows, make_operand(options.out, segments_of(plan.irreps.out), Role::output));
    for (std::size_t i = 0; i < plan.scalars.size(); ++i) {
        const int scalar = assembly.operand(active.values[i]);
        add_path(assembly.polynomial, {{scalar, active.segments[i], "u", -1}, {0, static_cast<int>(i), "u", -1}}, Coefficients(),
                 activations[i].scale, {{'u', plan.irreps.out[i].multiplicity}});
    }
    for (std::size_t g = 0; g < plan.gated.size(); ++g) {
        const std::size_t i = plan.scalars.size() + g;
        const IrrepBlock& block = plan.irreps.out[i];
        const int gate_operand = assembly.operand(active.values[i]), x_operand = assembly.operand(x);
        add_path(assembly.polynomial,
                 {{gate_operand, active.segments[i], "u", -1}, {x_operand, plan.gated[g], "u", 0}, {0, static_cast<int>(i), "u", 1}},
                 Coefficients::identity(block.irrep.dim()), activations[i].scale, {{'u', block.multiplicity}});
    }
    return program.finish({assembly.finish()});
}

}  // namespace clebsch
