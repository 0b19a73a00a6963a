// A launch takes no memory: every operator new of the process is counted while one runs.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "describe/derivative.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/radial_network.hpp"
#include "support/random_descriptions.hpp"
#include "support/run_program.hpp"

namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
    if (counting) ++allocations;
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace clebsch;

namespace {

long allocations_of_launch(const Program& program, std::int64_t count) {
    const ProgramPlan plan(program);
    std::vector<std::vector<float>> arrays;
    std::vector<Buffer> buffers;
    for (std::size_t i = 0; i < program.inputs.size() + program.outputs.size(); ++i) {
        const Value& value = program.values[static_cast<std::size_t>(
            i < program.inputs.size() ? program.inputs[i] : program.outputs[i - program.inputs.size()])];
        const std::int64_t rows = value.space.empty() ? 1 : count;
        arrays.emplace_back(static_cast<std::size_t>(rows * value.size()), 0.7F);
        buffers.push_back({arrays.back().data(), DType::float32, rows, 0});
    }
    std::vector<std::vector<std::int64_t>> values(program.indices.size(), std::vector<std::int64_t>(static_cast<std::size_t>(count), 0));
    std::vector<IndexBuffer> indices;
    for (const auto& index : values) indices.push_back({index.data(), IndexType::int64, count});
    const std::vector<std::int64_t> rows(plan.spaces().size(), count);
    ThreadPool pool(2);
    std::vector<unsigned char> workspace(plan.workspace_bytes(rows, pool.threads()));
    const ParallelFor parallel_for = pool.parallel_for();
    const auto launch = [&] {
        plan.launch({.buffers = buffers, .indices = indices, .rows = rows}, {workspace.data(), workspace.size()}, parallel_for);
    };
    launch();
    allocations = 0;
    counting = true;
    launch();
    counting = false;
    return allocations;
}

}  // namespace

TEST_CASE("a launch allocates nothing: harmonics, a radial network and its gradients, a convolution and its gradients") {
    const std::string lengths[] = {"lengths"}, vector[] = {"vector"};
    RadialOptions options;
    options.outputs = 40;
    CHECK(allocations_of_launch(normalized_harmonics("0e+1o+2e+3o"), 3000) == 0);
    CHECK(allocations_of_launch(vjp(normalized_harmonics("0e+1o+2e+3o"), vector), 3000) == 0);
    CHECK(allocations_of_launch(radial_network(options), 3000) == 0);
    CHECK(allocations_of_launch(vjp(radial_network(options), lengths), 3000) == 0);
    const Polynomial messages = convolution("16x0e+8x1o", "0e+1o", "0e+1o");
    const std::string inputs[] = {messages.operands[0].name, messages.operands[1].name};
    CHECK(allocations_of_launch(as_program(messages), 500) == 0);
    CHECK(allocations_of_launch(as_program(vjp(messages, inputs)), 500) == 0);
}
