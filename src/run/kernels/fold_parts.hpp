#pragma once
// What the files of the fold kernels share: operands of a step with their row pointers looked up.
#include "run/kernels/fold.hpp"
#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {

template <class T>
struct RowsIn {
    const T* const* row = nullptr;
    std::int64_t offset = 0;

    CLEBSCH_INLINE const T* at(int r) const { return row[r] + offset; }
};
template <class T>
struct RowsOut {
    T* const* row = nullptr;
    std::int64_t offset = 0;

    CLEBSCH_INLINE T* at(int r) const { return row[r] + offset; }
};
template <class T>
struct Factor {
    int weights = 0;
    RowsIn<T> weight[fold_weights];
    T scale = 1;
};

template <class T>
struct Sink {
    bool dot = false, overwrite = false;
    Factor<T> factor;
    RowsOut<T> out;
    RowsIn<T> with;
    const int* run_end = nullptr;       ///< [rows]: first row after r whose output pointer differs
};

inline constexpr int most_sinks = 8;    ///< handled in one pass over z; more take several passes

template <class T>
struct Multiply {
    int rows = 0, inputs = 0, outputs = 0;
    bool diagonal = false, weighted = false;
    std::int64_t channels = 0;
    RowsIn<T> in, weight;
    const T* matrix = nullptr;          ///< [rows / lanes][inputs][outputs][lanes]
    int sinks = 0;
    Sink<T> sink[most_sinks];
};
void multiply(const Multiply<float>& task);
void multiply(const Multiply<double>& task);

template <class T>
struct Reduce {
    int rows = 0, left_components = 0, right_components = 0;
    bool diagonal = false;
    std::int64_t channels = 0;
    RowsIn<T> left, right;
    Factor<T> factor;
    T* product = nullptr;               ///< scratch: the smaller side times the factor, [components][padded channels]
    T* reduced = nullptr;               ///< [rows][reduced_size]
};
void reduce(const Reduce<float>& task);
void reduce(const Reduce<double>& task);

/// A run of channels: `Width` whole vectors, or the first `count` lanes of one.
template <class T, int Width, bool Part = false>
struct Tile {
    static_assert(!Part || Width == 1);
    int count = 0;

    CLEBSCH_INLINE Vector<T> get(const T* p, int t) const {
        if constexpr (Part)
            return load_first(p, count);
        else
            return load(p + t * lanes_of<T>);
    }
    CLEBSCH_INLINE void put(T* p, int t, Vector<T> v) const {
        if constexpr (Part)
            store_first(p, v, count);
        else
            store(p + t * lanes_of<T>, v);
    }
};

}  // namespace clebsch::CLEBSCH_ISA
