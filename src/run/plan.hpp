#pragma once
// A polynomial made ready to run on the CPU: kernels chosen, operands' storage understood. Immutable, so that it may run in any number of
// threads at once, each launch with a workspace of its own.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"
#include "run/call.hpp"
#include "run/threads.hpp"
#include "schedule/cpu_target.hpp"
#include "schedule/estimate.hpp"

namespace clebsch {

struct PlanOptions {
    std::vector<DType> dtypes = {};     ///< storage of each operand, in their order; empty: float32 all
    std::optional<DType> compute = {};  ///< float32 or float64; default: float64 if every operand is stored so, else float32
    std::optional<InstructionSet> instruction_set = {};  ///< default: default_instruction_set()
    std::string family = {};                             ///< the only kernel family asked before `general`; empty: all
    bool checked = false;                                ///< the polynomial is known to be valid
};

struct PlanData;  // run/plan_data.hpp

class PolynomialPlan {
 public:
    /// Validates the polynomial and chooses kernels. Throws Error: an invalid polynomial, a wrong number of dtypes, a compute type that is
    /// not float32 or float64, an instruction set that cannot run here, an unknown family.
    explicit PolynomialPlan(Polynomial polynomial, const PlanOptions& options = {});
    ~PolynomialPlan();
    PolynomialPlan(PolynomialPlan&&) noexcept;
    PolynomialPlan& operator=(PolynomialPlan&&) noexcept;

    const Polynomial& polynomial() const;
    const std::vector<std::string>& spaces() const;  ///< row_spaces(polynomial())
    const std::vector<DType>& dtypes() const;
    DType compute() const;

    /// Workspace a launch over these rows needs when at most `threads` tasks run at once. Throws Error when `rows` does not fit the spaces,
    /// a number is negative, or the size exceeds 2^63.
    std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const;

    /// Writes the outputs. Results are bitwise the same for every parallel_for and every workspace. Allocates nothing after the first call
    /// of a thread, unless an array's address is no multiple of its element's size (run/realigned.hpp). Throws Error before anything is
    /// written: see check_index and check_buffer, overlapping buffers, a workspace that is null or smaller than workspace_bytes(call.rows,
    /// parallel_for.threads).
    void launch(const Call& call, Workspace workspace, const ParallelFor& parallel_for = {}) const;

    /// Multiply-adds and bytes of a launch over these rows (docs/limits.md); masks are not looked at. Throws Error as workspace_bytes.
    Work work(std::span<const std::int64_t> rows) const;

    /// Segments, kernels with the paths they took and why, how operands are staged.
    std::string explain() const;

    const PlanData& data() const;  ///< for programs, which run polynomials in turns (run/execute.hpp)

 private:
    std::unique_ptr<const PlanData> data_;
};

}  // namespace clebsch
