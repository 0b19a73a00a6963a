// How launches behave on a GPU: recorded, in streams and threads side by side, for huge arrays; what they cost the host. Without a GPU or
// its compiler these tests say so and pass.
#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "describe/derivative.hpp"
#include "emit/order.hpp"
#include "gpu/can_run.hpp"
#include "run/gpu/kernels.hpp"
#include "support/channelwise.hpp"
#include "support/network_layers.hpp"
#include "support/run_gpu.hpp"
#include "support/run_gpu_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

/// Inputs over as many rows as `first`, with other numbers and indices.
ReferenceInputs changed(random::Engine& engine, const ReferenceInputs& first) {
    ReferenceInputs inputs = first;
    std::normal_distribution<double> normal;
    for (auto& [name, numbers] : inputs.arrays)
        for (auto& number : numbers) number = normal(engine);
    for (auto& [name, values] : inputs.indices) {
        if (name != "receiver") std::ranges::shuffle(values, engine);
        if (!values.empty()) values[values.size() / 2] = -1;
    }
    return inputs;
}

ReferenceInputs some_rows(random::Engine& engine, const auto& description, const random::Limits& limits) {
    ReferenceInputs inputs = random::inputs(engine, description, limits);
    while (std::ranges::any_of(inputs.rows, [](const auto& rows) { return rows.second < 3; }))
        inputs = random::inputs(engine, description, limits);
    return inputs;
}

Polynomial convolution_gradient() { return random::gradients(convolution(Irreps("32x0e+32x1o"), Irreps("1x0e+1x1o"), Irreps("0e+1o")), 1); }

/// Records a launch, then runs the record on the same arrays with other contents.
template <class Plan, class Description>
void check_recorded(const Plan& plan, const Description& description) {
    random::Engine engine(17);
    random::Limits limits;
    limits.work = 4e6;
    const ReferenceInputs first = some_rows(engine, description, limits);
    DeviceArrays arrays = arrays_of(plan, first);
    const gpu::Memory workspace = workspace_of(plan, arrays.rows());
    const gpu::Stream stream = plan.device().make_stream();
    {
        const gpu::CapturedWork recorded(plan.device(), stream, [&] {
            plan.launch(arrays.call(), {workspace.data(), workspace.bytes()}, stream);
        });
        for (int replay = 0; replay < 3; ++replay) {
            const ReferenceInputs inputs = rounded_inputs(description, replay == 0 ? first : changed(engine, first), plan.dtypes());
            arrays.fill(inputs);
            recorded.launch(stream);
            CHECK(error_against(arrays.result(), evaluate(description, inputs)) < 1e-5);
        }
    }
    plan.device().destroy_stream(stream);
}

}  // namespace

TEST_CASE("a recorded launch runs again on changed numbers and indices") {
    if (!can_run_on_gpu()) return;
    for (const bool deterministic : {false, true}) {
        CAPTURE(deterministic);
        const Polynomial polynomial = convolution_gradient();
        for (const char* schedule : {"", "general"})
            check_recorded(gpu::PolynomialPlan(polynomial, {.schedule = schedule, .deterministic = deterministic}), polynomial);
        const Program program =
            value_and_vjp(network_layers({.features = Irreps("20x0e+9x1o"), .harmonics = Irreps("0e+1o"), .hidden = 24, .layers = 1}),
                          std::vector<std::string>{"vectors"});
        check_recorded(gpu::ProgramPlan(program, {.deterministic = deterministic}), program);
    }
}

TEST_CASE("one plan in several threads and streams at once, each with arrays of its own") {
    if (!can_run_on_gpu()) return;
    const Polynomial polynomial = convolution_gradient();
    for (const bool deterministic : {false, true}) {
        const gpu::PolynomialPlan plan(polynomial, {.deterministic = deterministic});
        constexpr int count = 6;
        std::vector<double> errors(count, INFINITY);
        std::vector<std::thread> threads;
        for (int t = 0; t < count; ++t)
            threads.emplace_back([&, t] {
                random::Engine engine(static_cast<std::uint64_t>(90 + t));
                random::Limits limits;
                limits.work = 2e6;
                limits.rows = 60;
                const ReferenceInputs inputs = rounded_inputs(polynomial, some_rows(engine, polynomial, limits), plan.dtypes());
                const DeviceArrays arrays = arrays_of(plan, inputs);
                const gpu::Memory workspace = workspace_of(plan, arrays.rows());
                const gpu::Stream stream = plan.device().make_stream();
                for (int launch = 0; launch < 20; ++launch) plan.launch(arrays.call(), {workspace.data(), workspace.bytes()}, stream);
                errors[static_cast<std::size_t>(t)] = error_against(arrays.result(), evaluate(polynomial, inputs));
                plan.device().destroy_stream(stream);
            });
        for (std::thread& thread : threads) thread.join();
        for (const double error : errors) CHECK(error < 1e-5);
    }
}

TEST_CASE("third derivatives, in every dtype and layout") {
    if (!can_run_on_gpu()) return;
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir})
        for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
            ConvolutionOptions options;
            options.x.layout = options.out.layout = options.y.layout = layout;
            const Polynomial polynomial =
                random::gradients(convolution(Irreps("16x0e+16x1o"), Irreps("1x0e+1x1o"), Irreps("0e+1o"), options), 3);
            const DType compute = dtype == DType::float64 ? DType::float64 : DType::float32;
            random::Engine engine(5);
            random::Limits limits;
            limits.work = 2e6;
            const ReferenceInputs inputs = some_rows(engine, polynomial, limits);
            for (const bool deterministic : {false, true}) {
                const gpu::PolynomialPlan plan(
                    polynomial,
                    {.dtypes = std::vector<DType>(polynomial.operands.size(), dtype), .compute = compute, .deterministic = deterministic});
                const ReferenceInputs stored = rounded_inputs(polynomial, inputs, plan.dtypes());
                const double allowed = dtype == DType::float64   ? 1e-12
                                       : dtype == DType::float32 ? 5e-6
                                       : dtype == DType::float16 ? 1e-3
                                                                 : 8e-3;
                const double error = error_against(run_gpu(plan, stored), evaluate(polynomial, stored));
                CAPTURE(to_text(dtype));
                CAPTURE(deterministic);
                if (!(error < allowed)) FAIL_CHECK("error " << error << "\n" << plan.explain());
            }
        }
}

TEST_CASE("arrays beyond 2^31 numbers: rows far behind are where they belong") {
    if (!can_run_on_gpu()) return;
    // 4,200,000 edges with 512 weights each: 2.15e9 numbers, 8.6 GB in float32, and as many of their gradients.
    const Polynomial forward = convolution(Irreps("512x0e"), Irreps("1x0e"), Irreps("0e"));
    const Polynomial polynomial = vjp(forward, std::vector<std::string>{"x", "weights"});
    constexpr std::int64_t edges = 4'200'000, nodes = 3'000, size = 512, period = 13;
    const gpu::Device& device = gpu::Device::get(0);
    std::vector<gpu::PolynomialPlan> plans;
    for (const bool deterministic : {false, true})
        for (const char* schedule : {"stream", "general"})
            plans.emplace_back(polynomial, gpu::PlanOptions{.schedule = schedule, .deterministic = deterministic});
    std::vector<std::int64_t> rows;
    for (const std::string& space : plans[0].spaces()) rows.push_back(space == "edge" ? edges : nodes);
    const auto rows_of = [&](std::size_t o) { return polynomial.space_of(polynomial.operands[o]) == "edge" ? edges : nodes; };
    const auto value = [](std::int64_t row, std::int64_t place) { return static_cast<float>((row * 31 + place * 7) % period - 6); };
    std::vector<gpu::Memory> memory;
    std::vector<Buffer> buffers;
    std::size_t workspace_bytes = 0;
    for (const gpu::PolynomialPlan& plan : plans) workspace_bytes = std::max(workspace_bytes, plan.workspace_bytes(rows));
    try {
        memory.emplace_back(device, workspace_bytes);
        for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
            memory.emplace_back(device, static_cast<std::size_t>(rows_of(o) * polynomial.operands[o].size()) * 4);
            buffers.push_back({memory.back().data(), DType::float32, rows_of(o), 0});
        }
    } catch (const Error& error) {
        MESSAGE("skipped: " << error.what());
        return;
    }
    std::vector<float> host;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        if (operand.role != Role::input) continue;
        constexpr std::int64_t piece = period * 4096;  // begins with the same numbers as the next one
        host.clear();
        for (std::int64_t r = 0; r < piece; ++r)
            for (std::int64_t i = 0; i < operand.size(); ++i) host.push_back(value(r, i));
        for (std::int64_t begin = 0; begin < rows_of(o); begin += piece)
            device.to_device(static_cast<std::byte*>(buffers[o].data) + static_cast<std::size_t>(begin * operand.size()) * 4, host.data(),
                             static_cast<std::size_t>(std::min(piece, rows_of(o) - begin) * operand.size()) * 4);
    }
    std::vector<std::int32_t> receiver(static_cast<std::size_t>(edges)), sender(receiver.size());
    for (std::int64_t e = 0; e < edges; ++e) {
        receiver[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(e * nodes / edges);
        sender[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(e * 7919 % nodes);
    }
    std::vector<IndexBuffer> indices;
    for (const Index& index : polynomial.indices) {
        const std::vector<std::int32_t>& numbers = index.name == "receiver" ? receiver : sender;
        memory.push_back(on_device(device, numbers.data(), numbers.size() * 4));
        indices.push_back({memory.back().data(), IndexType::int32, edges});
    }
    const auto output = [&](const char* space) {
        std::size_t o = 0;
        while (polynomial.operands[o].role != Role::output || polynomial.space_of(polynomial.operands[o]) != space) ++o;
        return o;
    };
    const double scale = polynomial.paths[0].scale * polynomial.paths[0].coefficients.entries().front().value;
    std::vector<float> row(size);
    const auto read = [&](std::size_t o, std::int64_t r) {
        device.from_device(row.data(), static_cast<std::byte*>(buffers[o].data) + static_cast<std::size_t>(r * size) * 4, size * 4);
    };
    std::vector<float> all_rows(static_cast<std::size_t>(nodes * size)), of_first_plan;  // of sums, which whole numbers make exact
    for (std::size_t p = 0; p < plans.size(); ++p) {
        const gpu::PolynomialPlan& plan = plans[p];
        CAPTURE(p);  // stream, general; then both in a fixed order
        plan.launch({.buffers = buffers, .indices = indices, .rows = rows}, {memory[0].data(), workspace_bytes}, nullptr);
        CHECK_FALSE(plan.index_error());
        double largest = 0;
        for (const std::int64_t e : {std::int64_t{0}, edges / 2, edges - 2, edges - 1}) {
            read(output("edge"), e);
            const std::int64_t from = sender[static_cast<std::size_t>(e)], to = receiver[static_cast<std::size_t>(e)];
            for (std::int64_t i = 0; i < size; ++i)
                largest = std::max(largest, std::abs(scale * static_cast<double>(value(from, i) * value(e, 0) * value(to, i)) -
                                                     static_cast<double>(row[static_cast<std::size_t>(i)])));
        }
        CHECK(largest < 1e-3);
        const std::int32_t last = sender.back();
        read(output("node"), last);
        std::vector<double> expected(size, 0);
        for (std::size_t e = 0; e < sender.size(); ++e)
            if (sender[e] == last)
                for (std::int64_t i = 0; i < size; ++i)
                    expected[static_cast<std::size_t>(i)] +=
                        scale * static_cast<double>(value(static_cast<std::int64_t>(e), i) * value(static_cast<std::int64_t>(e), 0) *
                                                    value(receiver[e], i));
        largest = 0;
        std::vector<std::size_t> wrong;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const double error = std::abs(expected[i] - static_cast<double>(row[i]));
            if (!(error < 0.05)) wrong.push_back(i);
            largest = std::max(largest, error);
        }
        CAPTURE(wrong.size());
        CAPTURE((wrong.empty() ? std::size_t{0} : wrong.front()));
        CHECK(largest < 0.05);  // of sums of 1,400 products of up to 216
        device.from_device(all_rows.data(), buffers[output("node")].data, all_rows.size() * sizeof(float));
        if (p == 0) of_first_plan = all_rows;
        CHECK(all_rows == of_first_plan);
    }
}

TEST_CASE("a launch takes the host a few microseconds beyond the driver's own") {
    if (!can_run_on_gpu()) return;
    const gpu::Device& device = gpu::Device::get(0);
    const gpu::Stream stream = device.make_stream();
    const auto median = [&](const std::function<void()>& work) {
        std::vector<double> microseconds;
        for (int round = 0; round < 200; ++round) {
            device.synchronize();
            constexpr int launches = 8;  // fewer than the driver's queue holds
            const auto begin = std::chrono::steady_clock::now();
            for (int i = 0; i < launches; ++i) work();
            microseconds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / launches);
        }
        std::ranges::sort(microseconds);
        return microseconds[microseconds.size() / 2];
    };
    const gpu::Memory memory(device, 4096);
    const auto module = gpu::load_kernels(device, {gpu::source_of(emit_order_targets(1))}).front();
    const std::array<std::uint64_t, 7> words{};  // no rows
    MESSAGE("the driver alone: a kernel " << median([&] {
                module->launch({1, 1}, 256, 0, stream, words);
            }) << " us, zeros " << median([&] { device.zero(memory.data(), 64, 64, 64, stream); })
                                          << " us");
    const Polynomial forward = convolution(Irreps("32x0e+32x1o"), Irreps("1x0e+1x1o"), Irreps("0e+1o"));
    for (int order = 0; order < 2; ++order)
        for (const bool deterministic : {false, true}) {
            const Polynomial polynomial = random::gradients(forward, order);
            const gpu::PolynomialPlan plan(polynomial, {.deterministic = deterministic});
            random::Engine engine(3);
            random::Limits limits;
            limits.work = 1e6;
            const DeviceArrays arrays = arrays_of(plan, some_rows(engine, polynomial, limits));
            const gpu::Memory workspace = workspace_of(plan, arrays.rows());
            const Call call = arrays.call();
            const Workspace place{workspace.data(), workspace.bytes()};
            const double alone = median([&] { plan.launch(call, place, stream); });
            std::optional<gpu::CapturedWork> recorded(std::in_place, device, stream, [&] { plan.launch(call, place, stream); });
            const double replayed = median([&] { recorded->launch(stream); });
            const std::string what = std::string(order == 0 ? "forward" : "backward") + (deterministic ? ", sums in a fixed order" : "");
            MESSAGE(what << ": " << alone << " us of the host, recorded " << replayed << " us");
            CHECK(alone < 200);
            device.synchronize();
        }
    device.destroy_stream(stream);
}
