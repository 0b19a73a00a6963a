#include "torch_functions.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace clebsch::torch {
namespace {

/// The loaded libtorch; a program that has none gets the one its loader finds.
void* open_library(const char* name) {
    void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    return library != nullptr ? library : dlopen(name, RTLD_LAZY);
}

template <class Function>
bool find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    return function != nullptr;
}

Functions load() {
    void* library = open_library("libtorch_cpu.so");
    if (library == nullptr) throw std::runtime_error("libtorch_cpu.so: expected PyTorch's library, " + std::string(dlerror()));
    Functions result{};
    const auto need = [&](const char* name, auto& function) {
        if (!find(library, name, function))
            throw std::runtime_error("libtorch_cpu.so: expected PyTorch 2.10 or newer, " + std::string(name) + " is missing");
    };
    need("aoti_torch_library_init_def", result.library_define);
    need("aoti_torch_library_init_impl", result.library_implement);
    need("aoti_torch_library_def", result.define);
    need("torch_library_impl", result.implement);
    need("torch_list_size", result.list_size);
    need("torch_list_get_item", result.list_item);
    need("torch_new_list_reserve_size", result.list_make);
    need("torch_list_push_back", result.list_push);
    need("torch_delete_list", result.list_delete);
    need("torch_string_length", result.text_size);
    need("torch_string_c_str", result.text_data);
    need("torch_delete_string", result.text_delete);
    need("aoti_torch_get_data_ptr", result.tensor_data);
    need("aoti_torch_get_dim", result.tensor_dimensions);
    need("aoti_torch_get_sizes", result.tensor_sizes);
    need("aoti_torch_get_strides", result.tensor_strides);
    need("aoti_torch_get_dtype", result.tensor_dtype);
    need("aoti_torch_get_device_type", result.tensor_device);
    need("aoti_torch_get_device_index", result.tensor_device_index);
    need("aoti_torch_delete_tensor_object", result.tensor_delete);
    need("aoti_torch_empty_strided", result.tensor_make);
    find(library, "torch_from_blob", result.tensor_around);
    need("aoti_torch_layout_strided", result.strided_layout);
    need("torch_call_dispatcher", result.call);
    need("aoti_torch_memory_format_contiguous_format", result.contiguous_format);
    need("aoti_torch_dtype_float32", result.float32);
    need("aoti_torch_dtype_float64", result.float64);
    need("aoti_torch_dtype_bfloat16", result.bfloat16);
    need("aoti_torch_dtype_float16", result.float16);
    need("aoti_torch_dtype_int32", result.int32);
    need("aoti_torch_dtype_int64", result.int64);
    need("aoti_torch_dtype_uint8", result.uint8);
    need("aoti_torch_device_type_cuda", result.cuda);
    if (void* cuda = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD); cuda != nullptr)
        find(cuda, "aoti_torch_get_current_cuda_stream", result.current_cuda_stream);
    void* (*context)() = nullptr;  // at::globalContext(), whose reference is an address
    if (find(library, "_ZN2at13globalContextEv", context) &&
        find(library, "_ZNK2at7Context23deterministicAlgorithmsEv", result.context_deterministic))
        result.context = context();
    return result;
}

}  // namespace

bool Functions::deterministic() const { return context == nullptr || context_deterministic(context); }

const Functions& functions() {
    static const Functions loaded = load();
    return loaded;
}

}  // namespace clebsch::torch
