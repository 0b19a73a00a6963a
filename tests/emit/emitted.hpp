#pragma once
// Emitted kernels compiled as host C++ and run on the reference's inputs: all of a test's kernels in one library, so that the host compiler
// runs once.
#include <string>
#include <vector>

#include "describe/reference.hpp"
#include "emit/kernels.hpp"
#include "schedule/gpu_matrix.hpp"

namespace clebsch::testing {

/// Whether there is a host compiler (c++); says so if not.
bool has_host_compiler();

/// Outputs of every problem on its inputs, in float64 arithmetic and, unless a case says otherwise, storage. Throws Error with the
/// compiler's words, or when threads wait for one another for ever.
struct EmittedCase {
    Polynomial polynomial;
    ReferenceInputs inputs;
    std::string schedule;
    bool aligned = false;  ///< whether rows count as aligned, so that the copy engine takes them
    bool ordered = false;  ///< whether sums have a fixed order, in passes as gpu::PolynomialPlan runs them
    /// Of every operand, not float16; outputs that are added to stay in float64. Empty: float64 all.
    std::vector<GpuNumber> storage = {};
    std::int64_t gap = 0;       ///< numbers between two rows of an input
    SpareRegisters spare = {};  ///< of every kernel
};
std::vector<std::map<std::string, ReferenceArray>> run_emitted(const std::vector<EmittedCase>& cases);

/// The same for programs, step by step as gpu::ProgramPlan runs them. `tiles`: which matrix products run by.
struct EmittedProgram {
    Program program;
    ReferenceInputs inputs;
    std::vector<MatrixTile> tiles = matrix_tiles(GpuNumber::float64, MatrixRows::many);
    bool halves = false;  ///< where they can run by half-precision parts they do
    std::vector<GradientTile> gradient_tiles = clebsch::gradient_tiles(GpuNumber::float64);
    std::int64_t chunk = 17;  ///< rows that a block of weights' gradients sums
};
struct EmittedProgramResult {
    std::map<std::string, ReferenceArray> outputs;
    int tapes = 0, matrices = 0, halves = 0, gradients = 0, polynomials = 0, chains = 0;
};
std::vector<EmittedProgramResult> run_emitted(const std::vector<EmittedProgram>& cases);

/// Of every index that should ascend: whether the look at it (emit_ascending) filled the outputs of a launch with NaN. Throws Error where
/// only some numbers are, or what is between an output's rows.
struct AscendingCase {
    std::vector<std::int64_t> index;
    std::int64_t rows = 0;  ///< that it leads to
    bool wide = true;       ///< int64; else int32
};
std::vector<bool> shown_as_nan(const std::vector<AscendingCase>& cases);

}  // namespace clebsch::testing
