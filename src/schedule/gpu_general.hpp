#pragma once
// The GPU schedule that takes every polynomial: each number of an output has one owner, a thread or a warp, that walks rows and contracted
// letters. Owners of summed rows flush by atomic addition when the row changes, so sorted and unsorted indices take the same code; sums in
// a fixed order (GpuProblem::ordered) are kept as parts instead where an owner's rows begin and end.
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// One range of components of one output segment.
struct GeneralJob {
    int operand = 0, segment = 0;
    int first_component = 0, components = 0;
    std::vector<int> paths;     ///< that write there
    std::int64_t channels = 0;  ///< flat channels of the segment
    int lanes = 1;              ///< neighbouring threads with neighbouring channels; a power of two
    bool reduced = false;       ///< a warp shares a channel: its lanes divide the longest contracted letter and add up
};

/// How the rows of an output follow from iteration rows.
enum class RowSum : std::uint8_t {
    own,     ///< row i: stored once
    run,     ///< through indices: summed while it stays the same, then added
    single,  ///< one row
};

struct GeneralSchedule {
    static constexpr int threads = 128;
    static constexpr int run_rows = 16;     ///< most consecutive rows one owner walks for `run` outputs (general_run)
    static constexpr int most_terms = 192;  ///< written out in a job; longer paths loop over a table
    std::vector<GeneralJob> jobs;
    std::vector<RowSum> sums;  ///< of every operand (own for inputs)
    bool ordered = false;      ///< sums have a fixed order
};

GeneralSchedule schedule_general(const GpuProblem& problem);

/// Rows that an owner of a `single` output walks, so that the machine is filled and few atomic additions remain; of a `run` output, too,
/// where sums have a fixed order.
std::int64_t general_chunk(std::int64_t rows, bool ordered);
/// Rows that an owner of a `run` output walks where sums have any order.
std::int64_t general_run(std::int64_t rows);
/// Throws Error(unsupported) when the grid would be too large.
LaunchShape general_shape(const GeneralSchedule& schedule, std::int64_t rows);

std::string explain(const GeneralSchedule& schedule, const GpuProblem& problem);

/// Entries of a path's coefficients per component of its output, zero entries left out: [component].
std::vector<std::vector<CoefficientEntry>> entries_by_component(const Polynomial& polynomial, const Path& path);

}  // namespace clebsch
