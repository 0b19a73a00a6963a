#pragma once
/// Scratch memory of calls on the processor. Blocks are kept for the next call, one per call that ran at once: fresh pages cost more than
/// small calls. Large blocks go back to the system, which gives them out page by page.
#include <cstddef>

namespace clebsch_jax {

class Scratch {
 public:
    explicit Scratch(std::size_t bytes);
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch();
    /// A multiple of 64; null for no bytes.
    [[nodiscard]] void* data() const { return block_; }

 private:
    void* block_ = nullptr;
    std::size_t capacity_ = 0;
};

}  // namespace clebsch_jax
