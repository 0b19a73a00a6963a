#pragma once
// Kernels read numbers at multiples of their own size. Arrays of eight-byte numbers at other addresses (any multiple of 4 bytes is allowed)
// are copied around a launch.
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "run/call.hpp"

namespace clebsch {

/// Whether every array of the call lies at a multiple of its element's size.
bool is_aligned(const Call& call);

/// Copies of the arrays that do not. The call must have been checked; its arrays stay alive and untouched meanwhile.
class RealignedCall {
 public:
    /// `operands`: one per buffer; inputs are copied at once.
    RealignedCall(std::span<const Operand> operands, const Call& call);
    Call call() const;           ///< the same call with the copies in place
    void store_outputs() const;  ///< copies outputs to where the caller wants them, rows only

 private:
    std::span<const Operand> operands_;
    Call given_;
    std::vector<Buffer> buffers_;
    std::vector<IndexBuffer> indices_;
    std::vector<std::unique_ptr<std::byte[]>> memory_;

    std::byte* allocate(std::size_t bytes);
};

/// launch(call) with arrays as kernels want them. Allocates only where something must be copied.
template <class Launch>
void launch_aligned(std::span<const Operand> operands, const Call& call, Launch launch) {
    if (is_aligned(call)) return launch(call);
    const RealignedCall copies(operands, call);
    launch(copies.call());
    copies.store_outputs();
}

}  // namespace clebsch
