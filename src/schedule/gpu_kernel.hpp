#pragma once
// What a GPU kernel is asked to be and what it takes: shared by schedules, emitters and the code that launches.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"
#include "schedule/gpu_target.hpp"

namespace clebsch {

/// How numbers are stored in an operand, and what arithmetic runs in. The emitter's own list, so that it needs nothing of run/.
enum class GpuNumber : std::uint8_t { float32, float64, bfloat16, float16 };
constexpr int bytes_of(GpuNumber type) { return type == GpuNumber::float64 ? 8 : type == GpuNumber::float32 ? 4 : 2; }

/// What a kernel is made again with because the compiler spilled.
struct SpareRegisters {
    bool frugal = false;  ///< consumers of a stream kernel keep nothing from row to row that they can find out again
    /// Registers beyond what it is thought to need: fewer than `least` were not enough, `wanted` are, as far as can be told. 0: nothing is
    /// known.
    int least = 0, wanted = 0;
    friend bool operator==(const SpareRegisters&, const SpareRegisters&) = default;
};

/// A polynomial with the storage of its operands.
struct GpuProblem {
    Polynomial polynomial;
    std::vector<GpuNumber> storage;          ///< one per operand
    GpuNumber compute = GpuNumber::float32;  ///< float32 or float64
    GpuTarget target;
    int blocks = 0;      ///< for measurements: stream kernels of so many blocks per multiprocessor, one team each; 0: chosen
    int team_warps = 0;  ///< for measurements: one block per multiprocessor with so many consumer warps on each scheduler; 0: chosen
    bool fixed_registers = false;  ///< all warps of a stream kernel have the same number of registers
    int consumers = 0;             ///< for measurements: stream kernels with so many consumer warps a team; 0: chosen
    SpareRegisters spare = {};     ///< of a stream kernel's consumers, of threads of a kernel of rows
    /// Sums have one order, so that two runs give the same bits. All sums are then through one chain of sorted indices, or into one row
    /// (schedule/gpu_order).
    bool ordered = false;
    /// For compute-sanitizer's racecheck, which follows barriers lane by lane: every lane of a warp arrives and waits, not one for all.
    bool lanes_arrive = false;
    /// Outputs through indices of which every row of the iteration space gets a row of its own, to be summed later; empty: none.
    std::vector<bool> messages = {};
    /// Whether the paths are some of a polynomial's, so that other kernels write what these do not; and, per operand then, whether an
    /// earlier kernel has stored this channel-free output, so that numbers are added to it.
    bool part = false;
    std::vector<bool> begun = {};

    bool is_message(std::size_t operand) const { return operand < messages.size() && messages[operand]; }
};

/// One 8-byte word of a kernel's arguments. `which`: the operand or index it belongs to.
struct KernelArgument {
    enum class Kind : std::uint8_t {
        data,          ///< address of an operand
        stride,        ///< elements from row to row of an operand
        sums,          ///< where an output is summed in the compute type: the operand itself if it is stored so, else the workspace
        sums_stride,   ///< elements from row to row there
        index,         ///< address of an index array
        index_rows,    ///< rows of the space an index leads to
        index_wide,    ///< whether an index is stored as int64 (else int32)
        rows,          ///< rows of the iteration space
        parts,         ///< parts of an output's sums in the workspace, in the compute type: rows 2 c and 2 c + 1 are of chunk c
        part_targets,  ///< which row of the output each part belongs to; -1: none
        part_count,    ///< how many parts there are: two for every chunk
        output_rows,   ///< rows of an output operand
        chunk,         ///< rows that one owner of sums walks
        reach,         ///< rows behind where a chunk would begin among which a change of the row that stays is looked for
        aligned,       ///< bit o: rows of operand o start at multiples of 16 bytes
        error,         ///< a flag in device memory: set when an index is out of range
        table,         ///< address of a table schedule's words
        constant,      ///< `which` itself
    };
    Kind kind = Kind::data;
    int which = -1;
};

/// Grid, block and dynamic shared memory of one launch.
struct LaunchShape {
    std::array<std::int64_t, 2> grid{1, 1};
    int threads = 128;
    int shared_bytes = 0;
};

/// A kernel as text: one extern "C" function called `name`.
struct KernelText {
    std::string name;
    std::string text;
    std::vector<KernelArgument> arguments;
};

}  // namespace clebsch
