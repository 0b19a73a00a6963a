#pragma once
// The GPU schedule of channel-wise polynomials (convolutions, tensor products with channel-free operands, all their derivatives): a team of
// warps walks rows that share a receiver, its producer copies each row's data into shared memory ahead of time, consumers hold one
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
    stored,       ///< output of each row with channels
    scattered,    ///< output through another index: added to its row
    reduced,      ///< output of each row without channels: summed over lanes, then over warps by the producer
};

/// Neighbouring numbers of an operand's row that a kernel uses.
struct StreamRun {
    std::int64_t begin = 0;  ///< in the row
    std::int64_t place = 0;  ///< in a stage, from where the operand begins
    std::int64_t count = 0;
    friend bool operator==(const StreamRun&, const StreamRun&) = default;
};

struct StreamOperand {
    StreamWay way = StreamWay::unused;
    std::vector<StreamRun> runs = {};       ///< ascending
    std::vector<std::int64_t> places = {};  ///< of every segment in a stage, from where the operand begins; -1: not used
    int stage_offset = 0;  ///< staged, handed: bytes from the start of a stage; reduced: numbers from the start of a warp's partial sums
    bool kept = false;     ///< gathered: other blocks will want these rows too, so the second-level cache should keep them
    bool handed = false;   ///< stored, scattered: consumers leave the row in the stage and the producer stores or adds it as a whole
    int over = -1;         ///< handed: the staged input whose place in the stage it takes; -1: a place of its own
    bool carried = false;  ///< staged, without channels: its producer reads 32 rows at once, and lays them into stages in the compute type
    bool summed = false;   ///< added up in the compute type (KernelArgument::sums) before it is stored: scattered, or by several kernels

    std::int64_t numbers() const { return runs.empty() ? 0 : runs.back().place + runs.back().count; }  ///< of a row, that are used
};

/// A warp's work on 32 neighbouring channels.
struct StreamShare {
    int block = 0;           ///< channels 32 * block + lane
    std::vector<int> paths;  ///< ascending
    friend bool operator==(const StreamShare&, const StreamShare&) = default;
};

struct StreamSchedule {
    int channels = 0;                             ///< largest number of any path
    std::vector<std::array<int, 3>> axes;         ///< of every path: the factor on the axis of the first, second and third irrep; -1: none
    std::vector<std::vector<StreamShare>> warps;  ///< of a team: what each consumer does with every row
    std::vector<StreamOperand> operands;
    std::vector<std::string> stationary;  ///< indices of the row that stays, first applied first; empty: every row for itself
    int stages = 0, stage_bytes = 0;
    int partial_offset = 0;                   ///< of reduced outputs: bytes from the start of a stage
    int control_offset = 0;                   ///< of barriers and the row's description: likewise
    int partial_numbers = 0;                  ///< reduced outputs: numbers of a row
    std::vector<std::pair<int, int>> parked;  ///< inputs of the stationary row (operand, segment) that warps keep in shared memory
    int parked_numbers = 0;                   ///< of them: numbers of a lane in the warp with most
    int turn_numbers = 0;              ///< mul_ir outputs: numbers of a warp that are turned in shared memory, so that it stores runs
    int lag = 0;                       ///< rows between handing a row's outputs to the copy engine and filling its stage again
    int teams = 1;                     ///< of a block: each a producer and its consumers, with chunks and stages of its own
    int producer_warps = 1;            ///< one for every team, rounded up to a whole warp group where registers move
    int producer_registers = 0;        ///< that producers keep where registers move
    int consumer_registers = 0;        ///< that warps claim from the producers (sm_90 and newer); 0: all have the same
    int blocks = 1;                    ///< per multiprocessor
    int team_bytes = 0;                ///< of shared memory
    int spare_registers = 0;           ///< that a consumer has beyond what it is thought to need
    int live_numbers = 0;              ///< registers' worth of numbers that live through the loop in the fullest warp
    std::vector<double> instructions;  ///< of every warp, predicted for a row
    bool wide = false;                 ///< arithmetic in float64
    bool narrow = false;               ///< rows with channels are of 16-bit numbers, and nothing but sums leaves
    bool reloads = false;              ///< numbers without channels are read again for every segment on the first axis
    bool frugal = false;               ///< consumers keep nothing that they can find out again
    bool pinned = false;               ///< warp w of every team runs on scheduler w % 4
    bool cuts = false;                 ///< a receiver may be divided among blocks, whose sums are added atomically
    bool parts = false;                ///< those sums lie in the workspace instead, and are added in their order

    /// How an operand's numbers lie in a stage and arrive in memory: as they are stored, or in the compute type where the producer carries
    /// them there or they are added up.
    GpuNumber number_of(const GpuProblem& problem, std::size_t operand) const {
        return operands[operand].summed || operands[operand].carried ? problem.compute : problem.storage[operand];
    }
    /// Bytes from the start of a team's shared memory to the rows that its producer carries.
    int carried_offset() const { return stages * stage_bytes; }
    int carried_bytes(const GpuProblem& problem) const {
        int bytes = 0;
        for (const StreamOperand& operand : operands)
            bytes += operand.carried ? 32 * static_cast<int>(operand.numbers()) * bytes_of(problem.compute) : 0;
        return bytes;
    }
    /// Bytes from the start of a team's shared memory to where warps turn outputs.
    int turn_offset(int number_bytes) const { return team_bytes - turn_numbers * consumer_warps() * number_bytes; }
    /// Bytes from the start of a team's shared memory to what its warps parked: a row of 32 lanes for every number.
    int parked_offset(int number_bytes) const { return turn_offset(number_bytes) - 32 * parked_numbers * consumer_warps() * number_bytes; }
    bool is_parked(int operand, int segment) const;
    /// Whether two warps run the same code, maybe on other channels.
    bool same_code(std::size_t one, std::size_t other) const;
    int consumer_warps() const { return static_cast<int>(warps.size()); }  ///< of a team
    int threads() const { return 32 * (producer_warps + teams * consumer_warps()); }
    int shared_bytes() const { return teams * team_bytes; }
};

/// Nothing when the polynomial is not of this kind or does not fit; `why_not` then says why.
std::optional<StreamSchedule> schedule_stream(const GpuProblem& problem, std::string& why_not);

/// A stream kernel masks a whole row where one of its indices is -1, which only means the same where every path uses them all.
bool paths_use_the_same_indices(const Polynomial& polynomial);

/// Cycles of a multiprocessor for a row, as predicted: of two ways to compute the same, the one with fewer is taken.
double stream_cycles(const StreamSchedule& schedule, const GpuProblem& problem);
/// Those of them that the memory system takes for the row, however it is computed.
double stream_memory_cycles(const StreamSchedule& schedule, const GpuProblem& problem);

/// How rows are divided among teams.
struct StreamChunks {
    std::int64_t rows = 1;   ///< that a team takes at a time
    std::int64_t reach = 1;  ///< rows within which a chunk begins where the receiver changes, if it does there; else between rows of one
    bool divided = true;     ///< whether that may be, which costs a kernel: not where rows are few and receivers take no longer
};
/// About a receiver's rows at a time, of few rows a multiprocessor's share; as many chunks for every team where those are few.
StreamChunks stream_chunks(const StreamSchedule& schedule, std::int64_t rows, std::int64_t stationary_rows, int multiprocessors);

std::string explain(const StreamSchedule& schedule, const GpuProblem& problem);

}  // namespace clebsch
