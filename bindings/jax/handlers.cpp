/// What XLA calls. An execution finds its operation by the hash among its attributes and forwards pointers to the C interface: nothing of
/// Python runs, nothing is compiled. Operations are prepared when XLA compiles (`instantiate`; for a GPU, whose number is not known then,
/// before the first execution there: `initialize`).
#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>

#include "prepared.hpp"
#include "scratch.hpp"
#include "xla_ffi.h"

namespace clebsch_jax {
namespace {

[[noreturn]] void defect(const std::string& message) { throw Failure(CLEBSCH_INTERNAL_ERROR, "clebsch.jax: " + message); }

xla_ffi_error* error(const xla_ffi_api* api, clebsch_status status, const char* message) {
    xla_ffi_error_create create{sizeof create, nullptr, message, xla_ffi_internal};
    switch (status) {
        case CLEBSCH_INVALID_ARGUMENT:
        case CLEBSCH_PARSE_ERROR:
            create.code = xla_ffi_invalid_argument;
            break;
        case CLEBSCH_NOT_FOUND:
            create.code = xla_ffi_not_found;
            break;
        case CLEBSCH_UNSUPPORTED:
            create.code = xla_ffi_unimplemented;
            break;
        case CLEBSCH_OUT_OF_MEMORY:
            create.code = xla_ffi_resource_exhausted;
            break;
        default:
            break;
    }
    return api->error_create(&create);
}

/// Answers what XLA asks at registration. CUDA graphs may record any of the handlers: a launch puts the same kernels on the stream each
/// time.
bool answered(const xla_ffi_call_frame& frame) {
    for (xla_ffi_extension* extension = frame.extensions; extension != nullptr; extension = extension->next) {
        if (extension->type != xla_ffi_extension_metadata) continue;
        xla_ffi_metadata& metadata = *reinterpret_cast<xla_ffi_metadata_extension*>(extension)->metadata;
        metadata.version.major = xla_ffi_major;
        metadata.version.minor = xla_ffi_minor;
        metadata.traits = xla_ffi_command_buffer_compatible;
        return true;
    }
    return false;
}

/// Runs a stage; what it throws becomes XLA's error.
template <class Stage>
xla_ffi_error* guarded(xla_ffi_call_frame* frame, Stage stage) noexcept {
    if (answered(*frame)) return nullptr;
    try {
        return stage(*frame);
    } catch (const Failure& failure) { return error(frame->api, failure.status, failure.what()); } catch (const std::bad_alloc&) {
        return error(frame->api, CLEBSCH_OUT_OF_MEMORY, "clebsch.jax: out of memory");
    } catch (const std::exception& other) { return error(frame->api, CLEBSCH_INTERNAL_ERROR, other.what()); }
}

struct Attributes {
    Request request;
    const std::int64_t* rows = nullptr;  // per space; -1: the arrays tell
    std::size_t spaces = 0;
};

Attributes attributes_of(const xla_ffi_call_frame& frame, int device) {
    Attributes result;
    result.request.device = device;
    for (std::int64_t i = 0; i < frame.attributes.size; ++i) {
        const xla_ffi_span& span = *frame.attributes.names[i];
        const std::string_view name(span.data, span.size);
        const int type = frame.attributes.types[i];
        void* const value = frame.attributes.values[i];
        if (type == xla_ffi_attribute_string) {
            const auto& text = *static_cast<const xla_ffi_span*>(value);
            if (name == "hash") result.request.hash = {text.data, text.size};
            if (name == "text") result.request.text = {text.data, text.size};
        } else if (type == xla_ffi_attribute_scalar) {
            const auto& number = *static_cast<const xla_ffi_scalar*>(value);
            if (number.dtype != xla_ffi_s64) defect("attribute " + std::string(name) + " is not an int64");
            const std::int64_t given = *static_cast<const std::int64_t*>(number.value);
            if (name == "dtype") result.request.dtype = static_cast<int>(given);
            if (name == "deterministic") result.request.deterministic = given != 0;
        } else if (type == xla_ffi_attribute_array && name == "rows") {
            const auto& numbers = *static_cast<const xla_ffi_array*>(value);
            if (numbers.dtype != xla_ffi_s64) defect("attribute rows is not of int64");
            result.rows = static_cast<const std::int64_t*>(numbers.data);
            result.spaces = numbers.size;
        }
    }
    return result;
}

int array_type(int dtype) {
    switch (dtype) {
        case CLEBSCH_FLOAT64:
            return xla_ffi_f64;
        case CLEBSCH_BFLOAT16:
            return xla_ffi_bf16;
        case CLEBSCH_FLOAT16:
            return xla_ffi_f16;
        default:
            return xla_ffi_f32;
    }
}

/// A call of the C interface, in memory that one thread uses again and again.
struct Arguments {
    std::vector<clebsch_buffer> buffers;
    std::vector<clebsch_index_buffer> indices;
    std::vector<std::int64_t> rows;
    std::vector<std::vector<std::int64_t>> masked;  // indices whose values had to be changed
    clebsch_call call = CLEBSCH_CALL_DEFAULTS;

    void fill(const Prepared& what, const Attributes& attributes, const xla_ffi_call_frame& frame) {
        const auto expected = static_cast<std::int64_t>(what.inputs + what.indices.size());
        if (frame.arguments.size != expected || frame.results.size < static_cast<std::int64_t>(what.outputs))
            defect(std::to_string(frame.arguments.size) + " arguments and " + std::to_string(frame.results.size) +
                   " results do not fit the operation");
        rows.assign(what.spaces, 0);
        for (std::size_t i = 0; i < std::min(what.spaces, attributes.spaces); ++i) rows[i] = std::max<std::int64_t>(attributes.rows[i], 0);
        buffers.clear();
        std::int64_t input = 0, output = 0;
        for (const Prepared::Operand& operand : what.operands) {
            const xla_ffi_buffer& array = operand.is_output ? *frame.results.buffers[output++] : *frame.arguments.buffers[input++];
            if (array.rank != 2) defect("an array has " + std::to_string(array.rank) + " dimensions, expected 2");
            if (array.dims[1] != operand.row_size)
                defect("an array has " + std::to_string(array.dims[1]) + " numbers per row, expected " + std::to_string(operand.row_size));
            if (array.dtype != array_type(what.dtype)) defect("an array's dtype is not the operation's");
            if (operand.space >= 0) rows[static_cast<std::size_t>(operand.space)] = array.dims[0];
            buffers.push_back({array.data, what.dtype, array.dims[0], 0});
        }
        indices.clear();
        for (const Prepared::Index& index : what.indices) {
            const xla_ffi_buffer& array = *frame.arguments.buffers[input++];
            if (array.rank != 1) defect("an index has " + std::to_string(array.rank) + " dimensions, expected 1");
            if (array.dtype != xla_ffi_s32 && array.dtype != xla_ffi_s64) defect("an index is neither int32 nor int64");
            rows[static_cast<std::size_t>(index.from)] = array.dims[0];
            indices.push_back({array.data, array.dtype == xla_ffi_s64 ? CLEBSCH_INT64 : CLEBSCH_INT32, array.dims[0]});
        }
        call.buffers = buffers.data();
        call.buffer_count = buffers.size();
        call.indices = indices.data();
        call.index_count = indices.size();
        call.rows = rows.data();
        call.space_count = rows.size();
    }

    /// Values out of range mean what -1 does, as in JAX's own scatters and as kernels on a GPU read them: padding is left out.
    void mask(const Prepared& what) {
        masked.resize(indices.size());
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const std::int64_t limit = rows[static_cast<std::size_t>(what.indices[i].to)];
            if (indices[i].type == CLEBSCH_INT32) mask_values<std::int32_t>(indices[i], limit, masked[i]);
            else mask_values<std::int64_t>(indices[i], limit, masked[i]);
        }
    }

 private:
    template <class Number>
    static void mask_values(clebsch_index_buffer& index, std::int64_t limit, std::vector<std::int64_t>& changed) {
        using Unsigned = std::make_unsigned_t<Number>;
        const auto* values = static_cast<const Number*>(index.data);
        // One pass without branches: value + 1 as an unsigned number is at most `limit` exactly for -1 <= value < limit.
        const auto most = static_cast<Unsigned>(std::min<std::int64_t>(limit, std::numeric_limits<Number>::max()));
        Unsigned bad = 0;
        for (std::int64_t i = 0; i < index.count; ++i)
            bad |= static_cast<Unsigned>(static_cast<Unsigned>(static_cast<Unsigned>(values[i]) + 1) > most);
        if (bad == 0) return;
        changed.resize(static_cast<std::size_t>(index.count));
        for (std::int64_t i = 0; i < index.count; ++i)
            changed[static_cast<std::size_t>(i)] = values[i] >= 0 && values[i] < limit ? std::int64_t{values[i]} : -1;
        index.data = changed.data();
        index.type = CLEBSCH_INT64;
    }
};

Arguments& arguments_of_this_thread() {
    thread_local Arguments only;
    return only;
}

xla_ffi_error* execute_on_host(const xla_ffi_call_frame& frame) {
    const Attributes attributes = attributes_of(frame, host);
    const Prepared& what = prepared(attributes.request);
    Arguments& arguments = arguments_of_this_thread();
    arguments.fill(what, attributes, frame);
    arguments.mask(what);
    arguments.call.workspace_bytes = what.workspace_bytes(arguments.rows);
    const Scratch scratch(arguments.call.workspace_bytes);
    arguments.call.workspace = scratch.data();
    check(clebsch_launch(what.plan, &arguments.call));
    return nullptr;
}

/// The GPU of a context; an error of XLA's otherwise.
xla_ffi_error* device_of(const xla_ffi_call_frame& frame, int& device) {
    xla_ffi_device_ordinal_get get{sizeof get, nullptr, frame.context, 0};
    xla_ffi_error* const failed = frame.api->device_ordinal_get(&get);
    device = get.device_ordinal;
    return failed;
}

/// The last result is the workspace: memory that XLA plans with, so that CUDA graphs hold addresses that stay.
xla_ffi_error* execute_on_gpu(const xla_ffi_call_frame& frame) {
    int device = 0;
    if (xla_ffi_error* const failed = device_of(frame, device)) return failed;
    xla_ffi_stream_get get{sizeof get, nullptr, frame.context, nullptr};
    if (xla_ffi_error* const failed = frame.api->stream_get(&get)) return failed;
    const Attributes attributes = attributes_of(frame, device);
    const Prepared& what = prepared(attributes.request);
    Arguments& arguments = arguments_of_this_thread();
    arguments.fill(what, attributes, frame);
    if (frame.results.size != static_cast<std::int64_t>(what.outputs) + 1) defect("a call on a GPU has no workspace");
    const xla_ffi_buffer& workspace = *frame.results.buffers[what.outputs];
    arguments.call.workspace = workspace.data;
    arguments.call.workspace_bytes = static_cast<std::size_t>(workspace.dims[0]);
    check(clebsch_launch_on_stream(what.plan, &arguments.call, get.stream));
    return nullptr;
}

}  // namespace
}  // namespace clebsch_jax

extern "C" {

CLEBSCH_API xla_ffi_error* clebsch_jax_host_instantiate(xla_ffi_call_frame* frame) {
    return clebsch_jax::guarded(frame, [](const xla_ffi_call_frame& call) -> xla_ffi_error* {
        clebsch_jax::prepared(clebsch_jax::attributes_of(call, clebsch_jax::host).request);
        return nullptr;
    });
}

CLEBSCH_API xla_ffi_error* clebsch_jax_host_execute(xla_ffi_call_frame* frame) {
    return clebsch_jax::guarded(frame, clebsch_jax::execute_on_host);
}

CLEBSCH_API xla_ffi_error* clebsch_jax_gpu_initialize(xla_ffi_call_frame* frame) {
    return clebsch_jax::guarded(frame, [](const xla_ffi_call_frame& call) -> xla_ffi_error* {
        int device = 0;
        if (xla_ffi_error* const failed = clebsch_jax::device_of(call, device)) return failed;
        clebsch_jax::prepared(clebsch_jax::attributes_of(call, device).request);
        return nullptr;
    });
}

CLEBSCH_API xla_ffi_error* clebsch_jax_gpu_execute(xla_ffi_call_frame* frame) {
    return clebsch_jax::guarded(frame, clebsch_jax::execute_on_gpu);
}

/// Bytes of the workspace that a call on GPU `device` with these rows per space has as its last result: asked while JAX compiles.
CLEBSCH_API clebsch_status clebsch_jax_gpu_workspace_size(const char* hash, const char* text, int dtype, int device, int deterministic,
                                                          const int64_t* rows, size_t space_count, size_t* bytes, char* message,
                                                          size_t message_size) {
    try {
        const clebsch_jax::Prepared& what = clebsch_jax::prepared({hash, text, dtype, device, deterministic != 0});
        *bytes = what.workspace_bytes({rows, rows + space_count});
        return CLEBSCH_OK;
    } catch (const clebsch_jax::Failure& failure) {
        std::snprintf(message, message_size, "%s", failure.what());
        return failure.status;
    } catch (const std::exception& other) {
        std::snprintf(message, message_size, "%s", other.what());
        return CLEBSCH_INTERNAL_ERROR;
    }
}

}  // extern "C"
