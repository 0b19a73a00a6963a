#pragma once
// The tensor product of two operands by instructions, with e3nn's channel modes, weights and normalisations.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algebra/irreps.hpp"
#include "algebra/wigner.hpp"
#include "describe/operations/path_builder.hpp"
#include "describe/polynomial.hpp"

namespace clebsch {

/// Which channels of the first operand (u), the second (v) and the output (w) meet. Multiplicities, and number of weights in C order:
///   uvw  m1, m2 -> mo         (m1, m2, mo)  always weighted      uvu  m1, m2 -> m1  (m1, m2)
///   uvv  m1, m2 -> m2         (m1, m2)                           uuw  m, m -> mo    (m, mo)    without weights mo = 1
///   uuu  m, m -> m            (m)                                uvuv m1, m2 -> m1 m2 (m1, m2)
///   uvu<v m, m -> m(m-1)/2    (m(m-1)/2)                         u<vw m, m -> mo    (m(m-1)/2, mo)  always weighted
enum class ChannelMode { uvw, uvu, uvv, uuw, uuu, uvuv, uvu_less_v, u_less_vw };
std::string to_text(ChannelMode mode);  // e3nn's: "uvu<v"
ChannelMode parse_channel_mode(std::string_view text);

/// One coupling of a segment of each input into a segment of the output; several into one output segment add up.
struct Instruction {
    int in1 = 0, in2 = 0, out = 0;
    ChannelMode mode = ChannelMode::uvw;
    bool weighted = true;
    double path_weight = 1.0;                       ///< >= 0; enters under a square root
    std::optional<Coefficients> coefficients = {};  ///< of one's own, axes (in1, in2, out) components, instead of wigner_3j
};
/// "0,0,0,uvu,weighted,1.0": in1, in2, out, mode, weighted|plain, path weight (optional); instructions separated by ";".
std::vector<Instruction> parse_instructions(std::string_view text);

/// component: outputs have components of variance 1; norm: norm 1; none: bare wigner_3j.
enum class IrrepNormalization { component, norm, none };
/// element: every term of a sum counts; path: every instruction counts alike; none.
enum class PathNormalization { element, path, none };

struct TensorProductOptions {
    IrrepNormalization irrep_normalization = IrrepNormalization::component;
    PathNormalization path_normalization = PathNormalization::element;
    SignTable signs = SignTable::e3nn_0_5;
    std::vector<double> in1_variances = {}, in2_variances = {}, out_variances = {};  ///< one per segment; empty: all 1
    std::string rows = "row";                                                        ///< name of the iteration space
    std::vector<Index> indices = {};                                                 ///< what indexed operands go through
    OperandOptions x = {"x"}, y = {"y"}, out = {"out"};
    /// One segment per weighted instruction, in their order, of as many channels as it has weights. shared_row(): one set of weights;
    /// each_row(): a set per row; row_of(...): e.g. per species.
    OperandOptions weights = {"weights", Layout::mul_ir, shared_row()};
};

/// Operands x, y, weights (when an instruction is weighted), out. Throws Error(invalid_argument) naming the instruction: segments out of
/// range, irreps that do not couple, multiplicities that do not fit the mode, a negative path weight. Formulas: e3nn, o3.TensorProduct (0.5
/// and newer).
Polynomial tensor_product(const Irreps& in1, const Irreps& in2, const Irreps& out, const std::vector<Instruction>& instructions,
                          const TensorProductOptions& options = {});

/// The same over plain segments: then every instruction brings its coefficients, or its three segments have irreps.
Polynomial tensor_product(const std::vector<Segment>& in1, const std::vector<Segment>& in2, const std::vector<Segment>& out,
                          const std::vector<Instruction>& instructions, const TensorProductOptions& options = {});

/// Factor of every instruction: sqrt(alpha out_variance path_weight / x), where alpha is 2l+1 of the output (component), the product of the
/// inputs' (norm) or 1, and x the variance that the sums into the output segment collect; x = 0 leaves the division out.
std::vector<double> path_coefficients(const std::vector<Segment>& in1, const std::vector<Segment>& in2, const std::vector<Segment>& out,
                                      const std::vector<Instruction>& instructions, const TensorProductOptions& options);

/// Number of weights of an instruction (whether or not it is weighted).
std::int64_t weight_count(ChannelMode mode, std::int64_t in1, std::int64_t in2, std::int64_t out);

}  // namespace clebsch
