#pragma once
// Where the intermediates of a program lie. Decided once, for any number of rows. Internal to run/.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "run/program_step.hpp"

namespace clebsch {

/// Every row space has a region of its own, of peak_bytes[space] for every row (rows are rounded up to 16). A value takes the same part of
/// every row's share: it is an array that begins at rows x offset. Values whose lives do not overlap share memory.
struct ProgramMemory {
    struct Place {
        bool own = false;             ///< whether the value is an intermediate with memory here
        int space = -1;               ///< -1: shared
        std::int64_t offset = 0;      ///< bytes per row before it; a multiple of 8
        std::int64_t row_stride = 0;  ///< numbers from row to row
    };
    std::vector<Place> places;              ///< of every value
    std::vector<std::int64_t> peak_bytes;   ///< per row of every space; last: shared
    std::vector<std::int64_t> total_bytes;  ///< the same without sharing memory

    /// Bytes of all regions but for what they are rounded up by, for any numbers of rows.
    double size(std::span<const std::int64_t> rows) const;
    /// Bytes of all regions. Throws Error when they exceed 2^63.
    std::size_t bytes(std::span<const std::int64_t> rows) const;
    /// Writes the position of every region: [spaces + 1].
    void regions(std::span<const std::int64_t> rows, std::size_t* begins) const;

    static std::int64_t padded(std::int64_t rows) { return (rows + 15) / 16 * 16; }
};

/// What one of several things that run one after another (groups, or the steps of a group) does with values.
struct ValueUse {
    std::vector<int> reads, writes;
};
/// A value lives from the use that writes it to the last one that reads it. Longest rows are placed first, each at the lowest free place.
/// `placed[v]`: value v is to have memory.
ProgramMemory plan_memory(const StepRequest& request, std::span<const ValueUse> uses, const std::vector<bool>& placed);

}  // namespace clebsch
