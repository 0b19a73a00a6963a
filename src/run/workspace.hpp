#pragma once
// How the rows of a launch are divided into parts, and where everything a launch needs lies in its workspace. Internal to run/.
//
// Parts are ranges of consecutive iteration rows. They depend on the problem alone, never on the number of threads, and every sum has one
// order; so results are bitwise the same however parts are spread. A border moves to the next row of the largest sorted output if that is
// before the next border. Outputs:
// - each: a row belongs to one part.
// - sorted: rows of a part's own range are written in place. The first row, where the part before it has begun it, goes to the part's
// `head` row,
//   and heads are added in the order of the parts at the end: a row with any number of summands is spread over all parts.
// - others (scattered, shared): each part sums into an array of its own, added up in the order of the parts at the end.
#include <cstddef>
#include <cstdint>
#include <span>

#include "run/block.hpp"
#include "run/call.hpp"
#include "run/plan_data.hpp"
#include "run/threads.hpp"

namespace clebsch {

/// Takes aligned pieces of the workspace; without memory it only measures.
class Arena {
 public:
    static constexpr std::size_t alignment = 64;

    explicit Arena(std::byte* memory = nullptr) : memory_(memory) {}
    std::byte* take(std::int64_t count, std::size_t bytes);  ///< throws Error when the total exceeds 2^63
    template <class T>
    T* take(std::int64_t count) {
        return reinterpret_cast<T*>(take(count, sizeof(T)));
    }
    std::size_t used() const { return used_; }
    bool measuring() const { return memory_ == nullptr; }

 private:
    std::byte* memory_;
    std::size_t used_ = 0;
};

/// What decides how many parts are worth while; of everything that runs over the rows.
struct PartCosts {
    double work_per_row = 0;     ///< multiply-adds and numbers touched
    double numbers_per_row = 0;  ///< read or written
    double sums = 0;             ///< numbers every part has for sums of its own
    std::int64_t least_rows = 1;

    void add(const PartCosts& other);
};
PartCosts part_costs(const PlanData& plan, std::span<const std::int64_t> rows);
/// Depends on the problem alone. At least 1.
std::int64_t count_parts(const PartCosts& costs, std::int64_t rows);

/// How the rows of an iteration space are divided; what steps that run together share.
struct Division {
    std::int64_t rows = 0, parts = 1;
    int workers = 1;
    bool of_caller = false;           ///< operands lie where a caller has put them, at any address
    std::int64_t* borders = nullptr;  ///< [parts + 1]: first iteration row of each part
    std::byte** scratch = nullptr;    ///< [workers]: for whatever runs
};
/// Even parts, whose borders move to where the row of a chain of indices changes if that is before the next one. `chain` empty: even parts.
void find_borders(const Division& division, const IndexBuffer* indices, std::span<const int> chain);
/// Row of an operand that belongs to an iteration row; -1: none.
std::int64_t row_through(const IndexBuffer* indices, std::span<const int> chain, std::int64_t row);
/// The same for `count` iteration rows from `begin` on; whether all have one.
bool rows_through(const IndexBuffer* indices, std::span<const int> chain, std::int64_t begin, int count, std::int64_t* rows);

/// Where one operand's rows are found during a launch.
template <class T>
struct OperandState {
    enum class Way : std::uint8_t {
        stored,        ///< kernels work on stored rows (sorted outputs: except heads)
        staged_whole,  ///< inputs: all rows are converted (or moved to better addresses) once, before the first block
        staged,        ///< converted block by block
        partial,       ///< outputs: arrays of our own per part
    };
    Way way = Way::stored;
    std::byte* data = nullptr;  ///< as passed
    std::int64_t row_bytes = 0, rows = 0;
    T* own = nullptr;  ///< staged_whole, and where that may be worth while: [rows]; partial: [parts][rows], part 0 unused if stored; rows
                       ///< of `padded` numbers
    bool first_in_place = false;        ///< partial: part 0 sums into the output itself
    T* heads = nullptr;                 ///< sorted outputs: [parts]
    T* tails = nullptr;                 ///< staged sorted outputs: [parts], the last row a part has begun
    std::int64_t* before = nullptr;     ///< sorted outputs: [parts + 1], the last row begun before a part; -1: none
    std::int64_t* tail_row = nullptr;   ///< [parts], -1: none
    std::uint8_t* head_used = nullptr;  ///< [parts]
};

/// What one running task has to itself.
template <class T>
struct WorkerState {
    struct Run {  ///< of a sorted operand: the row at hand
        std::int64_t row = -1;
        T* numbers = nullptr;
        std::int64_t slot = 0;
        std::int64_t zeroed = 0;                  ///< rows of the part before this one are summed into or zero
        std::int64_t first_begun = 0, begun = 0;  ///< staged, in the block at hand: rows from the first that begins to the last
    };
    struct EachRows {  ///< of an operand seen row by row: where row `first` of the iteration lies
        std::byte* data = nullptr;
        std::int64_t first = 0;
    };
    const T*** inputs = nullptr;  ///< [operands] -> [block_rows]
    T*** outputs = nullptr;
    std::uint8_t** begins = nullptr;      ///< [operands] -> [block_rows]: see Block; null where the executor zeroes
    std::int64_t* iteration = nullptr;    ///< [block_rows]
    std::int64_t** chain_rows = nullptr;  ///< [chains] -> [block_rows]
    T** staging = nullptr;                ///< [operands] -> [block_rows + 1] rows
    Run* runs = nullptr;                  ///< [operands]
    EachRows* each = nullptr;             ///< [operands]
    Ahead::Piece* ahead = nullptr;        ///< [operands]: rows of the next block
    T* discard = nullptr;                 ///< a row for outputs that have no row
    std::byte* scratch = nullptr;
};

template <class T>
struct LaunchState {
    Division division;
    OperandState<T>* operands = nullptr;
    WorkerState<T>* worker = nullptr;      ///< [workers]
    const std::byte** prepared = nullptr;  ///< [kernels]
    std::byte** preparing = nullptr;       ///< [kernels]: the same, to write to
    bool is_prepared = false;              ///< nothing to write any more
    const T** shared_rows = nullptr;       ///< [operands]: the row kernels see, null if not a shared input
    T* zero = nullptr;                     ///< a row for inputs that have no row
};

/// Lays out a launch over divided rows. With a measuring arena nothing is written and the result's pointers mean nothing.
template <class T>
LaunchState<T> arrange(const PlanData& plan, std::span<const std::int64_t> rows, const Division& division, Arena& arena);

}  // namespace clebsch
