#pragma once
// What a call passes: arrays with dtype, rows and strides; index arrays; rows of every space.
#include <cstddef>
#include <cstdint>

namespace clebsch {

enum class DType : std::uint8_t { float32, float64, bfloat16, float16 };
enum class IndexType : std::uint8_t { int32, int64 };
std::size_t size_of(DType dtype);
std::size_t size_of(IndexType type);
const char* to_text(DType dtype);

/// What the address of an array of elements of this size is to be a multiple of.
constexpr std::size_t required_alignment(std::size_t element) { return element < 4 ? element : 4; }

/// Rows of one operand. Not owned. `row_stride` in elements; 0 means packed. Any multiple of 4 bytes is a good address (2 bytes for 16-bit
/// numbers); 64-byte aligned rows are fastest, and float64 arrays that are not at a multiple of 8 are copied around every launch.
struct Buffer {
    void* data = nullptr;  ///< inputs are only read
    DType dtype = DType::float32;
    std::int64_t rows = 0;
    std::int64_t row_stride = 0;
};

/// Not owned. Any multiple of 4 bytes is a good address; int64 arrays that are not at a multiple of 8 are copied for every launch.
struct IndexBuffer {
    const void* data = nullptr;
    IndexType type = IndexType::int64;
    std::int64_t size = 0;
};

}  // namespace clebsch
