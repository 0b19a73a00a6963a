// libclebsch_jax.so as XLA calls it, without XLA: call frames made by hand, an interface that keeps errors.
#include <doctest/doctest.h>
#include <clebsch/clebsch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

#include "xla_ffi.h"

/// XLA's errors are its own: here code and message.
struct xla_ffi_error {
    int code;
    std::string message;
};

extern "C" {
CLEBSCH_API xla_ffi_error* clebsch_jax_host_instantiate(xla_ffi_call_frame* frame);
CLEBSCH_API xla_ffi_error* clebsch_jax_host_execute(xla_ffi_call_frame* frame);
CLEBSCH_API xla_ffi_error* clebsch_jax_gpu_execute(xla_ffi_call_frame* frame);
CLEBSCH_API clebsch_status clebsch_jax_gpu_workspace_size(const char* hash, const char* text, int dtype, int device, int deterministic,
                                                          const int64_t* rows, size_t space_count, size_t* bytes, char* message,
                                                          size_t message_size);
}

namespace {

using Handler = xla_ffi_error* (*)(xla_ffi_call_frame*);

const xla_ffi_api& interface_of_the_test() {
    static const xla_ffi_api api = [] {
        xla_ffi_api made{};
        made.struct_size = sizeof made;
        made.error_create = [](xla_ffi_error_create* create) { return new xla_ffi_error{create->code, create->message}; };
        made.device_ordinal_get = [](xla_ffi_device_ordinal_get*) { return new xla_ffi_error{xla_ffi_internal, "no device"}; };
        return made;
    }();
    return api;
}

/// A call as XLA makes it. Arrays are as long as their shapes say and not a byte longer.
struct Frame {
    struct Array {
        int dtype;
        std::vector<std::int64_t> dims;
        std::vector<unsigned char> bytes;
    };
    std::vector<Array> arguments, results;
    std::string hash, text;
    std::int64_t dtype = CLEBSCH_FLOAT32, deterministic = 0;
    std::vector<std::int64_t> rows;
    int scalar_type = xla_ffi_s64;

    template <class Number>
    void add(int type, std::vector<std::int64_t> dims, const std::vector<Number>& values) {
        arguments.push_back({type, std::move(dims), std::vector<unsigned char>(values.size() * sizeof(Number))});
        if (!values.empty()) std::memcpy(arguments.back().bytes.data(), values.data(), values.size() * sizeof(Number));
    }

    /// Null: it went well.
    std::unique_ptr<xla_ffi_error> call(Handler handler) {
        const auto buffers_of = [](std::vector<Array>& arrays, std::vector<xla_ffi_buffer>& buffers, std::vector<xla_ffi_buffer*>& pointers,
                                   std::vector<int>& types) {
            for (Array& array : arrays)
                buffers.push_back({sizeof(xla_ffi_buffer), nullptr, array.dtype, array.bytes.data(),
                                   static_cast<std::int64_t>(array.dims.size()), array.dims.data()});
            for (xla_ffi_buffer& buffer : buffers) pointers.push_back(&buffer);
            types.assign(arrays.size(), 1);
            return xla_ffi_buffers{sizeof(xla_ffi_buffers), nullptr, static_cast<std::int64_t>(arrays.size()), types.data(),
                                   pointers.data()};
        };
        std::array<std::vector<xla_ffi_buffer>, 2> buffers;
        std::array<std::vector<xla_ffi_buffer*>, 2> pointers;
        std::array<std::vector<int>, 2> types;
        xla_ffi_span hash_span{hash.data(), hash.size()}, text_span{text.data(), text.size()};
        xla_ffi_scalar dtype_scalar{scalar_type, &dtype}, deterministic_scalar{xla_ffi_s64, &deterministic};
        xla_ffi_array rows_array{xla_ffi_s64, rows.size(), rows.data()};
        std::array<std::string, 5> words{"deterministic", "dtype", "hash", "rows", "text"};
        std::array<xla_ffi_span, 5> names{};
        std::array<xla_ffi_span*, 5> name_pointers{};
        for (std::size_t i = 0; i < words.size(); ++i) names[i] = {words[i].data(), words[i].size()}, name_pointers[i] = &names[i];
        std::array<int, 5> kinds{xla_ffi_attribute_scalar, xla_ffi_attribute_scalar, xla_ffi_attribute_string, xla_ffi_attribute_array,
                                 xla_ffi_attribute_string};
        std::array<void*, 5> values{&deterministic_scalar, &dtype_scalar, &hash_span, &rows_array, &text_span};
        xla_ffi_call_frame frame{};
        frame.struct_size = sizeof frame;
        frame.api = &interface_of_the_test();
        frame.arguments = buffers_of(arguments, buffers[0], pointers[0], types[0]);
        frame.results = buffers_of(results, buffers[1], pointers[1], types[1]);
        frame.attributes = {sizeof(xla_ffi_attributes), nullptr, 5, kinds.data(), name_pointers.data(), values.data()};
        return std::unique_ptr<xla_ffi_error>(handler(&frame));
    }
};

/// A convolution on a small graph, what XLA passes for it and what the C interface makes of the same arrays.
struct Example {
    clebsch::Operation operation = clebsch::Operation::build("convolution", "in=5x0e+3x1o\nedge=0e+1o\nout=0e+1o");
    clebsch::Rows rows{{"node", 4}, {"edge", 7}};
    std::vector<std::int32_t> sender{0, 3, 1, 2, 3, 0, 1}, receiver{0, 0, 1, 1, 3, 3, 3};

    Frame frame(bool wide = false) const {
        Frame made;
        made.hash = operation.hash();
        made.text = operation.text();
        for (const std::string& space : operation.spaces()) made.rows.push_back(rows.at(space));
        int seed = 0;
        for (const clebsch::Operand& operand : operation.operands()) {
            const std::int64_t count = rows.at(operand.space);
            std::vector<float> values(static_cast<std::size_t>(count * operand.row_size));
            for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + seed));
            ++seed;
            if (operand.is_output)
                made.results.push_back({xla_ffi_f32, {count, operand.row_size}, std::vector<unsigned char>(values.size() * 4, 0x7f)});
            else made.add(xla_ffi_f32, {count, operand.row_size}, values);
        }
        for (const auto& index : {sender, receiver}) {
            const auto count = static_cast<std::int64_t>(index.size());
            if (wide) made.add(xla_ffi_s64, {count}, std::vector<std::int64_t>(index.begin(), index.end()));
            else made.add(xla_ffi_s32, {count}, index);
        }
        return made;
    }
};

std::vector<float> floats(const Frame::Array& array) {
    std::vector<float> values(array.bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
    return values;
}

/// Runs it; the result.
std::vector<float> result_of(Frame frame) {
    const auto error = frame.call(clebsch_jax_host_execute);
    REQUIRE_MESSAGE(error == nullptr, (error ? error->message : ""));
    return floats(frame.results.at(0));
}

void refused(Frame frame, int code, const char* message) {
    const auto error = frame.call(clebsch_jax_host_execute);
    REQUIRE(error != nullptr);
    CHECK_MESSAGE(error->message.find(message) != std::string::npos, error->message);
    CHECK(error->code == code);
}

}  // namespace

TEST_CASE("what XLA asks at registration is answered, and nothing runs") {
    for (const Handler handler : {clebsch_jax_host_instantiate, clebsch_jax_host_execute, clebsch_jax_gpu_execute}) {
        xla_ffi_metadata metadata{};
        xla_ffi_metadata_extension extension{{sizeof(xla_ffi_metadata_extension), xla_ffi_extension_metadata, nullptr}, &metadata};
        xla_ffi_extension unknown{sizeof unknown, 77, &extension.base};
        xla_ffi_call_frame frame{};
        frame.api = &interface_of_the_test();
        frame.extensions = &unknown;
        CHECK(handler(&frame) == nullptr);
        CHECK(metadata.version.major == xla_ffi_major);
        CHECK(metadata.version.minor == xla_ffi_minor);
        CHECK(metadata.traits == xla_ffi_command_buffer_compatible);
    }
}

TEST_CASE("a call gives what the C++ interface gives, through both kinds of indices, with sizes known or not") {
    const Example example;
    const Frame frame = example.frame();
    std::map<std::string, std::vector<double>> inputs;
    clebsch::Arrays arrays;
    std::size_t next = 0;
    for (const clebsch::Operand& operand : example.operation.operands())
        if (!operand.is_output) {
            const std::vector<float> values = floats(frame.arguments.at(next++));
            inputs[operand.name].assign(values.begin(), values.end());
        }
    for (const auto& [name, values] : inputs) arrays.emplace(name, values);
    clebsch::Indices indices;
    indices.emplace("sender", example.sender);
    indices.emplace("receiver", example.receiver);
    std::vector<double> expected(frame.results[0].bytes.size() / sizeof(float));
    clebsch::evaluate_reference(example.operation, example.rows, arrays, indices, {{"out", expected}});

    const std::vector<float> found = result_of(frame);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::fabs(found[i] - expected[i]) < 1e-5);
    CHECK(result_of(example.frame(true)) == found);
    Frame symbolic = example.frame();
    std::ranges::fill(symbolic.rows, -1);
    CHECK(result_of(symbolic) == found);
    symbolic.rows.clear();
    CHECK(result_of(symbolic) == found);
    Frame ordered = example.frame();
    ordered.deterministic = 1;
    CHECK(result_of(ordered) == found);
    Frame made_ahead = example.frame();
    CHECK(made_ahead.call(clebsch_jax_host_instantiate) == nullptr);
}

TEST_CASE("entries that are no row leave theirs out, and XLA's arrays stay as they are") {
    const std::int32_t most = std::numeric_limits<std::int32_t>::max(), least = std::numeric_limits<std::int32_t>::min();
    for (const std::int32_t nowhere : {-1, 4, most, least}) {
        for (const bool wide : {false, true}) {
            Example left_out, padded;
            left_out.receiver[2] = -1;
            left_out.sender[5] = -1;
            padded.receiver[2] = nowhere;
            padded.sender[5] = nowhere;
            Frame frame = padded.frame(wide);
            const auto before = frame.arguments.back().bytes;
            CHECK(frame.call(clebsch_jax_host_execute) == nullptr);
            CHECK(frame.arguments.back().bytes == before);
            CHECK(floats(frame.results[0]) == result_of(left_out.frame()));
        }
    }
    Example none;
    none.rows = {{"node", 0}, {"edge", 0}};
    none.sender.clear();
    none.receiver.clear();
    CHECK(result_of(none.frame()).empty());
}

TEST_CASE("what does not fit is an error of XLA's, with a code and a message") {
    const Example example;
    Frame frame = example.frame();
    frame.hash = "short";
    refused(frame, xla_ffi_internal, "has 5 digits, expected 32");
    frame = example.frame();
    frame.hash = std::string(32, '0');
    frame.text = "nonsense";
    refused(frame, xla_ffi_invalid_argument, "nonsense");
    frame = example.frame();
    frame.scalar_type = xla_ffi_f32;
    refused(frame, xla_ffi_internal, "attribute dtype is not an int64");
    frame = example.frame();
    frame.arguments.pop_back();
    refused(frame, xla_ffi_internal, "do not fit the operation");
    frame = example.frame();
    frame.results.clear();
    refused(frame, xla_ffi_internal, "do not fit the operation");
    frame = example.frame();
    frame.arguments[0].dims = {4 * frame.arguments[0].dims[1]};
    refused(frame, xla_ffi_internal, "an array has 1 dimensions, expected 2");
    frame = example.frame();
    frame.arguments[0].dims = {frame.arguments[0].dims[1], 4};
    refused(frame, xla_ffi_internal, "numbers per row");
    frame = example.frame();
    frame.arguments[0].dtype = xla_ffi_f64;
    refused(frame, xla_ffi_internal, "dtype is not the operation's");
    frame = example.frame();
    frame.arguments.back().dims = {7, 1};
    refused(frame, xla_ffi_internal, "an index has 2 dimensions, expected 1");
    frame = example.frame();
    frame.arguments.back().dtype = xla_ffi_f32;
    refused(frame, xla_ffi_internal, "neither int32 nor int64");
    Example falling;
    std::ranges::reverse(falling.receiver);
    refused(falling.frame(), xla_ffi_invalid_argument, "index 'receiver': declared as sorted");
    Frame on_gpu = example.frame();
    const auto error = on_gpu.call(clebsch_jax_gpu_execute);
    REQUIRE(error != nullptr);
    CHECK(error->message == "no device");
}

TEST_CASE("messages of the workspace's size end where the caller's memory does") {
    std::size_t bytes = 0;
    std::vector<char> message(12, 'x');
    const std::string hash(32, '1');
    CHECK(clebsch_jax_gpu_workspace_size(hash.c_str(), "nonsense", CLEBSCH_FLOAT32, 0, 0, nullptr, 0, &bytes, message.data(),
                                         message.size()) != CLEBSCH_OK);
    CHECK(std::strlen(message.data()) == message.size() - 1);
}

TEST_CASE("several threads meet a new operation at once") {
    Example example;
    example.operation = clebsch::Operation::build("convolution", "in=2x0e+3x1o\nedge=0e+1o\nout=0e+1o\nweights=none");
    std::array<std::vector<float>, 4> found;
    std::vector<std::thread> threads;
    for (std::vector<float>& own : found)
        threads.emplace_back([&own, &example] {
            for (int i = 0; i < 20; ++i) {
                Frame frame = example.frame(i % 2 == 1);
                if (frame.call(clebsch_jax_host_execute) == nullptr) own = floats(frame.results[0]);
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK_FALSE(found[0].empty());
    for (const std::vector<float>& own : found) CHECK(own == found[0]);
}
