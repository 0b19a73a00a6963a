// The C interface with a GPU: device pointers and streams. Without a GPU or its compiler these tests say so and pass.
#include <clebsch/clebsch.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "describe/operations/registry.hpp"
#include "gpu/can_run.hpp"
#include "support/random_descriptions.hpp"
#include "support/run_gpu.hpp"

using namespace clebsch;
using namespace clebsch::testing;

TEST_CASE("a plan made through the C interface runs on device pointers and a stream, and in a recorded graph") {
    if (!can_run_on_gpu()) return;
    const char* const text = "in=32x0e+32x1o\nedge=0e+1o\nout=0e+1o";
    clebsch_operation* operation = nullptr;
    REQUIRE(clebsch_operation_build("convolution", text, &operation) == CLEBSCH_OK);
    clebsch_plan_options options = CLEBSCH_PLAN_OPTIONS_DEFAULTS;
    options.dtype = CLEBSCH_FLOAT64;
    options.device = "cuda";
    clebsch_plan* plan = nullptr;
    REQUIRE_MESSAGE(clebsch_plan_prepare(operation, &options, &plan) == CLEBSCH_OK, std::string(clebsch_last_error()));
    const Polynomial polynomial = std::get<Polynomial>(build_operation("convolution", parse_option_lines(text)));
    random::Engine engine(3);
    random::Limits limits;
    limits.work = 1e6;
    ReferenceInputs inputs = random::inputs(engine, polynomial, limits);
    while (inputs.rows.at("edge") == 0 || inputs.rows.at("node") == 0) inputs = random::inputs(engine, polynomial, limits);

    const gpu::Device& device = gpu::Device::get(0);
    std::vector<gpu::Memory> memory;
    std::vector<clebsch_buffer> buffers;
    std::vector<double> host;
    for (const Operand& operand : polynomial.operands) {
        const std::string space = polynomial.space_of(operand);
        const std::int64_t rows = space.empty() ? 1 : inputs.rows.at(space);
        host.assign(static_cast<std::size_t>(rows * operand.size()), 7.0);
        if (operand.role == Role::input) {
            const ReferenceArray& numbers = inputs.arrays.at(operand.name);
            host.assign(numbers.begin(), numbers.end());
        }
        memory.push_back(on_device(device, host.data(), host.size() * sizeof(double)));
        buffers.push_back({memory.back().data(), CLEBSCH_FLOAT64, rows, 0});
    }
    std::vector<clebsch_index_buffer> indices;
    for (const Index& index : polynomial.indices) {
        const std::vector<std::int64_t>& values = inputs.indices.at(index.name);
        memory.push_back(on_device(device, values.data(), values.size() * sizeof(std::int64_t)));
        indices.push_back({memory.back().data(), CLEBSCH_INT64, std::ssize(values)});
    }
    std::vector<std::int64_t> rows;
    for (std::size_t s = 0; s < clebsch_operation_space_count(operation); ++s)
        rows.push_back(inputs.rows.at(clebsch_operation_space(operation, s)));
    std::size_t bytes = 0;
    REQUIRE(clebsch_plan_workspace_size(plan, rows.data(), rows.size(), 0, &bytes) == CLEBSCH_OK);
    const gpu::Memory workspace(device, bytes + 256);
    clebsch_call call = CLEBSCH_CALL_DEFAULTS;
    call.buffers = buffers.data();
    call.buffer_count = buffers.size();
    call.indices = indices.data();
    call.index_count = indices.size();
    call.rows = rows.data();
    call.space_count = rows.size();
    call.workspace = workspace.data();
    call.workspace_bytes = bytes;
    const auto error = [&] {
        double largest = 0;
        for (const auto& [name, numbers] : evaluate(polynomial, inputs)) {
            const auto o = static_cast<std::size_t>(polynomial.find_operand(name));
            std::vector<double> result(numbers.size());
            device.from_device(result.data(), memory[o].data(), result.size() * sizeof(double));
            largest = std::max(largest, relative_error(ReferenceArray(result.begin(), result.end()), numbers));
        }
        return largest;
    };
    const gpu::Stream stream = device.make_stream();
    REQUIRE_MESSAGE(clebsch_launch_on_stream(plan, &call, stream) == CLEBSCH_OK, std::string(clebsch_last_error()));
    CHECK(error() < 1e-12);
    const gpu::CapturedWork recorded(device, stream, [&] { CHECK(clebsch_launch_on_stream(plan, &call, stream) == CLEBSCH_OK); });
    recorded.launch(stream);
    CHECK(error() < 1e-12);
    REQUIRE(clebsch_launch(plan, &call) == CLEBSCH_OK);
    CHECK(error() < 1e-12);
    int index_error = -1;
    CHECK(clebsch_plan_index_error(plan, &index_error) == CLEBSCH_OK);
    CHECK(index_error == 0);
    buffers[0].rows += 1;
    CHECK(clebsch_launch_on_stream(plan, &call, stream) == CLEBSCH_INVALID_ARGUMENT);
    device.destroy_stream(stream);
    clebsch_plan_destroy(plan);
    clebsch_operation_destroy(operation);
}

TEST_CASE("an order made through the C interface on a GPU is the processor's") {
    if (!can_run_on_gpu()) return;
    const gpu::Device& device = gpu::Device::get(0);
    random::Engine engine(5);
    for (const std::int64_t count : {0, 1, 700, 70'000})
        for (const std::int64_t targets : {1, 90, 100'000}) {
            std::vector<std::int32_t> index;
            for (std::int64_t i = 0; i < count; ++i)
                index.push_back(engine() % 8 == 0 ? -1 : static_cast<std::int32_t>(engine() % static_cast<std::uint64_t>(targets)));
            const gpu::Memory memory = on_device(device, index.data(), index.size() * sizeof(std::int32_t));
            const clebsch_index_buffer here{index.data(), CLEBSCH_INT32, count}, there{memory.data(), CLEBSCH_INT32, count};
            clebsch_row_order *on_host = nullptr, *on_gpu = nullptr;
            REQUIRE(clebsch_row_order_create(nullptr, &here, targets, &on_host) == CLEBSCH_OK);
            REQUIRE_MESSAGE(clebsch_row_order_create("cuda", &there, targets, &on_gpu) == CLEBSCH_OK, std::string(clebsch_last_error()));
            clebsch_index_buffer expected[2], found[2];
            REQUIRE(clebsch_row_order_indices(on_host, &expected[0], &expected[1]) == CLEBSCH_OK);
            REQUIRE(clebsch_row_order_indices(on_gpu, &found[0], &found[1]) == CLEBSCH_OK);
            for (int which = 0; which < 2; ++which) {
                CHECK(found[which].count == count);
                std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
                if (count > 0) device.from_device(numbers.data(), found[which].data, numbers.size() * sizeof(std::int64_t));
                const auto* const known = static_cast<const std::int64_t*>(expected[which].data);
                CHECK(numbers == std::vector<std::int64_t>(known, known + count));
            }
            clebsch_row_order_destroy(on_host);
            clebsch_row_order_destroy(on_gpu);
        }
    const std::vector<std::int32_t> wrong = {0, 3, 1};
    const gpu::Memory memory = on_device(device, wrong.data(), wrong.size() * sizeof(std::int32_t));
    const clebsch_index_buffer there{memory.data(), CLEBSCH_INT32, 3};
    clebsch_row_order* order = nullptr;
    CHECK(clebsch_row_order_create("cuda", &there, 3, &order) == CLEBSCH_INVALID_ARGUMENT);
}

TEST_CASE("receivers that do not ascend leave NaN in the outputs of a plan that was asked for it") {
    if (!can_run_on_gpu()) return;
    const gpu::Device& device = gpu::Device::get(0);
    constexpr std::int64_t nodes = 50, edges = 300'000;
    std::vector<std::int32_t> sender(edges), receiver(edges);
    for (std::int64_t i = 0; i < edges; ++i) {
        sender[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % nodes);
        receiver[static_cast<std::size_t>(i)] = i % 3 == 0 || (i > 1'000 && i < 60'000) ? -1 : static_cast<std::int32_t>(i * nodes / edges);
    }
    std::vector<std::int32_t> late = receiver, far = receiver;
    std::swap(late[edges - 1], late[edges - 20'000]);
    std::swap(far[1'000], far[60'001]);
    clebsch_operation* operation = nullptr;
    REQUIRE(clebsch_operation_build("convolution", "in=8x0e+8x1o\nedge=0e+1o\nout=0e+1o", &operation) == CLEBSCH_OK);
    for (const int dtype : {CLEBSCH_FLOAT32, CLEBSCH_FLOAT64, CLEBSCH_BFLOAT16, CLEBSCH_FLOAT16}) {
        CAPTURE(dtype);
        clebsch_plan_options options = CLEBSCH_PLAN_OPTIONS_DEFAULTS;
        options.dtype = dtype;
        options.device = "cuda";
        options.nan_if_unsorted = 1;
        clebsch_plan* plan = nullptr;
        REQUIRE_MESSAGE(clebsch_plan_prepare(operation, &options, &plan) == CLEBSCH_OK, std::string(clebsch_last_error()));
        std::vector<gpu::Memory> memory;
        std::vector<clebsch_buffer> buffers;
        std::vector<std::uint16_t> out;
        std::vector<std::int64_t> rows;
        for (std::size_t s = 0; s < clebsch_operation_space_count(operation); ++s)
            rows.push_back(clebsch_operation_space(operation, s) == std::string("node") ? nodes : edges);
        for (std::size_t i = 0; i < clebsch_operation_operand_count(operation); ++i) {
            clebsch_operand_info info = CLEBSCH_OPERAND_INFO_DEFAULTS;
            REQUIRE(clebsch_operation_operand(operation, i, &info) == CLEBSCH_OK);
            const std::int64_t count = rows[static_cast<std::size_t>(info.space)];
            const std::vector<std::byte> zeros(static_cast<std::size_t>(count * info.row_size) * size_of(static_cast<DType>(dtype)));
            memory.push_back(on_device(device, zeros.data(), zeros.size()));
            buffers.push_back({memory.back().data(), dtype, count, 0});
            if (info.is_output != 0) out.resize(zeros.size() / 2);
        }
        std::size_t bytes = 0;
        REQUIRE(clebsch_plan_workspace_size(plan, rows.data(), rows.size(), 0, &bytes) == CLEBSCH_OK);
        const gpu::Memory workspace(device, bytes + 256), senders = on_device(device, sender.data(), sender.size() * 4);
        for (const auto& [index, shown] : {std::pair{&receiver, false}, {&late, true}, {&far, true}, {&receiver, false}}) {
            const gpu::Memory receivers = on_device(device, index->data(), index->size() * 4);
            const clebsch_index_buffer indices[] = {{senders.data(), CLEBSCH_INT32, edges}, {receivers.data(), CLEBSCH_INT32, edges}};
            clebsch_call call = CLEBSCH_CALL_DEFAULTS;
            call.buffers = buffers.data();
            call.buffer_count = buffers.size();
            call.indices = indices;
            call.index_count = 2;
            call.rows = rows.data();
            call.space_count = rows.size();
            call.workspace = workspace.data();
            call.workspace_bytes = bytes;
            REQUIRE_MESSAGE(clebsch_launch(plan, &call) == CLEBSCH_OK, std::string(clebsch_last_error()));
            device.from_device(out.data(), memory.back().data(), out.size() * 2);
            CHECK(std::ranges::count(out, shown ? 0xffff : 0) == std::ssize(out));
        }
        clebsch_plan_destroy(plan);
    }
    clebsch_operation_destroy(operation);
}
