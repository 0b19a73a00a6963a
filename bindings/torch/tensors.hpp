#pragma once
// What the bindings know about tensors and operations: handles of PyTorch with an owner, what a call asks of a tensor, and what an
// operation says about its arrays.
#include <clebsch/clebsch.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "results.hpp"
#include "torch_functions.hpp"

namespace clebsch::torch {

inline void check(clebsch_status status) {
    if (status != CLEBSCH_OK) throw std::runtime_error(clebsch_last_error());
}

/// PyTorch has logged what happened.
inline void check_torch(int status, const char* what) {
    if (status != 0) throw std::runtime_error(std::string("clebsch::run: PyTorch failed in ") + what);
}

/// A tensor that this object owns.
class Owned {
 public:
    explicit Owned(Tensor tensor) : tensor_(tensor) {}
    Owned(Owned&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(tensor_, other.tensor_);
        return *this;
    }
    ~Owned() {
        if (tensor_ != nullptr) functions().tensor_delete(tensor_);
    }
    Tensor get() const { return tensor_; }
    Tensor release() { return std::exchange(tensor_, nullptr); }

 private:
    Tensor tensor_;
};

/// Handles as what passes between PyTorch and a kernel.
inline void* as_handle(Value value) { return std::bit_cast<void*>(value); }
inline Value as_value(void* handle) { return std::bit_cast<Value>(handle); }

/// PyTorch's number of a dtype of the C interface.
struct Dtype {
    int kind;
    std::int32_t number;
};

inline std::array<Dtype, 4> dtypes() {
    const Functions& torch = functions();
    return {{{CLEBSCH_FLOAT32, torch.float32()},
             {CLEBSCH_FLOAT64, torch.float64()},
             {CLEBSCH_BFLOAT16, torch.bfloat16()},
             {CLEBSCH_FLOAT16, torch.float16()}}};
}

struct Placement {
    std::int32_t device_type = 0, device_index = 0;
    bool operator==(const Placement&) const = default;
};

/// What a call asks of a tensor.
struct View {
    void* data = nullptr;
    std::int64_t dimensions = 0;
    const std::int64_t* sizes = nullptr;
    const std::int64_t* strides = nullptr;
    std::int32_t dtype = 0;
    Placement placement;
};

inline View view_of(Tensor tensor) {
    const Functions& torch = functions();
    View view;
    std::int64_t *sizes = nullptr, *strides = nullptr;
    check_torch(torch.tensor_data(tensor, &view.data), "get_data_ptr");
    check_torch(torch.tensor_dimensions(tensor, &view.dimensions), "get_dim");
    check_torch(torch.tensor_sizes(tensor, &sizes), "get_sizes");
    check_torch(torch.tensor_strides(tensor, &strides), "get_strides");
    check_torch(torch.tensor_dtype(tensor, &view.dtype), "get_dtype");
    check_torch(torch.tensor_device(tensor, &view.placement.device_type), "get_device_type");
    check_torch(torch.tensor_device_index(tensor, &view.placement.device_index), "get_device_index");
    view.sizes = sizes;
    view.strides = strides;
    return view;
}

/// Uninitialised and contiguous.
inline Owned make_tensor(std::int64_t rows, std::int64_t size, std::int32_t dtype, Placement placement) {
    const std::int64_t sizes[] = {rows, size}, strides[] = {size, 1};
    Tensor tensor = nullptr;
    check_torch(functions().tensor_make(2, sizes, strides, dtype, placement.device_type, placement.device_index, &tensor), "empty_strided");
    return Owned(tensor);
}

/// The same for a result of `bytes` bytes, whose memory other results had before if there are many (results.hpp).
inline Owned make_result(std::int64_t rows, std::int64_t size, std::int32_t dtype, Placement placement, std::size_t bytes) {
    const Functions& torch = functions();
    if (placement.device_type == torch.cuda() || bytes < ResultMemory::large || torch.tensor_around == nullptr)
        return make_tensor(rows, size, dtype, placement);
    const std::int64_t sizes[] = {rows, size}, strides[] = {size, 1};
    void* const memory = ResultMemory::instance().take(bytes);
    Tensor tensor = nullptr;
    const auto destroy = [](void* data, void*) { ResultMemory::instance().give_back(data); };
    const int status = torch.tensor_around(memory, 2, sizes, strides, 0, dtype, placement.device_type, placement.device_index, &tensor,
                                           torch.strided_layout(), nullptr, 0, destroy, nullptr);
    if (status != 0) ResultMemory::instance().give_back(memory);
    check_torch(status, "from_blob");
    return Owned(tensor);
}

/// The arrays of an operation, by position.
struct Signature {
    struct Operand {
        std::string name, segments;
        bool is_output = false;
        std::int64_t row_size = 0;
        int space = -1;  ///< -1: one row that all share
    };
    struct Index {
        std::string name;
        int space = -1;
    };
    std::vector<Operand> operands;
    std::vector<Index> indices;
    std::size_t spaces = 0, inputs = 0;

    explicit Signature(const clebsch_operation* operation) {
        for (std::size_t i = 0; i < clebsch_operation_operand_count(operation); ++i) {
            clebsch_operand_info info = CLEBSCH_OPERAND_INFO_DEFAULTS;
            check(clebsch_operation_operand(operation, i, &info));
            operands.push_back({info.name, info.segments, info.is_output != 0, info.row_size, info.space});
            inputs += info.is_output == 0 ? 1 : 0;
        }
        for (std::size_t i = 0; i < clebsch_operation_index_count(operation); ++i) {
            const char* name = nullptr;
            int from = -1;
            check(clebsch_operation_index(operation, i, &name, &from, nullptr, nullptr));
            indices.push_back({name, from});
        }
        spaces = clebsch_operation_space_count(operation);
    }
};

/// Launches on the processor, or on the current stream of the tensors' GPU, with workspace for it. Throws std::runtime_error.
void launch(const clebsch_plan* plan, const std::vector<clebsch_buffer>& buffers, const std::vector<clebsch_index_buffer>& indices,
            const std::vector<std::int64_t>& rows, Placement placement);

}  // namespace clebsch::torch
