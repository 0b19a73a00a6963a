#pragma once
// The C functions of PyTorch's stable ABI (2.10 and newer) that the operator needs, looked up in the libtorch that is loaded: nothing is
// linked and no header of PyTorch is needed, so that one library serves every version.
#include <cstddef>
#include <cstdint>
#include <string>

namespace clebsch::torch {

/// What passes between PyTorch and a kernel: a number, or a handle that whoever receives it owns.
using Value = std::uint64_t;
using Tensor = void*;
using List = void*;
using Text = void*;
using Library = void*;
/// Results take the arguments' place on the stack.
using Kernel = void (*)(Value* stack, std::uint64_t arguments, std::uint64_t results);

/// 2.10.0, as PyTorch encodes the version that an extension was made for.
constexpr std::uint64_t abi_version = (2ULL << 56) | (10ULL << 48);

/// Functions return 0, or another number after an error that PyTorch has logged.
struct Functions {
    int (*library_define)(const char* name_space, const char* file, std::uint32_t line, Library* result);
    int (*library_implement)(const char* name_space, const char* key, const char* file, std::uint32_t line, Library* result);
    int (*define)(Library library, const char* schema);
    int (*implement)(Library library, const char* name, Kernel kernel, std::uint64_t version);

    int (*list_size)(List list, std::size_t* size);
    int (*list_item)(List list, std::size_t i, Value* value);
    int (*list_make)(std::size_t reserved, List* result);
    int (*list_push)(List list, Value value);
    int (*list_delete)(List list);
    int (*text_size)(Text text, std::size_t* size);
    int (*text_data)(Text text, const char** data);
    int (*text_delete)(Text text);

    int (*tensor_data)(Tensor tensor, void** data);
    int (*tensor_dimensions)(Tensor tensor, std::int64_t* count);
    int (*tensor_sizes)(Tensor tensor, std::int64_t** sizes);      ///< borrowed
    int (*tensor_strides)(Tensor tensor, std::int64_t** strides);  ///< borrowed
    int (*tensor_dtype)(Tensor tensor, std::int32_t* dtype);
    int (*tensor_device)(Tensor tensor, std::int32_t* type);
    int (*tensor_device_index)(Tensor tensor, std::int32_t* index);
    int (*tensor_delete)(Tensor tensor);
    int (*tensor_make)(std::int64_t dimensions, const std::int64_t* sizes, const std::int64_t* strides, std::int32_t dtype,
                       std::int32_t device_type, std::int32_t device_index, Tensor* result);
    /// A tensor of memory that is there, and what to call when it goes. Null before PyTorch 2.11.
    int (*tensor_around)(void* data, std::int64_t dimensions, const std::int64_t* sizes, const std::int64_t* strides, std::int64_t offset,
                         std::int32_t dtype, std::int32_t device_type, std::int32_t device_index, Tensor* result, std::int32_t layout,
                         const std::uint8_t* metadata, std::int64_t metadata_size, void (*destroy)(void* data, void* context),
                         void* context);
    std::int32_t (*strided_layout)();
    int (*call)(const char* operator_name, const char* overload, Value* stack, std::uint64_t version);
    std::int32_t (*contiguous_format)();

    std::int32_t (*float32)();
    std::int32_t (*float64)();
    std::int32_t (*bfloat16)();
    std::int32_t (*float16)();
    std::int32_t (*int32)();
    std::int32_t (*int64)();
    std::int32_t (*uint8)();
    std::int32_t (*cuda)();

    /// The stream of a device that this thread works on; null in builds of PyTorch without CUDA.
    int (*current_cuda_stream)(std::int32_t device_index, void** stream);
    /// Whether the user asked for sums in one order (torch.use_deterministic_algorithms). No part of the stable ABI: yes, if it is not
    /// found.
    bool deterministic() const;

    void* context = nullptr;
    bool (*context_deterministic)(const void* context) = nullptr;
};

/// Throws std::runtime_error naming what is missing.
const Functions& functions();

}  // namespace clebsch::torch
