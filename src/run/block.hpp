#pragma once
// The contract between the CPU executor and its kernels. The executor walks the iteration space in blocks of consecutive rows and hands
// every kernel pointers to the rows of each operand; a kernel adds its paths' terms. Everything that is not arithmetic stays in the
// executor: gathers, strides, masks, layouts, dtypes, threads, partial sums, zeroing.
//
// What a kernel may rely on:
// - Rows are in ir_mul layout (component outer, channels contiguous) in the compute type T; the executor stages rows that are stored
// otherwise. Operands that a kernel takes as they are stored (Kernel::as_stored) stay in mul_ir.
// - inputs[o][r] / outputs[o][r] for operand o of the polynomial, r < rows. Pointers are aligned to sizeof(T) only.
// - Pointers of different rows may be equal (gathers, shared operands, a receiver's output). Equal output pointers need sums: rows are to
// be
//   added in increasing order. For sorted outputs equal pointers are neighbours, so sums can stay in registers over a run of them.
// - Masked rows do not appear in a block. Outputs addressed by `each` are zero before the first kernel runs, except the segments that a
//   kernel overwrites (it is the only writer and stores instead of adding). A row of a sorted output is zero before its first row of the
//   iteration, except where a kernel overwrites all its segments: that one stores what the row marked in `begins` gives, and then adds.
// - scratch is 64-byte aligned, `scratch_bytes` long, private to the running thread; `prepared` is what prepare() made in this launch.
#include <cstddef>
#include <cstdint>

namespace clebsch {

/// Rows that the next block reads or writes, or that are written once complete. A kernel may ask for them a little at a time while it
/// computes (run/kernels/ahead.hpp), so that their way through the caches overlaps with the arithmetic; the executor asks for what a block
/// leaves.
struct Ahead {
    struct Piece {
        const std::byte* at = nullptr;
        std::int64_t bytes = 0, stride = 0, rows = 0;  ///< packed rows are one long row
    };
    Piece* piece = nullptr;  ///< [pieces], the first with the least left
    int pieces = 0;
    std::int64_t taken = 0;  ///< bytes of the first piece's first row
    std::int64_t lines = 0;  ///< of all pieces at the start
};

template <class T>
struct Block {
    int rows = 0;
    const T* const* const* inputs = nullptr;  ///< [operand][row]; null for outputs
    T* const* const* outputs = nullptr;       ///< [operand][row]; null for inputs
    const std::uint8_t* const* begins =
        nullptr;  ///< [operand][row], for sorted outputs that a kernel overwrites: 1 where an output's row begins
    std::byte* scratch = nullptr;
    const std::byte* prepared = nullptr;
    Ahead* ahead = nullptr;  ///< null: nothing to ask for
};

}  // namespace clebsch
