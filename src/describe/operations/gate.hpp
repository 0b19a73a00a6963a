#pragma once
// Gated nonlinearity: scalars through functions, everything else times activated scalars.
#include <string>
#include <vector>

#include "describe/operations/activation.hpp"

namespace clebsch {

struct GateOptions {
    std::string rows = "row";
    OperandOptions x = {"x"}, out = {"out"};  ///< rows: each
};

/// What a gate reads and writes; all groups are simplified first, as in e3nn.
struct GateIrreps {
    Irreps in;  ///< scalars, gates and gated, sorted (stable); blocks are split where gates and gated must align, not merged (in mul_ir the
                ///< same memory as e3nn's simplified irreps_in)
    Irreps out;  ///< activated scalars, then gated blocks times their gates
};
GateIrreps gate_irreps(const Irreps& scalars, const std::vector<Activation>& scalar_activations, const Irreps& gates,
                       const std::vector<Activation>& gate_activations, const Irreps& gated);

/// One activation per simplified block of scalars and of gates; as many gates as gated channels. An odd gate through an odd function flips
/// the parity of what it gates. Program: input x, output out. (nn.Gate)
Program gate(const Irreps& scalars, const std::vector<Activation>& scalar_activations, const Irreps& gates,
             const std::vector<Activation>& gate_activations, const Irreps& gated, const GateOptions& options = {});

}  // namespace clebsch
