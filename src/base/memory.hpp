#pragma once
// Memory for large arrays and workspaces.
#include <cstddef>
#include <cstdlib>
#include <memory>

namespace clebsch {

/// Uninitialised bytes at a 64-byte aligned address. From a few megabytes on they lie in large pages where the system gives them: with
/// small ones a virtual machine spends more time looking up the pages of a convolution's weights than reading them (docs/execution.md).
class Memory {
 public:
    Memory() = default;
    /// Throws Error(unsupported) naming `what` when there is not enough.
    explicit Memory(std::size_t bytes, const char* what = "an array");

    std::byte* data() const { return memory_.get(); }
    std::size_t size() const { return bytes_; }

 private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> memory_;
    std::size_t bytes_ = 0;
};

}  // namespace clebsch
