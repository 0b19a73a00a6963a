#pragma once
// What a call passes: arrays with dtype, rows and strides; index arrays; rows of every space.
#include <cstddef>
#include <cstdint>

namespace clebsch {

enum class DType : std::uint8_t { float32, float64, bfloat16, float16 };
enum class IndexType : std::uint8_t { int32, int64 };
std::size_t size_of(DType dtype);
const char* to_text(DType dtype);

/// Rows of one operand. Not owned. `row_stride` in elements; 0 means packed. Any address aligned to the element's size works (4 bytes for
/// float64 too is not promised); 64-byte aligned rows are faster.
struct Buffer {
    void* data = nullptr;  ///< inputs are only read
    DType dtype = DType::float32;
    std::int64_t rows = 0;
    std::int64_t row_stride = 0;
};

struct IndexBuffer {
    const void* data = nullptr;
    IndexType type = IndexType::int64;
    std::int64_t size = 0;
};

}  // namespace clebsch
