#pragma once
// A program made ready to run on a GPU. Immutable, so that it may run in any number of threads and streams at once, each launch with a
// workspace of its own.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/program.hpp"
#include "run/call.hpp"
#include "run/gpu/driver.hpp"
#include "schedule/estimate.hpp"

namespace clebsch::gpu {

struct ProgramOptions {
    std::vector<DType> dtypes = {};     ///< storage of the inputs, then of the outputs, in their order; empty: float32 all
    std::optional<DType> compute = {};  ///< float32 or float64, also of intermediates; default: float64 if every array is, else float32
    int device = 0;
    /// What is computed again instead of being kept for a later part of the program (schedule/program_groups): true saves memory, false
    /// keeps all that costs a multiply-add.
    bool compute_again = true;
    /// Every sum in one order, so that two launches give the same bits (PlanOptions::deterministic of its polynomials).
    bool deterministic = false;
};

class ProgramPlan {
 public:
    /// Validates and simplifies the program, schedules its nodes, compiles what is in no cache and loads. Throws Error as PolynomialPlan
    /// does.
    explicit ProgramPlan(const Program& program, const ProgramOptions& options = {});
    ~ProgramPlan();
    ProgramPlan(ProgramPlan&&) noexcept;
    ProgramPlan& operator=(ProgramPlan&&) noexcept;

    const Program& program() const;                  ///< as it was given
    const std::vector<std::string>& spaces() const;  ///< row_spaces(program())
    const std::vector<DType>& dtypes() const;        ///< of the inputs, then of the outputs
    DType compute() const;
    const Device& device() const;

    /// Device memory that a launch over these rows needs: intermediates, of which those that are not needed at the same time share memory.
    std::size_t workspace_bytes(std::span<const std::int64_t> rows) const;

    /// Puts the work on the stream. Buffers (inputs, then outputs), indices and the workspace (at a multiple of `workspace_alignment`) are
    /// in this device's memory. Does not wait, compile, copy or allocate device memory, so it can be captured into a graph. Throws Error
    /// before anything is put there as PolynomialPlan does. Indices are checked by the kernels: one out of range counts as masked,
    /// index_error() tells afterwards.
    void launch(const Call& call, Workspace workspace, Stream stream) const;

    /// Several launches on a stream that records (CapturedWork), as if one came after the other: steps, those of different launches too,
    /// are recorded in the order their arrays demand, those that do not wait for one another side by side.
    struct Recorded {
        const ProgramPlan* plan;
        Call call;
        Workspace workspace;
    };
    static void record(std::span<const Recorded> launches, Stream stream);

    /// A launch that waits after every step, and what each took. For measurements.
    struct StepTime {
        std::string step;  ///< the first line of its explanation
        double milliseconds = 0;
    };
    std::vector<StepTime> time_steps(const Call& call, Workspace workspace, Stream stream) const;

    /// Waits for the device; whether a launch since the last call met an index out of range, or a sorted one that decreases.
    bool index_error() const;

    Work work(std::span<const std::int64_t> rows) const;
    std::size_t steps() const;
    /// Steps in order, what each runs, and the bytes of intermediates per row of every space.
    std::string explain() const;

 private:
    struct Data;
    template <class Around>
    void launch(const Call& call, Workspace workspace, Stream stream, Around around) const;
    std::unique_ptr<const Data> data_;
};

}  // namespace clebsch::gpu
