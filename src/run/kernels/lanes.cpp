// The interpreter of lanes tapes. A tile is eight vectors of rows, so that reading an instruction costs little and sums have eight independent
// accumulators. Rows are transposed on the way in and out, four (float64: two) numbers of every row at a time.
#include "run/kernels/lanes.hpp"

#include "run/kernels/vector.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

constexpr int tile_vectors = 8;
template <class T>
constexpr int tile = tile_vectors * lanes_of<T>;

// ---- transposition ----
// Blocks of `block` numbers (16 bytes) of as many rows; with registers of 32 bytes and more two blocks of rows side by side.
constexpr int transpose_bytes = vector_bytes < 32 ? vector_bytes : 32;
constexpr int halves = transpose_bytes / 16;
template <class T>
constexpr int block = 16 / static_cast<int>(sizeof(T));

template <class T>
struct Transposed;
template <>
struct Transposed<float> {
    using Vector = float __attribute__((vector_size(transpose_bytes)));
};
template <>
struct Transposed<double> {
    using Vector = double __attribute__((vector_size(transpose_bytes)));
};
template <class T>
using BlockVector = typename Transposed<T>::Vector;

/// 4 x 4 (2 x 2) numbers, in every half by itself; its own inverse.
[[gnu::always_inline]] inline void transpose(BlockVector<float>* v) {
#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
    const BlockVector<float> a = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13), b = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
    const BlockVector<float> c = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13), d = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
#else
    const BlockVector<float> a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    const BlockVector<float> c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
#endif
}
[[gnu::always_inline]] inline void transpose(BlockVector<double>* v) {
#if defined(CLEBSCH_ISA_AVX512) || defined(CLEBSCH_ISA_AVX2)
    const BlockVector<double> a = __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6), b = __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
#else
    const BlockVector<double> a = __builtin_shufflevector(v[0], v[1], 0, 2), b = __builtin_shufflevector(v[0], v[1], 1, 3);
#endif
    v[0] = a;
    v[1] = b;
}

/// `count` numbers at `position` of the rows from `first` on, of which `rows` exist; missing ones repeat the last.
template <class T>
void load_rows(const LanesArray<T>& array, std::int64_t position, int count, const std::int32_t* slots, T* scratch, std::int64_t first, int rows) {
    constexpr int n = block<T>;
    for (int begin = 0; begin < count; begin += n) {
        const int numbers = count - begin < n ? count - begin : n;
        const T* source = array.base + first * array.stride + position + begin;
        // A block may be read whole where it does not reach beyond the last number of the array.
        const std::int64_t last_number = (array.rows - 1) * array.stride + array.size;
        const std::int64_t room = last_number - (first * array.stride + position + begin) - n;
        const int whole = room < 0 ? 0 : array.stride == 0 ? rows : static_cast<int>(room / array.stride + 1 < rows ? room / array.stride + 1 : rows);
        for (int r = 0; r < tile<T>; r += n * halves) {
            BlockVector<T> v[n];
            if (r + n * halves <= whole) {
                const T* row = source + r * array.stride;
                for (int k = 0; k < n; ++k) {
                    __builtin_memcpy(&v[k], row + k * array.stride, 16);
                    if constexpr (halves == 2) __builtin_memcpy(reinterpret_cast<char*>(&v[k]) + 16, row + (k + n) * array.stride, 16);
                }
            } else {
                for (int h = 0; h < halves; ++h) {
                    for (int k = 0; k < n; ++k) {
                        const int wanted = r + h * n + k;
                        const T* row = source + (wanted < rows ? wanted : rows - 1) * array.stride;
                        for (int i = 0; i < n; ++i) v[k][h * n + i] = i < numbers ? row[i] : T{0};
                    }
                }
            }
            transpose(v);
            for (int k = 0; k < numbers; ++k) __builtin_memcpy(scratch + static_cast<std::int64_t>(slots[begin + k]) * tile<T> + r, &v[k], sizeof v[k]);
        }
    }
}

template <class T>
void store_rows(const LanesArray<T>& array, std::int64_t position, int count, const std::int32_t* slots, const T* scratch, std::int64_t first, int rows) {
    constexpr int n = block<T>;
    for (int begin = 0; begin < count; begin += n) {
        const int numbers = count - begin < n ? count - begin : n;
        T* target = array.base + first * array.stride + position + begin;
        for (int r = 0; r < rows; r += n * halves) {
            BlockVector<T> v[n];
            for (int k = 0; k < n; ++k) __builtin_memcpy(&v[k], scratch + static_cast<std::int64_t>(slots[begin + (k < numbers ? k : 0)]) * tile<T> + r, sizeof v[k]);
            transpose(v);
            T* row = target + r * array.stride;
            if (numbers == n && r + n * halves <= rows) {
                for (int k = 0; k < n; ++k) {
                    __builtin_memcpy(row + k * array.stride, &v[k], 16);
                    if constexpr (halves == 2) __builtin_memcpy(row + (k + n) * array.stride, reinterpret_cast<char*>(&v[k]) + 16, 16);
                }
                continue;
            }
            for (int h = 0; h < halves; ++h) {
                for (int k = 0; k < n && r + h * n + k < rows; ++k) {
                    T* to = row + (h * n + k) * array.stride;
                    const char* from = reinterpret_cast<const char*>(&v[k]) + 16 * h;
                    switch (numbers) {
                        case 1: __builtin_memcpy(to, from, sizeof(T)); break;
                        case 2: __builtin_memcpy(to, from, 2 * sizeof(T)); break;
                        case 3: __builtin_memcpy(to, from, 3 * sizeof(T) <= 16 ? 3 * sizeof(T) : 16); break;
                        default: __builtin_memcpy(to, from, 16); break;
                    }
                }
            }
        }
    }
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
void execute(const LanesTape& tape, const std::int32_t* at, const T* constants, const LanesArray<T>* arrays, T* scratch, std::int64_t first, int rows) {
    const auto slot = [&](std::int32_t number) { return scratch + static_cast<std::int64_t>(number) * tile<T>; };
    while (true) {
        switch (static_cast<LanesOp>(*at)) {
            case LanesOp::end: return;
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
            case LanesOp::combine: at = combine<T>(at, constants, scratch); break;
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
