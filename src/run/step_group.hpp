#pragma once
// Steps of a program that run together: parts of the iteration rows as for a polynomial by itself (run/workspace.hpp), each part in chunks
// of rows, each chunk through all steps before the next one. Values that only these steps use exist for one chunk at a time, in memory of
// the worker. Internal to run/.
//
// Chunks depend on the program alone and parts on the numbers of rows, so results are bitwise the same for any number of threads.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "run/program_memory.hpp"
#include "run/program_step.hpp"

namespace clebsch {

/// What the values of a chunk may take: they, what the kernels need beside them and the packed weights are to stay in the second-level
/// cache.
constexpr std::int64_t chunk_bytes = 512 * 1024;
constexpr std::int64_t least_chunk_rows = 48;  ///< and their unit: a multiple of what kernels work on (6, 8 and 16 rows)
constexpr std::int64_t most_chunk_rows = 480;

/// Immutable.
class StepGroup {
 public:
    /// `space`: position of the iteration space, -1: a single row. `inside[v]`: value v belongs to this space and no step outside uses it.
    /// `chunk_rows`: 0: by the rule above.
    StepGroup(const StepRequest& request, int space, std::vector<std::unique_ptr<ProgramStep>> steps, const std::vector<bool>& inside,
              std::int64_t chunk_rows);

    ValueUse use() const;  ///< values in memory that outlives a chunk
    const std::vector<std::unique_ptr<ProgramStep>>& steps() const { return steps_; }
    double multiply_adds(std::span<const std::int64_t> rows) const;
    std::string explain() const;

    /// Workspace of a launch, from a 64-byte aligned address. Throws Error when it exceeds 2^63.
    std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const;
    /// `values`: those inside have a dtype and a row stride but no data. `prepared`: what `prepare` made, or null.
    void launch(const Buffer* values, const IndexBuffer* indices, std::span<const std::int64_t> rows, std::byte* workspace,
                const ParallelFor& parallel_for, const std::byte* prepared) const;

    std::size_t prepared_bytes() const;  ///< of all steps, see ProgramStep
    void prepare(const Buffer* values, std::byte* prepared) const;

    /// Row strides of values inside.
    void describe_inside(Buffer* values) const;

 private:
    /// Where everything of a launch lies.
    struct Layout {
        Division division;
        Buffer* values = nullptr;      ///< [workers][values]: as chunks see them
        std::byte* memory = nullptr;   ///< [workers]: of values inside
        std::byte** states = nullptr;  ///< [steps]
    };
    Layout lay_out(std::span<const std::int64_t> rows, int threads, Arena& arena) const;
    void run_part(const GroupLaunch& launch, const Layout& layout, std::int64_t part, int worker) const;

    int space_;
    std::string space_name_;
    std::size_t value_count_;
    std::vector<std::unique_ptr<ProgramStep>> steps_;
    std::vector<int> inside_, rows_of_chunk_;  ///< values: inside; all that a chunk sees only its rows of
    ProgramMemory memory_;                     ///< of values inside
    std::vector<DType> dtypes_;
    std::vector<std::int64_t> sizes_;  ///< numbers per row of every value
    std::int64_t chunk_rows_ = 0;
    std::size_t scratch_bytes_ = 0;
    std::vector<int> border_chain_;
};

}  // namespace clebsch
