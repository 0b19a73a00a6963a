#pragma once
// What one consumer warp of a stream kernel does, as straight-line code with literal coefficients.
#include <string>
#include <vector>

#include "emit/text.hpp"
#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// A segment of an operand.
struct SegmentName {
    int operand = 0, segment = 0;
    friend auto operator<=>(const SegmentName&, const SegmentName&) = default;
};

/// The paths a warp runs, for its 32 channels from `first_channel` on; `lanes` per path may end within the warp.
struct StreamBody {
    std::vector<int> paths;
    std::vector<bool> partial;  ///< per path: whether some lanes of the warp are beyond its channels
    std::vector<SegmentName> constants, sums;
    friend bool operator==(const StreamBody&, const StreamBody&) = default;
};
StreamBody stream_body(const GpuProblem& problem, const StreamSchedule& schedule, int group, int warp);

/// Declares registers of the constants and sums.
void write_declarations(SourceText& source, const GpuProblem& problem, const StreamBody& body);
/// Loads the constants of row `target` (shared operands: of row 0) and clears the sums.
void write_start(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body);
/// Stores the sums to row `target`, or adds them. Here and below `channel`, `lane` and, for mul_ir outputs, `turn` (the warp's piece of
/// shared memory) are variables.
void write_flush(SourceText& source, const GpuProblem& problem, const StreamBody& body, bool adds);
/// One row: reads the stage, adds to the sums, stores, adds and reduces what belongs to the row.
void write_row(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body);

}  // namespace clebsch
