// D[k,i] = sum over channels of left[k] right[i]: a block of D stays in registers while the channels pass by, then the lanes of all its
// sums are added together.
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

template <class T, int Left, int Right, bool Weighted, bool Part>
CLEBSCH_INLINE void add_vector(Vector<T>* sum, const T* left, const T* right, const T* weight, std::int64_t channels,
                               Tile<T, 1, Part> tile) {
    Vector<T> x[Right], w{};
    if constexpr (Weighted) w = tile.get(weight, 0);
#pragma GCC unroll 8
    for (int i = 0; i < Right; ++i) {
        x[i] = tile.get(right + i * channels, 0);
        if constexpr (Weighted) x[i] *= w;
    }
#pragma GCC unroll 8
    for (int k = 0; k < Left; ++k) {
        const Vector<T> g = tile.get(left + k * channels, 0);
#pragma GCC unroll 8
        for (int i = 0; i < Right; ++i) sum[k * Right + i] += g * x[i];
    }
}

/// Rows of one side, from `offset` on.
template <class T>
struct Side {
    const T* const* row;
    std::int64_t offset;
    CLEBSCH_INLINE const T* at(int r) const { return row[r] + offset; }
};

/// `size` numbers of `out` for every row.
template <class T, int Left, int Right, bool Weighted>
void reduce_block(int rows, Side<T> left, Side<T> right, Side<T> weight, std::int64_t channels, T* out, int size) {
    constexpr int lanes = lanes_of<T>, sums = Left * Right, squares = chunks_of(sums, lanes);
    for (int r = 0; r < rows; ++r, out += size) {
        const T *l = left.at(r), *x = right.at(r), *w = Weighted ? weight.at(r) : nullptr;
        Vector<T> sum[squares * lanes]{};
        std::int64_t c = 0;
        for (; c + lanes <= channels; c += lanes)
            add_vector<T, Left, Right, Weighted, false>(sum, l + c, x + c, Weighted ? w + c : nullptr, channels, {});
        if (c < channels)
            add_vector<T, Left, Right, Weighted, true>(sum, l + c, x + c, Weighted ? w + c : nullptr, channels, {int(channels - c)});
#pragma GCC unroll 32
        for (int q = 0; q < squares; ++q) store(out + q * lanes, sum_lanes<T>(sum + q * lanes));
    }
}

template <class T>
using BlockFunction = void (*)(int rows, Side<T> left, Side<T> right, Side<T> weight, std::int64_t channels, T* out, int size);

template <class T, int Left, int Right = most_right>
BlockFunction<T> block_of(int right_size, bool weighted) {
    if constexpr (Right == 1) return weighted ? reduce_block<T, Left, 1, true> : reduce_block<T, Left, 1, false>;
    else if (right_size == Right) return weighted ? reduce_block<T, Left, Right, true> : reduce_block<T, Left, Right, false>;
    else return block_of<T, Left, Right - 1>(right_size, weighted);
}
template <class T, int Left = most_left>
BlockFunction<T> block_of(int left_size, int right_size, bool weighted) {
    if constexpr (Left == 1) return block_of<T, 1>(right_size, weighted);
    else if (left_size == Left) return block_of<T, Left>(right_size, weighted);
    else return block_of<T, Left - 1>(left_size, right_size, weighted);
}

/// Sum over channels of weight * sum over components of left * right: the derivative of a multiple of the identity.
template <class T, bool Part>
CLEBSCH_INLINE Vector<T> diagonal_vector(const T* left, const T* right, const T* weight, int components, std::int64_t channels,
                                         Tile<T, 1, Part> tile) {
    Vector<T> dot{};
    for (int k = 0; k < components; ++k) dot += tile.get(left + k * channels, 0) * tile.get(right + k * channels, 0);
    return weight != nullptr ? dot * tile.get(weight, 0) : dot;
}
template <class T>
T reduce_diagonal(const T* left, const T* right, const T* weight, int components, std::int64_t channels) {
    constexpr int lanes = lanes_of<T>;
    Vector<T> sum{};
    std::int64_t c = 0;
    const auto weight_at = [&](std::int64_t at) { return weight != nullptr ? weight + at : nullptr; };
    for (; c + lanes <= channels; c += lanes) sum += diagonal_vector<T, false>(left + c, right + c, weight_at(c), components, channels, {});
    if (c < channels) sum += diagonal_vector<T, true>(left + c, right + c, weight_at(c), components, channels, {int(channels - c)});
    T total = 0;
    for (int l = 0; l < lanes; ++l) total += sum[l];
    return total;
}

/// The weight of a row; a product of several in scratch.
template <class T>
const T* weight_of(const Reduce<T>& task, int r) {
    if (task.factor.weights == 0) return nullptr;
    const T* weight = task.factor.weight[0].at(r);
    for (int n = 1; n < task.factor.weights; ++n) {
        const T* other = task.factor.weight[n].at(r);
        for (std::int64_t c = 0; c < task.channels; ++c) task.product[c] = weight[c] * other[c];
        weight = task.product;
    }
    return weight;
}

template <class T>
void reduce_any(const Reduce<T>& task) {
    const std::int64_t channels = task.channels;
    const int size = reduced_size(task.left_components, task.right_components, sizeof(T));
    const int lefts = chunks_of(task.left_components, most_left), rights = chunks_of(task.right_components, most_right);
    if (task.diagonal) {
        for (int r = 0; r < task.rows; ++r)
            task.reduced[std::int64_t(r) * size] =
                reduce_diagonal(task.left.at(r), task.right.at(r), weight_of(task, r), task.left_components, channels);
        return;
    }
    // Block by block over all rows in turn; blocks lie one behind the other in a row of `reduced`, and write whole vectors: in increasing
    // order.
    int left_at = 0, position = 0;
    for (int a = 0; a < lefts; ++a) {
        const int left_size = chunk_size(task.left_components, most_left, a);
        int right_at = 0;
        for (int b = 0; b < rights; ++b) {
            const int right_size = chunk_size(task.right_components, most_right, b);
            const BlockFunction<T> block = block_of<T>(left_size, right_size, task.factor.weights > 0);
            const Side<T> left{task.left.row, task.left.offset + left_at * channels},
                right{task.right.row, task.right.offset + right_at * channels};
            if (task.factor.weights < 2) {
                const RowsIn<T>& weight = task.factor.weight[0];
                block(task.rows, left, right, {weight.row, weight.offset}, channels, task.reduced + position, size);
            } else {
                for (int r = 0; r < task.rows; ++r) {
                    const T* weight = weight_of(task, r);
                    block(1, {left.row + r, left.offset}, {right.row + r, right.offset}, {&weight, 0}, channels,
                          task.reduced + std::int64_t(r) * size + position, size);
                }
            }
            position += left_size * right_size;
            right_at += right_size;
        }
        left_at += left_size;
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
    return (left_components * right_components + 2 * lanes - 1) / lanes * lanes;  // the last block writes whole vectors
}

void reduce(const Reduce<float>& task) { reduce_any(task); }
void reduce(const Reduce<double>& task) { reduce_any(task); }

}  // namespace clebsch::CLEBSCH_ISA
