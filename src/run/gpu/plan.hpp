#pragma once
// A polynomial made ready to run on a GPU. Immutable, so that it may run in any number of threads and streams at once, each launch with a
// workspace of its own.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/program.hpp"
#include "emit/kernels.hpp"
#include "run/call.hpp"
#include "run/gpu/driver.hpp"
#include "schedule/estimate.hpp"
#include "schedule/gpu_order.hpp"

namespace clebsch::gpu {

struct PlanOptions {
    std::vector<DType> dtypes = {};     ///< storage of each operand, in their order; empty: float32 all
    std::optional<DType> compute = {};  ///< float32 or float64; default: float64 if every operand is stored so, else float32
    /// "": chosen; "stream" (in one kernel, or in many: "stream-whole", "stream-split"), "rows", "general", "table".
    std::string schedule = {};
    int device = 0;
    /// Every sum in one order, so that two launches give the same bits (schedule/gpu_order): sums through indices that are not sorted take
    /// a pass of their own over the rows in the order of these indices, which is found in every launch.
    bool deterministic = false;
    int blocks = 0, team_warps = 0, consumers = 0;  ///< for measurements (GpuProblem); 0: chosen
};

class PolynomialPlan {
 public:
    /// Validates, schedules, compiles (or finds compiled kernels) and loads. Throws Error: an invalid polynomial, a wrong number of dtypes,
    /// arithmetic in 16 bits, no driver, no compiler, no such GPU.
    explicit PolynomialPlan(Polynomial polynomial, const PlanOptions& options = {});
    ~PolynomialPlan();
    PolynomialPlan(PolynomialPlan&&) noexcept;
    PolynomialPlan& operator=(PolynomialPlan&&) noexcept;

    const Polynomial& polynomial() const;
    const std::vector<std::string>& spaces() const;  ///< row_spaces(polynomial())
    const std::vector<DType>& dtypes() const;
    DType compute() const;
    const Device& device() const;

    /// Device memory that a launch over these rows needs: sums of outputs that are stored otherwise than they are summed, parts of sums
    /// that several blocks share, the order of rows, messages.
    std::size_t workspace_bytes(std::span<const std::int64_t> rows) const;

    /// Puts the work on the stream: all buffers, indices and the workspace (at a multiple of `workspace_alignment`) are in this device's
    /// memory. Outputs are overwritten. Does not allocate (but for a list at the first call of a thread), wait, compile or copy, so it can
    /// be captured into a graph. Throws Error before anything is put there: see check_buffer; index arrays of the wrong length. Values of
    /// indices are checked by the kernels: one out of range counts as masked, and index_error() tells afterwards.
    void launch(const Call& call, Workspace workspace, Stream stream) const;

    /// Waits for the device; whether a launch since the last call met an index out of range, or a sorted one that decreases (what belongs
    /// to such rows is then not defined).
    bool index_error() const;

    Work work(std::span<const std::int64_t> rows) const;
    std::string explain() const;
    /// "stream", "rows" or "general"; "stream and general" or "rows and general" where passes differ; "table": on the kernel that was
    /// compiled with the library; "matrix": by the matrix products of programs (ProgramPlan).
    const char* schedule() const;
    /// Registers per thread and spilled bytes of every kernel.
    struct Resources {
        std::string kernel;
        int registers = 0, spill_bytes = 0;
    };
    std::vector<Resources> resources() const;

 private:
    struct Data;
    std::unique_ptr<const Data> data_;
};

/// Bytes of whose multiples a launch's workspace begins at one: what XLA's buffers have. Kernels need 16, full lines are faster.
constexpr std::size_t workspace_alignment = 128;
/// Throws Error when a launch's workspace is null, smaller than `needed` bytes or not at a multiple of `workspace_alignment`; none is
/// needed for 0.
void check_device_workspace(const Workspace& workspace, std::size_t needed);

/// What a plan with these options runs where paths have weight matrices that rows share: a program of matrix products
/// (with_matrix_products) over the polynomial's operands and rows. Nothing: its own kernels run.
std::optional<Program> matrix_program(const Polynomial& polynomial, const PlanOptions& options);

/// The emitter's name of a dtype, and of several.
GpuNumber number_of(DType dtype);
std::vector<GpuNumber> numbers_of(const std::vector<DType>& dtypes);
/// The problem the emitter is given for these options.
GpuProblem gpu_problem(const Polynomial& polynomial, const std::vector<DType>& dtypes, DType compute, const GpuTarget& target);
/// Of a pass over the rows: `dtypes` are those of the given polynomial's operands.
GpuProblem gpu_problem(const OrderedPass& pass, const std::vector<DType>& dtypes, DType compute, const GpuTarget& target, bool ordered);
/// Multiply-adds (of coefficients, without sharing) and bytes of a launch.
Work gpu_work(const Polynomial& polynomial, const std::vector<DType>& dtypes, std::span<const std::int64_t> rows);

}  // namespace clebsch::gpu
