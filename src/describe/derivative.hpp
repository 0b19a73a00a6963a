#pragma once
// Derivatives as rewrites: polynomials to polynomials, programs to programs; any nesting, any order.
#include <span>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"
#include "describe/program.hpp"

namespace clebsch {

/// Reverse mode. Inputs of the result: the inputs of `polynomial` that still matter (in their order), then the cotangent of each output
/// that matters, named `<output>_cotangent`; outputs: `<input>_gradient` for every requested input, in the order asked. A gather becomes a
/// scatter: the gradient of an operand is addressed as the operand was. Names get further suffixes when taken again.
Polynomial vjp(const Polynomial& polynomial, std::span<const std::string> inputs);

/// Forward mode: derivative along `<input>_tangent` of the requested inputs; outputs `<output>_tangent`.
Polynomial jvp(const Polynomial& polynomial, std::span<const std::string> inputs);

Program vjp(const Program& program, std::span<const std::string> inputs);
Program jvp(const Program& program, std::span<const std::string> inputs);

/// The outputs of the program, then those of its vjp, from one pass: what a model's energy and forces are.
Program value_and_vjp(const Program& program, std::span<const std::string> inputs);

/// Merges paths that differ only in scale or literal coefficients, drops zero paths, orders identical factors, sorts paths; drops input
/// operands and indices nothing uses unless `keep_operands`.
Polynomial simplified(const Polynomial& polynomial, bool keep_operands = true);

/// Only these outputs; inputs nothing uses any more are dropped.
Polynomial only_outputs(const Polynomial& polynomial, std::span<const std::string> outputs);

}  // namespace clebsch
