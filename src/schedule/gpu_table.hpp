#pragma once
// The schedule of the one kernel that is compiled with the library instead of for a description (emit/skeletons/table.cuh): a channel-wise
// polynomial as tables of paths, coefficients and places, which the kernel reads when it runs. For machines that have neither the run-time
// compiler nor prebuilt kernels of a description.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/gpu_general.hpp"
#include "schedule/gpu_kernel.hpp"

namespace clebsch {

struct TableSchedule {
    static constexpr int most_operands = 64, most_indices = 8, most_inputs = 8;  ///< what the kernel has room for (table.cuh)
    GeneralSchedule general;  ///< jobs of one component each, owned and summed as by the general kernel
    /// What the kernel reads, in 8-byte words: seven positions of the tables that follow, in the order of TableParts, and these tables.
    std::vector<std::int64_t> words;
};

/// Where tables begin in `words`. Their rows are the structs of table.cuh of the same names.
enum class TableParts : std::uint8_t { jobs, paths, factors, places, values, chains, types, count };

/// Nothing if the polynomial is not channel-wise (paths with one letter at most), is larger than the kernel's tables, or its sums are to
/// have a fixed order; `why_not` then says which.
std::optional<TableSchedule> schedule_table(const GpuProblem& problem, std::string& why_not);

std::string explain(const TableSchedule& schedule, const GpuProblem& problem);

}  // namespace clebsch
