#include "run/buffers.hpp"

namespace clebsch {

std::size_t size_of(DType dtype) {
    switch (dtype) {
        case DType::float32:
            return 4;
        case DType::float64:
            return 8;
        case DType::bfloat16:
        case DType::float16:
            return 2;
    }
    return 0;
}

std::size_t size_of(IndexType type) { return type == IndexType::int32 ? 4 : 8; }

const char* to_text(DType dtype) {
    switch (dtype) {
        case DType::float32:
            return "float32";
        case DType::float64:
            return "float64";
        case DType::bfloat16:
            return "bfloat16";
        case DType::float16:
            return "float16";
    }
    return "unknown";
}

}  // namespace clebsch
