#pragma once
// Memory of large results on the processor. The system gives memory of tens of megabytes anew for every call and takes it back after: each
// page is cleared and mapped again, which takes as long as a convolution's gradients. What results gave back is given to the next ones.
#include <cstddef>
#include <mutex>
#include <vector>

namespace clebsch::torch {

/// Thread safe.
class ResultMemory {
 public:
    /// Results of fewer bytes are PyTorch's allocator's, which seldom returns them to the system.
    static constexpr std::size_t large = std::size_t{1} << 20;

    /// Keeps no more than `limit` bytes, and no more than makes up for what was in use at once before.
    explicit ResultMemory(std::size_t limit) : limit_(limit) {}
    ResultMemory(const ResultMemory&) = delete;
    ResultMemory& operator=(const ResultMemory&) = delete;

    /// Memory of at least `bytes` bytes at a multiple of 64, uninitialised. Throws std::bad_alloc.
    void* take(std::size_t bytes);

    /// Takes back what `take` gave.
    void give_back(void* memory) noexcept;

    /// Returns to the system what no result uses, and forgets how much was in use.
    void empty() noexcept;

    /// Bytes that no result uses.
    std::size_t kept_bytes() const;

    /// That of the process, and of children that are forked at any moment. Its limit: CLEBSCH_TORCH_KEPT_MEMORY in MiB, else 512. Never
    /// destroyed: results may outlive everything. Throws std::runtime_error where the variable is no such number.
    static ResultMemory& instance();

 private:
    void drop_beyond(std::size_t bytes) noexcept;

    const std::size_t limit_;
    mutable std::mutex mutex_;
    std::vector<void*> kept_;  ///< oldest first
    std::size_t kept_bytes_ = 0, used_ = 0, most_used_ = 0;
};

}  // namespace clebsch::torch
