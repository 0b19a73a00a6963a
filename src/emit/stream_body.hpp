#pragma once
// What one consumer warp of a stream kernel does, as straight-line code with literal coefficients.
#include <map>
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

/// A StreamShare with what it keeps in registers while the receiver stays.
struct BodyShare {
    int blocks = 0;  ///< of 32 channels, from the body's first share on
    std::vector<int> paths;
    std::vector<bool> partial;  ///< per path: whether some lanes of the warp are beyond its channels
    std::vector<SegmentName> constants, sums;
    std::map<SegmentName, int> parked;  ///< constants in shared memory: numbers of a lane that the warp has parked before them
    /// Constants are loaded times these numbers, one per component, and sums are multiplied by them when stored: most coefficients are
    /// +-1 then and need no multiplication in the rows.
    std::map<SegmentName, std::vector<double>> scales;
    friend bool operator==(const BodyShare&, const BodyShare&) = default;
};

struct StreamBody {
    std::vector<BodyShare> shares;
    friend bool operator==(const StreamBody&, const StreamBody&) = default;
};
StreamBody stream_body(const GpuProblem& problem, const StreamSchedule& schedule, const std::vector<StreamShare>& shares);

/// Declares registers of the constants that are not parked, and of the sums.
void write_declarations(SourceText& source, const GpuProblem& problem, const StreamBody& body);
/// Loads the constants of row `target` (shared operands: of row 0) and clears the sums. Here and below `channel` (of the first share),
/// `lane`, for mul_ir outputs `turn` (the warp's piece of shared memory) and `parked`, if anything is (the lane's numbers, 32 apart), are
/// variables.
void write_start(SourceText& source, const GpuProblem& problem, const StreamBody& body);
/// Stores the sums to row `target`, adds them to it, or stores them as part `info.part` of them; `either`: the one or the other, as the
/// flags say, for outputs that are stored in the compute type.
enum class StreamSums : std::uint8_t { stored, added, part, either };
void write_flush(SourceText& source, const GpuProblem& problem, const StreamBody& body, StreamSums way);
/// Bytes from channel to channel in what the body reads and writes in a stage, each once.
std::vector<int> lane_steps(const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body);
/// One row: reads the stage at address `stage`, adds to the sums, stores, adds and reduces what belongs to the row described by `info`.
/// lane_BYTES are variables, so many times the channel for each of lane_steps, and `partial` is the warp's partial sums; of a frugal
/// schedule `found` is the thread's place and `found_channel` its channel instead.
void write_row(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body);

}  // namespace clebsch
