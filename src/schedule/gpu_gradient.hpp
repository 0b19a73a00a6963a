#pragma once
// The GPU schedule of gradients of weight matrices that rows share: weights[r, c] += sum over rows and components of left[row, component,
// r] right[row, component, c]. Rows are divided into chunks; a block computes one tile of a matrix for a chunk and leaves it as a part, and
// a second kernel adds the parts of every number in the order of the chunks.
#include <cstdint>
#include <optional>
#include <vector>

#include "describe/polynomial.hpp"
#include "schedule/gpu_kernel.hpp"

namespace clebsch {

/// One path into a matrix. Kernels read it as it is: 8-byte words (gradient.cuh).
struct GradientTerm {
    std::int64_t left = 0, right = 0;  ///< operands
    std::int64_t left_offset = 0, left_channel = 0, left_component = 0;
    std::int64_t right_offset = 0, right_channel = 0, right_component = 0;
    std::int64_t components = 1;
    double scale = 1;
};

/// One segment of an output: rows x columns numbers, columns side by side. 8-byte words, too.
struct GradientJob {
    std::int64_t output = 0, offset = 0;
    std::int64_t rows = 0, columns = 0;
    std::int64_t adds = 0;  ///< 1: other paths wrote there before
    std::int64_t first_term = 0, terms = 0;
    std::int64_t place = 0;  ///< first number in a part
};

/// What a thread block computes: as MatrixTile, with `depth` rows at a time.
struct GradientTile {
    int rows = 64, columns = 64, depth = 16;
    int stages = 4;
    int own_rows = 4, own_columns = 4;
    bool tensor = false;
    static constexpr int threads = 256, blocks = 2;
};
/// From the smallest to the largest; a job takes the first that its smaller side fits, else the last.
std::vector<GradientTile> gradient_tiles(GpuNumber compute);

struct GradientSchedule {
    std::vector<GradientJob> jobs;  ///< in the order of their tiles
    std::vector<GradientTerm> terms;
    std::int64_t numbers = 0;  ///< of a part

    static constexpr int sum_threads = 256;  ///< of a block that adds parts
};

/// A path as such a sum, left the first of the letters of its output, with how many rows and columns the matrix has.
struct GradientPath {
    GradientTerm term;
    std::int64_t rows = 0, columns = 0;
};
std::optional<GradientPath> gradient_path(const Polynomial& polynomial, const Path& path);

/// Jobs `first` to `first` + `count` - 1 run as one launch with a tile.
struct GradientLaunch {
    std::size_t tile = 0;
    std::int64_t first = 0, count = 0;
};
std::size_t gradient_tile(const GradientJob& job, const std::vector<GradientTile>& tiles);
std::vector<GradientLaunch> gradient_launches(const GradientSchedule& schedule, const std::vector<GradientTile>& tiles);

/// How rows are divided: as many chunks as give every multiprocessor some blocks.
struct GradientChunks {
    std::int64_t rows = 0, count = 0;
};
GradientChunks gradient_chunks(const GradientSchedule& schedule, const std::vector<GradientTile>& tiles, std::int64_t rows,
                               int multiprocessors);
LaunchShape gradient_shape(const GradientSchedule& schedule, const GradientLaunch& launch, const GradientTile& tile, std::int64_t chunks);
/// Of the kernel that adds parts.
LaunchShape gradient_sum_shape(const GradientSchedule& schedule);

}  // namespace clebsch
