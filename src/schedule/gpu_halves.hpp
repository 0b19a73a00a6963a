#pragma once
// The GPU schedule of matrix products for many rows in float32: tensor instructions on half-precision parts of every number, with weights
// that are divided into parts once and rows that stay in registers while tiles of weights pass by (emit/skeletons/halves.cuh).
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/gpu_matrix.hpp"

namespace clebsch {

/// Up to 64 products of one term for a tile of columns. Kernels read it as it is: 8-byte words.
struct HalvesPiece {
    std::int64_t input = 0, weight = 0;  ///< operands
    std::int64_t input_offset = 0, input_channel = 0, input_component = 0;
    std::int64_t weight_offset = 0, weight_k = 0, weight_column = 0;
    std::int64_t k = 0, depth = 0;         ///< products of the term: the first of this piece, all
    std::int64_t column = 0, columns = 0;  ///< of the job: the tile's first, all
    double scale = 1;
};

/// One segment of an output. 8-byte words, too.
struct HalvesJob {
    std::int64_t output = 0, offset = 0, column = 0, component = 0, columns = 0, components = 0;
    std::int64_t adds = 0;
    std::int64_t first_piece = 0;  ///< of the launch's
    std::int64_t pieces = 0;       ///< for every tile of columns, one tile after the other
};

/// Jobs and pieces that run with tiles of the same width.
struct HalvesLaunch {
    int columns = 64;
    std::int64_t first_job = 0, jobs = 0, first_piece = 0, pieces = 0;
    std::int64_t weights_at = 0;  ///< bytes in the scratch memory
};

struct HalvesSchedule {
    std::vector<HalvesJob> jobs;
    std::vector<HalvesPiece> pieces;
    std::vector<HalvesLaunch> launches;
    std::int64_t weights_bytes = 0;  ///< scratch memory: the weights in parts

    static constexpr int threads = 256, rows = 128, depth = 64;  ///< of a block
    static constexpr int weights_threads = 1024;                 ///< of a block that divides a tile of weights
    static constexpr int blocks = 2;                             ///< on a multiprocessor at once
};

/// Nothing for float64, or where an index picks the weights.
std::optional<HalvesSchedule> schedule_halves(const MatrixSchedule& matrix, GpuNumber compute);

/// Bytes of one divided tile of weights.
std::int64_t weight_tile_bytes(int columns);
/// Tiles of columns a block takes: as many as leave blocks enough for the machine.
std::int64_t halves_share(const HalvesSchedule& schedule, const HalvesLaunch& launch, std::int64_t rows, int multiprocessors);
LaunchShape halves_shape(const HalvesSchedule& schedule, const HalvesLaunch& launch, std::int64_t rows, std::int64_t share);

}  // namespace clebsch
