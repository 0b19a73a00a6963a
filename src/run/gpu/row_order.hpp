#pragma once
// Rows sorted by where a chain of indices leads, on the device: for sums in a fixed order.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "run/buffers.hpp"
#include "run/gpu/driver.hpp"
#include "run/gpu/kernels.hpp"

namespace clebsch::gpu {

class RowOrder {
 public:
    /// `indices`: of the chain. Compiles kernels, or finds them in the cache.
    RowOrder(const Device& device, std::size_t indices);

    /// Its kernels.
    static std::vector<KernelSource> sources(std::size_t indices);

    /// Device memory for so many rows; 40 bytes a row and a little.
    static std::size_t bytes(std::int64_t rows);

    struct Result {
        IndexBuffer rows, targets;  ///< of every place: which row is there, and where it leads (not decreasing; masked ones last, -1)
    };
    /// Where the result will be in this memory.
    static Result result(void* memory, std::int64_t rows);
    /// Puts the work on the stream. `targets`: rows of the space that each index leads to. `error`: the flag for indices out of range.
    void launch(std::span<const IndexBuffer> chain, std::span<const std::int64_t> targets, std::int64_t rows, void* memory, void* error,
                Stream stream) const;

 private:
    std::vector<std::shared_ptr<const Module>> modules_;  ///< targets, count, scan, place
};

}  // namespace clebsch::gpu
