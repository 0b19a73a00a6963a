// D[k,i] = sum over channels of left[k] right[i]: a block of D stays in registers while the channels pass by, then the lanes of all its sums are
// added together.
#include "run/kernels/fold_parts.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

// Left x right components of a block of D.
constexpr int most_left = vector_registers == 32 ? 5 : 4;
constexpr int most_right = vector_registers == 32 ? 5 : 3;

constexpr int chunks_of(int n, int most) { return (n + most - 1) / most; }
/// Size of chunk number `index` when n are split evenly into chunks of at most `most`, larger ones first.
constexpr int chunk_size(int n, int most, int index) {
    const int chunks = chunks_of(n, most);
    return n / chunks + (index < n % chunks ? 1 : 0);
}

template <class T>
struct Side {
    const T* data;
    std::int64_t stride;        ///< from component to component
};

template <class T, int Left, int Right>
void reduce_block(Side<T> left, Side<T> right, std::int64_t channels, T* out) {
    constexpr int lanes = lanes_of<T>, sums = Left * Right, squares = chunks_of(sums, lanes);
    Vector<T> sum[squares * lanes]{};
    std::int64_t c = 0;
    const T *l = left.data, *r = right.data;
    for (; c + lanes <= channels; c += lanes, l += lanes, r += lanes) {
        Vector<T> x[Right];
#pragma GCC unroll 8
        for (int i = 0; i < Right; ++i) x[i] = load(r + i * right.stride);
#pragma GCC unroll 8
        for (int k = 0; k < Left; ++k) {
            const Vector<T> g = load(l + k * left.stride);
#pragma GCC unroll 8
            for (int i = 0; i < Right; ++i) sum[k * Right + i] += g * x[i];
        }
    }
    if (c < channels) {
        const int count = int(channels - c);
        Vector<T> x[Right];
#pragma GCC unroll 8
        for (int i = 0; i < Right; ++i) x[i] = load_first(r + i * right.stride, count);
#pragma GCC unroll 8
        for (int k = 0; k < Left; ++k) {
            const Vector<T> g = load_first(l + k * left.stride, count);
#pragma GCC unroll 8
            for (int i = 0; i < Right; ++i) sum[k * Right + i] += g * x[i];
        }
    }
#pragma GCC unroll 32
    for (int q = 0; q < squares; ++q) store(out + q * lanes, sum_lanes<T>(sum + q * lanes));
}

template <class T, int Left, int Right = most_right>
void reduce_block_of(int right_size, Side<T> left, Side<T> right, std::int64_t channels, T* out) {
    if constexpr (Right > 0) {
        if (right_size == Right)
            reduce_block<T, Left, Right>(left, right, channels, out);
        else
            reduce_block_of<T, Left, Right - 1>(right_size, left, right, channels, out);
    }
}
template <class T, int Left = most_left>
void reduce_block_of(int left_size, int right_size, Side<T> left, Side<T> right, std::int64_t channels, T* out) {
    if constexpr (Left > 0) {
        if (left_size == Left)
            reduce_block_of<T, Left>(right_size, left, right, channels, out);
        else
            reduce_block_of<T, Left - 1>(left_size, right_size, left, right, channels, out);
    }
}

/// Sum over channels of weight * sum over components of left * right: the derivative of a multiple of the identity.
template <class T>
T reduce_diagonal(const Reduce<T>& task, int r) {
    constexpr int lanes = lanes_of<T>;
    const T *left = task.left.at(r), *right = task.right.at(r);
    Vector<T> sum{};
    for (std::int64_t c = 0; c < task.channels; c += lanes) {
        const bool part = c + lanes > task.channels;
        const int count = int(task.channels - c);
        const auto get = [&](const T* p) { return part ? load_first(p, count) : load(p); };
        Vector<T> dot{};
        for (int k = 0; k < task.left_components; ++k) dot += get(left + k * task.channels + c) * get(right + k * task.channels + c);
        for (int n = 0; n < task.factor.weights; ++n) dot *= get(task.factor.weight[n].at(r) + c);
        sum += dot;
    }
    T total = 0;
    for (int l = 0; l < lanes; ++l) total += sum[l];
    return total * task.factor.scale;
}

/// The side times the factor, in scratch.
template <class T>
Side<T> times_factor(const Reduce<T>& task, const T* side, int components, int r) {
    constexpr int lanes = lanes_of<T>;
    const std::int64_t padded = (task.channels + lanes - 1) / lanes * lanes;
    for (std::int64_t c = 0; c < task.channels; c += lanes) {
        const bool part = c + lanes > task.channels;
        const int count = int(task.channels - c);
        const auto get = [&](const T* p) { return part ? load_first(p, count) : load(p); };
        Vector<T> f = broadcast(task.factor.scale);
        for (int n = 0; n < task.factor.weights; ++n) f *= get(task.factor.weight[n].at(r) + c);
        for (int k = 0; k < components; ++k) store(task.product + k * padded + c, f * get(side + k * task.channels + c));
    }
    return {task.product, padded};
}

template <class T>
void reduce_any(const Reduce<T>& task) {
    const int size = reduced_size(task.left_components, task.right_components, sizeof(T));
    const int lefts = chunks_of(task.left_components, most_left), rights = chunks_of(task.right_components, most_right);
    for (int r = 0; r < task.rows; ++r) {
        T* out = task.reduced + std::int64_t(r) * size;
        if (task.diagonal) {
            *out = reduce_diagonal(task, r);
            continue;
        }
        Side<T> left{task.left.at(r), task.channels}, right{task.right.at(r), task.channels};
        if (task.factor.weights > 0 || task.factor.scale != T(1)) {
            if (task.left_components < task.right_components)
                left = times_factor(task, left.data, task.left_components, r);
            else
                right = times_factor(task, right.data, task.right_components, r);
        }
        Side<T> l = left;
        for (int a = 0; a < lefts; ++a) {
            const int left_size = chunk_size(task.left_components, most_left, a);
            Side<T> x = right;
            for (int b = 0; b < rights; ++b) {
                const int right_size = chunk_size(task.right_components, most_right, b);
                reduce_block_of(left_size, right_size, l, x, task.channels, out);
                out += left_size * right_size;
                x.data += right_size * x.stride;
            }
            l.data += left_size * l.stride;
        }
    }
}

}  // namespace

int reduce_position(int k, int i, int left_components, int right_components) {
    int position = 0, a = 0, b = 0;
    for (; k >= chunk_size(left_components, most_left, a); ++a) {
        k -= chunk_size(left_components, most_left, a);
        position += chunk_size(left_components, most_left, a) * right_components;
    }
    const int left_size = chunk_size(left_components, most_left, a);
    for (; i >= chunk_size(right_components, most_right, b); ++b) {
        i -= chunk_size(right_components, most_right, b);
        position += left_size * chunk_size(right_components, most_right, b);
    }
    return position + k * chunk_size(right_components, most_right, b) + i;
}

int reduced_size(int left_components, int right_components, int element_size) {
    const int lanes = vector_bytes / element_size;
    return (left_components * right_components + 2 * lanes - 1) / lanes * lanes;      // the last block writes whole vectors
}

void reduce(const Reduce<float>& task) { reduce_any(task); }
void reduce(const Reduce<double>& task) { reduce_any(task); }

}  // namespace clebsch::CLEBSCH_ISA
