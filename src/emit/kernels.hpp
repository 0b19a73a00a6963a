#pragma once
// Everything a polynomial needs on a GPU, as text: which schedule, which kernels in which order, and why. No device is needed.
#include <optional>
#include <string>
#include <vector>

#include "schedule/gpu_general.hpp"
#include "schedule/gpu_kernel.hpp"
#include "schedule/gpu_rows.hpp"
#include "schedule/gpu_table.hpp"
#include "schedule/stream_split.hpp"

namespace clebsch {

/// What one kernel of the sequence is, hence how it is launched.
enum class GpuStageKind : std::uint8_t { general_parts, general, rows, stream_cuts, stream_parts, stream, join, rounding };

struct GpuStage {
    GpuStageKind kind = GpuStageKind::general;
    KernelText kernel;
    int operand = -1;  ///< join, rounding: the output
    int stream = -1;   ///< stream, stream_cuts, stream_parts: which of the stream kernels
};

struct GpuKernels {
    std::vector<StreamKernel> streams;  ///< empty: another schedule
    std::optional<RowsSchedule> rows;
    std::optional<GeneralSchedule> general;
    std::optional<TableSchedule> table;  ///< the general schedule is its, and its kernels are compiled already
    std::vector<GpuStage> stages;        ///< in the order they run
    std::vector<bool> summed;            ///< per operand: an output that is added to and has to begin as zero
    std::vector<bool> cleared;           ///< per operand: an output with segments that no path writes, so that it has to begin as zero, too
    std::vector<bool> needs_sums;        ///< of those: stored otherwise than summed, so that the workspace holds the sums
    std::vector<bool> has_parts;         ///< per operand: an output parts of whose sums are in the workspace
    std::string explain;
};

/// `schedule`: "" chooses, "stream", "rows" and "general" force, "stream-whole" and "stream-split" force one kernel or as many as there can
/// be; "table": the kernel that was compiled with the library, which is never chosen. Throws Error(unsupported) when the forced one does
/// not take the polynomial, Error(invalid_argument) for another name. `spare`: of each stream kernel, or of the kernel of rows.
/// `chosen`: the stream kernels of an earlier call without it, if there were some, which are not looked for again.
GpuKernels gpu_kernels(const GpuProblem& problem, const std::string& schedule = "", const std::vector<SpareRegisters>& spare = {},
                       const std::vector<StreamKernel>& chosen = {});

/// Rows of a chunk, how many chunks and parts of sums there are, and how far from where a chunk would begin a change of the receiver is
/// looked for: `rows` of the iteration space, and of the row that stays with a stream kernel.
struct GpuChunks {
    std::int64_t rows = 1, count = 0, reach = 0;
    bool divided = true;  ///< receivers may be
    std::int64_t parts() const { return 2 * count; }
};
GpuChunks gpu_chunks(const GpuKernels& kernels, std::int64_t rows, std::int64_t stationary_rows, int multiprocessors);

/// Grid and block of a stage for chunks of so many rows. `stream_blocks`: of this stream kernel, that the machine takes at once; `numbers`:
/// of the output that is rounded or joined, in all its rows and in one. An empty grid: there is nothing to do.
LaunchShape gpu_shape(const GpuKernels& kernels, const GpuStage& stage, std::int64_t rows, const GpuChunks& chunks,
                      std::int64_t stream_blocks, std::int64_t numbers, std::int64_t row_numbers);

/// The text as the compiler gets it: the skeleton it stands on, then the kernel.
std::string full_text(const GpuStage& stage);

}  // namespace clebsch
