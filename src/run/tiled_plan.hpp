#pragma once
// One way to run a program: divided into groups, its steps made, its values placed. A plan has one or two of them. Internal to run/.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/program_memory.hpp"
#include "run/program_step.hpp"
#include "run/step_group.hpp"
#include "schedule/program_groups.hpp"
#include "schedule/program_order.hpp"

namespace clebsch {

/// Immutable.
class TiledPlan {
 public:
    /// `request`: without program; dtypes are those of the arguments, the program's inputs and then its outputs. `fuse`: nodes of a group
    /// may run as one step. `chunk_rows`: ProgramOptions.
    TiledPlan(TiledProgram tiled, const StepRequest& request, bool fuse, std::int64_t chunk_rows);
    TiledPlan(const TiledPlan&) = delete;
    TiledPlan& operator=(const TiledPlan&) = delete;

    /// Throws Error when it exceeds 2^63.
    std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const;

    std::size_t prepared_bytes() const;
    /// `arguments`: shared inputs have data.
    void prepare(std::span<const Buffer> arguments, std::byte* prepared) const;

    /// Call and workspace have been checked. `prepared`: null, or what `prepare` made.
    void run(const Call& call, const Workspace& workspace, const ParallelFor& parallel_for, const std::byte* prepared) const;

    double multiply_adds(std::span<const std::int64_t> rows) const;
    std::size_t steps() const;
    std::size_t groups() const { return groups_.size(); }
    std::string explain() const;
    /// What it was made of.
    const TiledProgram& division() const { return division_; }

 private:
    using Copies = std::vector<std::pair<int, int>>;  ///< of arguments: (argument, copy)

    std::size_t table_bytes() const {
        return round_up(program_.values.size() * sizeof(Buffer), 64) + round_up(memory_.peak_bytes.size() * sizeof(std::size_t), 64);
    }
    /// Steps of all groups, conversions of arguments before and after them, and where values lie.
    void make_groups(const StepRequest& request, const std::vector<std::vector<NodeGroup>>& tiles, const Copies& copies,
                     std::int64_t chunk_rows);
    void explain_values();

    TiledProgram division_;
    Program program_;  ///< of the division, with copies of arrays of other types
    std::vector<std::string> spaces_;
    std::vector<int> argument_values_;  ///< positions in program_.values: inputs, then outputs
    std::vector<StepGroup> groups_;
    std::vector<std::string> group_texts_;  ///< for explain: what is computed again
    std::string kept_text_;
    ProgramMemory memory_;
    std::vector<DType> value_dtypes_;
};

}  // namespace clebsch
