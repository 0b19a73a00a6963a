#pragma once
/// The part of XLA's typed foreign-function interface that the handlers use, declared here: version 0.1, which every XLA since jaxlib 0.6
/// accepts, where headers of a newer jaxlib would ask for its own version. Names, order and sizes are the interface's and are compared with
/// an installed jaxlib's headers by a test. Structs begin with their size and a list of extensions; what newer versions append is not read.
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { xla_ffi_major = 0, xla_ffi_minor = 1 };

typedef struct xla_ffi_extension {
    size_t struct_size;
    int type;  ///< xla_ffi_extension_metadata
    struct xla_ffi_extension* next;
} xla_ffi_extension;
enum { xla_ffi_extension_metadata = 1 };

typedef struct xla_ffi_version {
    size_t struct_size;
    xla_ffi_extension* extensions;
    int major, minor;
} xla_ffi_version;

/// What XLA asks of a handler when it is registered, by a call with this extension and nothing else.
typedef struct xla_ffi_metadata {
    size_t struct_size;
    xla_ffi_version version;
    uint32_t traits;
} xla_ffi_metadata;
enum { xla_ffi_command_buffer_compatible = 1 };

typedef struct xla_ffi_metadata_extension {
    xla_ffi_extension base;
    xla_ffi_metadata* metadata;
} xla_ffi_metadata_extension;

typedef struct xla_ffi_error xla_ffi_error;      ///< NULL: fine. A handler's error belongs to XLA
typedef struct xla_ffi_context xla_ffi_context;  ///< of one execution

enum {
    xla_ffi_invalid_argument = 3,
    xla_ffi_not_found = 5,
    xla_ffi_resource_exhausted = 8,
    xla_ffi_unimplemented = 12,
    xla_ffi_internal = 13
};

typedef struct xla_ffi_error_create {
    size_t struct_size;
    xla_ffi_extension* extensions;
    const char* message;
    int code;
} xla_ffi_error_create;

typedef struct xla_ffi_stream_get {
    size_t struct_size;
    xla_ffi_extension* extensions;
    xla_ffi_context* context;
    void* stream;  ///< out: CUstream
} xla_ffi_stream_get;

typedef struct xla_ffi_device_ordinal_get {
    size_t struct_size;
    xla_ffi_extension* extensions;
    xla_ffi_context* context;
    int32_t device_ordinal;  ///< out
} xla_ffi_device_ordinal_get;

typedef struct xla_ffi_api {
    size_t struct_size;
    xla_ffi_extension* extensions;
    xla_ffi_version version;
    const void* internal;
    xla_ffi_error* (*error_create)(xla_ffi_error_create*);
    void* error_get_message;
    void* error_destroy;
    void* handler_register;
    xla_ffi_error* (*stream_get)(xla_ffi_stream_get*);
    void* type_register;
    void* execution_context_get;
    void* state_set;  // this and the next changed between 0.1 and 0.3: no handler here has a state
    void* state_get;
    void* device_memory_allocate;
    void* device_memory_free;
    void* thread_pool_schedule;
    void* thread_pool_num_threads;
    void* future_create;
    void* future_set_available;
    void* future_set_error;
    void* run_id_get;
    xla_ffi_error* (*device_ordinal_get)(xla_ffi_device_ordinal_get*);
} xla_ffi_api;

enum { xla_ffi_s32 = 4, xla_ffi_s64 = 5, xla_ffi_u8 = 6, xla_ffi_f16 = 10, xla_ffi_f32 = 11, xla_ffi_f64 = 12, xla_ffi_bf16 = 16 };

typedef struct xla_ffi_buffer {
    size_t struct_size;
    xla_ffi_extension* extensions;
    int dtype;
    void* data;
    int64_t rank;
    int64_t* dims;
} xla_ffi_buffer;

typedef struct xla_ffi_buffers {
    size_t struct_size;
    xla_ffi_extension* extensions;
    int64_t size;
    int* types;  ///< 1: a buffer
    xla_ffi_buffer** buffers;
} xla_ffi_buffers;

typedef struct xla_ffi_span {
    const char* data;
    size_t size;
} xla_ffi_span;

typedef struct xla_ffi_scalar {
    int dtype;
    void* value;
} xla_ffi_scalar;

typedef struct xla_ffi_array {
    int dtype;
    size_t size;
    void* data;
} xla_ffi_array;

typedef struct xla_ffi_attributes {
    size_t struct_size;
    xla_ffi_extension* extensions;
    int64_t size;
    int* types;  ///< xla_ffi_attribute_...
    xla_ffi_span** names;
    void** values;  ///< xla_ffi_array, xla_ffi_scalar or xla_ffi_span
} xla_ffi_attributes;
enum { xla_ffi_attribute_array = 1, xla_ffi_attribute_scalar = 3, xla_ffi_attribute_string = 4 };

typedef struct xla_ffi_call_frame {
    size_t struct_size;
    xla_ffi_extension* extensions;
    const xla_ffi_api* api;
    xla_ffi_context* context;
    int stage;
    xla_ffi_buffers arguments;
    xla_ffi_buffers results;
    xla_ffi_attributes attributes;
    void* future;
} xla_ffi_call_frame;

#ifdef __cplusplus
}
#endif
