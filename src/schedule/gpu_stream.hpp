#pragma once
// The GPU schedule of channel-wise polynomials (convolutions, tensor products with channel-free operands, all their derivatives): a block
// walks rows that share a receiver, a producer warp copies each row's data into shared memory ahead of time, consumer warps hold one
// channel per lane, keep what belongs to the receiver in registers and run straight-line code with literal coefficients once per row.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// How an operand's numbers meet the consumers.
enum class StreamWay : std::uint8_t {
    unused,
    staged,       ///< input of each row, or gathered: copied into shared memory by the producer
    constant,     ///< input of the stationary row (or shared): in registers while the receiver stays
    accumulated,  ///< output of the stationary row: summed in registers, stored once
    stored,       ///< output of each row with channels: stored from registers
    scattered,    ///< output through another index: added atomically
    reduced,      ///< output of each row without channels: summed over lanes, then over warps by the producer
};

struct StreamOperand {
    StreamWay way = StreamWay::unused;
    int stage_offset = 0;  ///< staged: bytes from the start of a stage; reduced: numbers from the start of a warp's partial sums
    bool kept = false;     ///< gathered: other blocks will want these rows too, so the second-level cache should keep them
};

struct StreamSchedule {
    int channels = 0;                      ///< largest number of any path
    int channel_warps = 0;                 ///< warps side by side over the channels
    std::vector<std::array<int, 3>> axes;  ///< of every path: the factor on the axis of the first, second and third irrep; -1: none
    std::vector<std::vector<int>> groups;  ///< paths of each group of such warps; groups share the staged rows
    std::vector<StreamOperand> operands;
    std::vector<std::string> stationary;  ///< indices of the row that stays, first applied first; empty: every row for itself
    int stages = 0, stage_bytes = 0;
    int partial_numbers = 0;     ///< reduced outputs: numbers of a row
    int turn_numbers = 0;        ///< mul_ir outputs: numbers of a warp that are turned in shared memory, so that it stores runs
    int teams = 1;               ///< of a block: each a producer and its consumers, with chunks and stages of its own
    int producer_warps = 1;      ///< one for every team, rounded up to a whole warp group where registers move
    int producer_registers = 0;  ///< that producers keep where registers move
    int consumer_registers = 0;  ///< that warps claim from the producers (sm_90 and newer); 0: all have the same
    int blocks = 1;              ///< per multiprocessor
    int team_bytes = 0;          ///< of shared memory
    int live_numbers = 0;        ///< registers' worth of numbers that live through the loop in the fullest group
    bool cuts = false;           ///< a receiver with very many rows may be divided among blocks and added atomically

    /// Bytes from the start of a team's shared memory to where warps turn outputs.
    int turn_offset(int number_bytes) const { return team_bytes - turn_numbers * consumer_warps() * number_bytes; }
    int consumer_warps() const { return channel_warps * static_cast<int>(groups.size()); }  ///< of a team
    int threads() const { return 32 * (producer_warps + teams * consumer_warps()); }
    int shared_bytes() const { return teams * team_bytes; }
};

/// Nothing when the polynomial is not of this kind or does not fit; `why_not` then says why.
std::optional<StreamSchedule> schedule_stream(const GpuProblem& problem, std::string& why_not);

/// Rows that one team takes at a time: about a receiver's.
std::int64_t stream_chunk(const StreamSchedule& schedule, std::int64_t rows, std::int64_t stationary_rows);

std::string explain(const StreamSchedule& schedule, const GpuProblem& problem);

}  // namespace clebsch
