#pragma once
// The two peaks that limits are computed from, measured on this machine.
#include <cstdint>

#include "run/buffers.hpp"
#include "run/threads.hpp"
#include "schedule/cpu_target.hpp"
#include "schedule/estimate.hpp"

namespace clebsch {

struct MeasuredPeaks {
    Peaks peaks;
    int threads = 1;
    InstructionSet isa{};
    DType compute = DType::float32;
    std::int64_t copy_bytes = 0;              ///< of each of the two arrays of the copy
    std::int64_t last_level_cache_bytes = 0;  ///< 0: not known
    /// Whether the copy went through memory rather than the last-level cache: each array is larger than the cache.
    bool beyond_cache() const { return copy_bytes > last_level_cache_bytes; }
};

struct PeakOptions {
    DType compute = DType::float32;  ///< float32 or float64
    InstructionSet isa{};
    std::int64_t copy_bytes =
        0;  ///< 0: an array 1.25 times as large as the last-level cache, at least 128 MB, at most an eighth of free memory
};

/// The best of a few runs of each, with as many tasks as `parallel_for` has threads. Takes some 0.3 s and twice copy_bytes of memory.
MeasuredPeaks measure_peaks(const PeakOptions& options, const ParallelFor& parallel_for);

}  // namespace clebsch
