#pragma once
// The GPU schedule of paths with a weight matrix (linear maps, radial networks, their derivatives by the other input): out += x W for every
// component, as tiled matrix products over rows and components together; and gradients of the weights themselves (gpu_gradient). Products
// by whole rows of weights of their own are not for it.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/program.hpp"
#include "schedule/gpu_gradient.hpp"
#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// One product into a tile: x[row, component, k] W[k, column], k below `depth`. Kernels read it as it is: 8-byte words (matrix.cuh).
struct MatrixTerm {
    std::int64_t input = 0, weight = 0;  ///< operands
    std::int64_t input_offset = 0, input_channel = 0, input_component = 0;
    std::int64_t weight_offset = 0, weight_k = 0, weight_column = 0;  ///< numbers from k to k, from column to column
    std::int64_t depth = 0;
    std::int64_t indexed = 0;  ///< 1: the row of W is that of the schedule's index
    double scale = 1;
};

/// One segment of an output: rows x components by columns. 8-byte words, too.
struct MatrixJob {
    std::int64_t output = 0, offset = 0, column = 0, component = 0;  ///< operand; strides in numbers
    std::int64_t columns = 0, components = 0;
    std::int64_t adds = 0;  ///< 1: other paths wrote there before
    std::int64_t first_term = 0, terms = 0;
};

struct MatrixSchedule {
    std::vector<MatrixJob> jobs;
    std::vector<MatrixTerm> terms;
    GradientSchedule gradient;                ///< of weights; may be all there is
    int index = -1;                           ///< of the polynomial: rows of indexed weights
    std::optional<Polynomial> rest;           ///< what runs before, over some of the operands
    std::vector<int> rest_operands;           ///< of the polynomial: what rest's operands are
    double multiply_adds = 0;                 ///< per row
    static constexpr int most_operands = 64;  ///< whose addresses fit a kernel's arguments
};

/// Nothing when no path is of this kind.
std::optional<MatrixSchedule> schedule_matrix(const Polynomial& polynomial);

/// A polynomial with such paths as a program with steps that are matrix products, buffers in the same order. Where several operands meet
/// before the matrix, the products of their numbers come first: split_mixing. Nothing: there are no such paths, an operand that is read
/// comes after one that is written, or those products would be too many numbers a row.
std::optional<Program> with_matrix_products(const Polynomial& polynomial);

std::string explain(const MatrixSchedule& schedule, const Polynomial& polynomial);

/// What a thread block computes: rows x columns numbers, `depth` products of each at a time. A thread has own_rows x own_columns of them
/// and, where there are more threads than that takes, a share of the products; or a warp has them and multiplies by tensor instructions.
struct MatrixTile {
    int rows = 128, columns = 128, depth = 8;
    int stages = 4;  ///< slabs of `depth` products in shared memory
    int own_rows = 8, own_columns = 8;
    bool tensor = false;
    int blocks = 2;  ///< on a multiprocessor at once: what registers have to allow
    static constexpr int threads = 256;
};
/// For how many rows tiles are: for few the time of one block counts, for the fewest there would not even be a block for every
/// multiprocessor.
enum class MatrixRows : std::uint8_t { many, few, fewest };
constexpr std::array<MatrixRows, 3> all_matrix_rows{MatrixRows::many, MatrixRows::few, MatrixRows::fewest};
/// From the narrowest to the widest; a job takes the first that is not narrower than it, else the widest.
std::vector<MatrixTile> matrix_tiles(GpuNumber compute, MatrixRows rows);

/// Jobs `first` to `first` + `count` - 1 run as one launch with a tile. Jobs are ordered by their columns.
struct MatrixLaunch {
    std::size_t tile = 0;
    std::int64_t first = 0, count = 0;
};
std::vector<MatrixLaunch> matrix_launches(const MatrixSchedule& schedule, const std::vector<MatrixTile>& tiles);
LaunchShape matrix_shape(const MatrixSchedule& schedule, const MatrixLaunch& launch, const MatrixTile& tile, std::int64_t rows);
/// Which tiles are best: the largest that fill the machine.
MatrixRows matrix_rows(const MatrixSchedule& schedule, GpuNumber compute, std::int64_t rows, int multiprocessors);

}  // namespace clebsch
