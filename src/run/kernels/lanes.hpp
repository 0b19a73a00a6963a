#pragma once
// One row per vector lane: a tape of vector instructions over numbers that every row has for itself; made by schedule/lanes.cpp.
#include <cstdint>

#include "run/kernels/functions.hpp"
#include "run/kernels/instruction_sets.hpp"

namespace clebsch {

/// Instructions work on slots: arrays of one number for each row of a tile, in a scratch that stays in the first-level cache. A tape is a
/// list of 32-bit words, instruction after instruction; constants are a list of their own, taken in order.
enum class LanesOp : std::int32_t {
    end,        ///< end
    load,       ///< load, array, position, n, slots[n]: slot k = number position + k of every row
    broadcast,  ///< broadcast, array, position, n, slots[n]: the same of an array with one row
    store,      ///< store, array, position, n, slots[n]
    products,   ///< products, n, (d, a, b)[n]: d = a b
    combine,    ///< combine, d, constant?, n1, n2, n3, a[n1], (a, b)[n2], (a, b)[n3]: d = c + sum c a + sum c a b + sum a b; constants in
                ///< this order
    function,   ///< function, number in `functions`, d, a: d = f(a)
};

struct LanesTape {
    const std::int32_t* prologue = nullptr;  ///< run once
    const std::int32_t* body = nullptr;      ///< run for every tile
    const float* constants_float = nullptr;  ///< of the body
    const double* constants_double = nullptr;
    const FunctionCode* functions = nullptr;
};

/// Rows of an array: `base` + row x `stride` numbers, `rows` of them; or wherever `pointers` say.
template <class T>
struct LanesArray {
    T* base = nullptr;
    std::int64_t stride = 0;
    std::int64_t rows = 0;
    std::int64_t size = 0;
    T* const* pointers = nullptr;
    bool add = false;  ///< store: add to what is there, rows in increasing order (pointers may be equal)
};

/// Rows [begin, end). `scratch`: slots x lanes_tile numbers, 64-byte aligned.
CLEBSCH_PER_INSTRUCTION_SET(                                                                                                         //
    void run_lanes(const LanesTape& tape, const LanesArray<float>* arrays, float* scratch, std::int64_t begin, std::int64_t end);    //
    void run_lanes(const LanesTape& tape, const LanesArray<double>* arrays, double* scratch, std::int64_t begin, std::int64_t end);  //
    std::int64_t lanes_tile_bytes();)  ///< of one slot

}  // namespace clebsch
