#pragma once
// Asking for the memory that comes next while computing.
#include "run/block.hpp"
#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {

/// Asks for the next `lines` cache lines.
inline void ask_for(Ahead& ahead, std::int64_t lines) {
    constexpr std::int64_t line = 64;
    while (lines > 0 && ahead.pieces > 0) {
        Ahead::Piece& piece = *ahead.piece;
        const std::int64_t left = (piece.bytes - ahead.taken + line - 1) / line, now = lines < left ? lines : left;
        const std::byte *at = piece.at + ahead.taken, *const end = at + now * line;
#pragma GCC unroll 4
        for (; at != end; at += line) __builtin_prefetch(at, 0, 2);
        lines -= now;
        ahead.taken += now * line;
        if (ahead.taken < piece.bytes) continue;
        ahead.taken = 0;
        piece.at += piece.stride;
        if (--piece.rows > 0) continue;
        ++ahead.piece;
        --ahead.pieces;
    }
}

/// Equal portions, one a turn; few lines are not worth asking for.
class Pace {
 public:
    Pace(Ahead* ahead, std::int64_t turns)
        : ahead_(ahead), portion_(ahead == nullptr || turns <= 0 ? 0 : (ahead->lines * unit + turns - 1) / turns) {}
    CLEBSCH_INLINE void turn(int turns = 1) {
        credit_ += turns * portion_;
        if (credit_ >= least * unit) take();
    }

 private:
    static constexpr std::int64_t unit = 256, least = 4;  ///< of a line, lines
    /// Not inlined: most turns take nothing, and loops have code of their own for many cases.
    [[gnu::noinline]] void take() {
        ask_for(*ahead_, credit_ / unit);
        credit_ %= unit;
    }
    Ahead* ahead_;
    std::int64_t portion_, credit_ = 0;
};

}  // namespace clebsch::CLEBSCH_ISA
