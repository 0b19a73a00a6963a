#pragma once
// A program made ready to run on the CPU: nodes grouped into steps, intermediates placed in the caller's workspace. Immutable, so that it
// may run in any number of threads at once, each launch with a workspace of its own.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/program.hpp"
#include "run/call.hpp"
#include "run/plan.hpp"
#include "run/threads.hpp"
#include "schedule/program_groups.hpp"

namespace clebsch {

struct ProgramOptions {
    std::vector<DType> dtypes = {};     ///< storage of the inputs, then of the outputs, in their order; empty: float32 all
    std::optional<DType> compute = {};  ///< float32 or float64, also of intermediates; default: float64 if every array is, else float32
    std::optional<InstructionSet> instruction_set = {};  ///< default: default_instruction_set()
    std::string family = {};                             ///< the only kernel family asked before `general`; empty: all
    bool fuse = true;  ///< run nodes together, a few rows at a time, and those with few numbers per row as one step
    /// Bytes of what groups of nodes hand to one another up to which values are kept that are computed again for more rows, where keeping
    /// is faster. 0: never.
    std::int64_t keep_bytes = 64 * 1024 * 1024;
    /// A program of the same meaning, inputs, outputs and indices that runs instead of the given one for more rows than that.
    std::optional<Program> for_more_rows = {};
    int threads = 1;              ///< that plan, the caller's among them
    bool checked = false;         ///< the programs are known to be valid
    std::int64_t chunk_rows = 0;  ///< rows of a chunk of nodes that run together; 0: as many as stay in the cache (run/step_group.hpp)
};

/// Row spaces of a program: `from` and `to` of its indices, then the spaces of its values, then the iteration spaces of its polynomials,
/// each when first met; never "". This is the order of `Call::rows`.
std::vector<std::string> row_spaces(const Program& program);

class ProgramPlan {
 public:
    /// Validates and simplifies the program and plans its nodes; where there are two ways to run it, each when it is first asked for.
    /// Throws Error as PolynomialPlan does.
    explicit ProgramPlan(const Program& program, const ProgramOptions& options = {});
    ~ProgramPlan();
    ProgramPlan(ProgramPlan&&) noexcept;
    ProgramPlan& operator=(ProgramPlan&&) noexcept;

    const Program& program() const;                  ///< as it was given
    const std::vector<std::string>& spaces() const;  ///< row_spaces(program())
    const std::vector<DType>& dtypes() const;        ///< of the inputs, then of the outputs
    DType compute() const;

    /// Workspace of a launch over these rows when at most `threads` tasks run at once; fewer rows may need more (keep_bytes). Throws Error
    /// when `rows` does not fit the spaces, a number is negative, or the size exceeds 2^63.
    std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const;

    /// Writes the outputs. `call.buffers` are the inputs, then the outputs; `call.indices` those of the program; `call.rows` as spaces().
    /// Results are bitwise the same for every parallel_for and every workspace. Once workspace_bytes was asked for rows that run this way,
    /// allocates nothing, unless an array's address is no multiple of its element's size (run/realigned.hpp). Throws Error before anything
    /// is written: see check_index and check_buffer, an output that shares memory with another array, a workspace below workspace_bytes.
    /// `prepared`: null, or what this plan's `prepare` made from arrays with the same numbers; Error where these rows run another way.
    void launch(const Call& call, Workspace workspace, const ParallelFor& parallel_for = {}, const void* prepared = nullptr) const;

    /// Which of ways() runs over these rows.
    std::size_t way(std::span<const std::int64_t> rows) const;

    /// Weights that stay the same for many launches, arranged once as kernels want them, for all numbers of rows that run the same way as
    /// `rows`: launches of few rows would spend much of their time on it. Reads the shared inputs of the call (`buffers` as in a launch;
    /// others may be null), writes `bytes` >= prepared_bytes() to an address that is a multiple of 64. Throws Error for a shared input that
    /// does not fit, a null or misaligned address, too few bytes.
    std::size_t prepared_bytes(std::span<const std::int64_t> rows) const;
    void prepare(std::span<const std::int64_t> rows, std::span<const Buffer> buffers, void* prepared, std::size_t bytes) const;

    /// Of a launch over these rows: multiply-adds of all steps, arrays of the call.
    Work work(std::span<const std::int64_t> rows) const;

    /// Groups of steps in order, what each runs, what exists for a chunk of rows only, what is computed again, and the bytes of
    /// intermediates per row of every space.
    std::string explain() const;

    /// How the program is divided, with words for when it runs so ("" if always): one way, or that which keeps more and then that which
    /// computes more again (keep_bytes).
    struct Way {
        std::string when;
        const TiledProgram* division;  ///< the plan's
    };
    std::vector<Way> ways() const;

 private:
    struct Data;
    std::unique_ptr<const Data> data_;
};

}  // namespace clebsch
