// The interpreter of lanes tapes. A tile is eight vectors of rows, so that reading an instruction costs little and sums have eight
// independent accumulators. Rows are transposed on the way in and out, four (float64: two) numbers of every row at a time.
#include "run/kernels/lanes.hpp"

#include "run/kernels/transpose_parts.hpp"
#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

constexpr int tile_vectors = 8;
template <class T>
constexpr int tile = tile_vectors* lanes_of<T>;

// ---- rows in and out ----

/// Where rows of a tile are.
template <class T>
struct StridedRows {
    T* base;
    std::int64_t stride;
    T* operator()(int r) const { return base + r * stride; }
};
template <class T>
struct PointedRows {
    T* const* pointers;
    std::int64_t position;
    T* operator()(int r) const { return pointers[r] + position; }
};

/// Loads `numbers` (at most a block) of every row into `to`; rows below `whole` may be read as whole blocks, those from `rows` on repeat
/// the last.
template <class T, class Rows>
[[gnu::always_inline]] inline void load_block(const Rows& row, T* const* to, int numbers, int whole, int rows) {
    constexpr int n = block<T>, step = n * halves;
    int r = 0;
    for (; r + step <= whole; r += step) {
        BlockVector<T> v[n] = {};
#pragma GCC unroll 4
        for (int k = 0; k < n; ++k) v[k] = joined(load_half<T>(row(r + k)), load_half<T>(row(r + k + (halves == 2 ? n : 0))));
        transpose(v);
        // The first last: where there are fewer numbers than a block has, the others were written to its place.
#pragma GCC unroll 4
        for (int k = n - 1; k >= 0; --k) __builtin_memcpy(to[k] + r, &v[k], sizeof v[k]);
    }
    for (; r < tile<T>; ++r) {
        const T* from = row(r < rows ? r : rows - 1);
        for (int k = 0; k < numbers; ++k) to[k][r] = from[k];
    }
}

/// `count` numbers at `position` of the rows from `first` on, of which `rows` exist.
template <class T>
void load_rows(const LanesArray<T>& array, std::int64_t position, int count, const std::int32_t* slots, T* scratch, std::int64_t first,
               int rows) {
    constexpr int n = block<T>;
    for (int begin = 0; begin < count; begin += n) {
        const int numbers = count - begin < n ? count - begin : n;
        T* to[n];
        for (int k = 0; k < n; ++k) to[k] = scratch + static_cast<std::int64_t>(slots[begin + (k < numbers ? k : 0)]) * tile<T>;
        if (array.pointers != nullptr) {
            load_block<T>(PointedRows<T>{array.pointers + first, position + begin}, to, numbers, numbers == n ? rows : 0, rows);
            continue;
        }
        // A block may be read whole where it ends within the array; between rows apart there may be what another thread is writing.
        if (array.stride != array.size && numbers < n) {
            load_block<T>(StridedRows<T>{array.base + first * array.stride + position + begin, array.stride}, to, numbers, 0, rows);
            continue;
        }
        const std::int64_t room = (array.rows - 1 - first) * array.stride + array.size - (position + begin) - n;
        const std::int64_t readable = room < 0 ? 0 : array.stride == 0 ? rows : room / array.stride + 1;
        load_block<T>(StridedRows<T>{array.base + first * array.stride + position + begin, array.stride}, to, numbers,
                      readable < rows ? static_cast<int>(readable) : rows, rows);
    }
}

/// The first `numbers` (at most a block) of rows [r, r + count) from v.
template <class T, class Rows>
[[gnu::always_inline]] inline void store_part(const BlockVector<T>* v, int numbers, const Rows& row, int r, int begin, int count) {
    constexpr int n = block<T>;
    for (int k = 0; k < count; ++k) {
        T* to = row(r + k) + begin;
        const char* from = reinterpret_cast<const char*>(&v[k % n]) + 16 * (k / n);
        switch (numbers) {
            case 1:
                __builtin_memcpy(to, from, sizeof(T));
                break;
            case 2:
                __builtin_memcpy(to, from, 2 * sizeof(T));
                break;
            case 3:
                __builtin_memcpy(to, from, 3 * sizeof(T) <= 16 ? 3 * sizeof(T) : 16);
                break;
            default:
                __builtin_memcpy(to, from, 16);
                break;
        }
    }
}
template <class T, class Rows>
[[gnu::always_inline]] inline void add_part(const BlockVector<T>* v, int numbers, const Rows& row, int r, int begin, int count) {
    constexpr int n = block<T>;
    for (int k = 0; k < count; ++k) {
        T* to = row(r + k) + begin;
        T values[n];
        __builtin_memcpy(values, reinterpret_cast<const char*>(&v[k % n]) + 16 * (k / n), 16);
        for (int i = 0; i < numbers; ++i) to[i] += values[i];
    }
}

/// Two neighbouring blocks of numbers make whole vectors of rows.
template <class T, class Rows>
[[gnu::always_inline]] inline void store_two_blocks(const BlockVector<T>* a, const BlockVector<T>* b, const Rows& row, int r, int begin) {
    constexpr int n = block<T>;
#pragma GCC unroll 2
    for (int h = 0; h < halves; ++h) {
#pragma GCC unroll 4
        for (int k = 0; k < n; ++k) {
            T* to = row(r + k + h * n) + begin;
            if constexpr (halves == 2) {
                const BlockVector<T> v = joined_halves(a[k], b[k], h);
                __builtin_memcpy(to, &v, sizeof v);
            } else {
                store_half<T>(to, half(a[k], h));
                store_half<T>(to + n, half(b[k], h));
            }
        }
    }
}

/// Where numbers are, and a block of the first one behind them.
template <class T>
[[gnu::noinline]] void find_slots(const T** from, const std::int32_t* slots, int count, const T* scratch) {
#pragma GCC unroll 1
    for (int k = 0; k < count + block<T>; ++k) from[k] = scratch + static_cast<std::int64_t>(slots[k < count ? k : 0]) * tile<T>;
}

/// Row by row as far as transposing allows, so that whole cache lines are written one after another.
template <bool add, class T, class Rows>
[[gnu::always_inline]] inline void store_blocks(const Rows& row, int count, const std::int32_t* slots, const T* scratch, int rows) {
    constexpr int n = block<T>, step = n * halves, most = 64;
    for (int first = 0; first < count; first += most) {
        const int end = count - first < most ? count : first + most;
        const T* from[most + n];
        find_slots(from, slots + first, end - first, scratch);
        for (int r = 0; r < rows; r += step) {
            const int here = rows - r < step ? rows - r : step;
            const auto block_at = [&](int begin, BlockVector<T>* v) __attribute__((always_inline)) {
#pragma GCC unroll 4
                for (int k = 0; k < n; ++k) __builtin_memcpy(&v[k], from[begin - first + k] + r, sizeof v[k]);
                transpose(v);
            };
            int begin = first;
            if constexpr (!add) {
                for (; here == step && begin + 2 * n <= end; begin += 2 * n) {
                    BlockVector<T> a[n] = {}, b[n] = {};
                    block_at(begin, a);
                    block_at(begin + n, b);
                    store_two_blocks<T>(a, b, row, r, begin);
                }
            }
            for (; begin < end; begin += n) {
                BlockVector<T> v[n] = {};
                block_at(begin, v);
                const int numbers = end - begin < n ? end - begin : n;
                if constexpr (add) add_part<T>(v, numbers, row, r, begin, here);
                else store_part<T>(v, numbers, row, r, begin, here);
            }
        }
    }
}

template <class T>
void store_rows(const LanesArray<T>& array, std::int64_t position, int count, const std::int32_t* slots, const T* scratch,
                std::int64_t first, int rows) {
    if (array.pointers == nullptr)
        return store_blocks<false>(StridedRows<T>{array.base + first * array.stride + position, array.stride}, count, slots, scratch, rows);
    const PointedRows<T> pointed{array.pointers + first, position};
    if (array.add) return store_blocks<true>(pointed, count, slots, scratch, rows);
    store_blocks<false>(pointed, count, slots, scratch, rows);
}

// ---- instructions ----

/// Eight vectors in registers.
template <class T>
struct Tile {
    Vector<T> v[tile_vectors];

    template <class F>
    [[gnu::always_inline]] void each(F f) {
#pragma GCC unroll 8
        for (int k = 0; k < tile_vectors; ++k) v[k] = f(v[k], k * lanes_of<T>);
    }
};

template <class T>
[[gnu::always_inline]] inline const std::int32_t* combine(const std::int32_t* at, const T*& constants, T* scratch) {
    const auto slot = [&](std::int32_t number) { return scratch + static_cast<std::int64_t>(number) * tile<T>; };
    T* d = slot(at[1]);
    int linear = at[3];
    const int scaled = at[4], plain = at[5];
    const bool has_constant = at[2] != 0;
    at += 6;
    Tile<T> sum;
    if (has_constant || linear == 0) {
        const Vector<T> c = Vector<T>{} + (has_constant ? *constants++ : T{0});
        sum.each([&](Vector<T>, int) { return c; });
    } else {
        const Vector<T> c = Vector<T>{} + *constants++;
        const T* a = slot(*at++);
        sum.each([&](Vector<T>, int i) { return c * load<T>(a + i); });
        --linear;
    }
    for (; linear > 0; --linear) {
        const Vector<T> c = Vector<T>{} + *constants++;
        const T* a = slot(*at++);
        sum.each([&](Vector<T> s, int i) { return s + c * load<T>(a + i); });
    }
    for (int k = 0; k < scaled; ++k) {
        const Vector<T> c = Vector<T>{} + *constants++;
        const T *a = slot(at[0]), *b = slot(at[1]);
        at += 2;
        sum.each([&](Vector<T> s, int i) { return s + (c * load<T>(a + i)) * load<T>(b + i); });
    }
    for (int k = 0; k < plain; ++k) {
        const T *a = slot(at[0]), *b = slot(at[1]);
        at += 2;
        sum.each([&](Vector<T> s, int i) { return s + load<T>(a + i) * load<T>(b + i); });
    }
    sum.each([&](Vector<T> s, int i) {
        store<T>(d + i, s);
        return s;
    });
    return at;
}

template <class T>
void execute(const LanesTape& tape, const std::int32_t* at, const T* constants, const LanesArray<T>* arrays, T* scratch, std::int64_t first,
             int rows) {
    const auto slot = [&](std::int32_t number) { return scratch + static_cast<std::int64_t>(number) * tile<T>; };
    while (true) {
        switch (static_cast<LanesOp>(*at)) {
            case LanesOp::end:
                return;
            case LanesOp::load:
                load_rows(arrays[at[1]], at[2], at[3], at + 4, scratch, first, rows);
                at += 4 + at[3];
                break;
            case LanesOp::broadcast:
                for (int k = 0; k < at[3]; ++k) {
                    const Vector<T> value = Vector<T>{} + arrays[at[1]].base[at[2] + k];
                    for (int i = 0; i < tile<T>; i += lanes_of<T>) store<T>(slot(at[4 + k]) + i, value);
                }
                at += 4 + at[3];
                break;
            case LanesOp::store:
                store_rows(arrays[at[1]], at[2], at[3], at + 4, scratch, first, rows);
                at += 4 + at[3];
                break;
            case LanesOp::products: {
                int n = at[1];
                for (at += 2; n > 0; --n, at += 3) {
                    T* d = slot(at[0]);
                    const T *a = slot(at[1]), *b = slot(at[2]);
#pragma GCC unroll 8
                    for (int i = 0; i < tile<T>; i += lanes_of<T>) store<T>(d + i, load<T>(a + i) * load<T>(b + i));
                }
                break;
            }
            case LanesOp::combine:
                at = combine<T>(at, constants, scratch);
                break;
            case LanesOp::function:
                apply_function(tape.functions[at[1]], slot(at[3]), slot(at[2]), tile<T>);
                at += 4;
                break;
        }
    }
}

template <class T>
void run(const LanesTape& tape, const T* constants, const LanesArray<T>* arrays, T* scratch, std::int64_t begin, std::int64_t end) {
    execute<T>(tape, tape.prologue, constants, arrays, scratch, 0, 0);
    for (std::int64_t first = begin; first < end; first += tile<T>)
        execute<T>(tape, tape.body, constants, arrays, scratch, first, static_cast<int>(end - first < tile<T> ? end - first : tile<T>));
}

}  // namespace

void run_lanes(const LanesTape& tape, const LanesArray<float>* arrays, float* scratch, std::int64_t begin, std::int64_t end) {
    run(tape, tape.constants_float, arrays, scratch, begin, end);
}
void run_lanes(const LanesTape& tape, const LanesArray<double>* arrays, double* scratch, std::int64_t begin, std::int64_t end) {
    run(tape, tape.constants_double, arrays, scratch, begin, end);
}
std::int64_t lanes_tile_bytes() { return tile_vectors * vector_bytes; }

}  // namespace clebsch::CLEBSCH_ISA
