// A launch through the C interface takes no memory: every operator new of the process is counted while one runs.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "clebsch/clebsch.hpp"

namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0};

void* counted(std::size_t size) {
    if (counting) ++allocations;
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

/// Of the second of two launches by two threads.
long allocations_of_launch(const clebsch::Operation& operation, std::int64_t rows_of_each) {
    clebsch_operation* description = nullptr;
    REQUIRE(clebsch_operation_parse(operation.text().c_str(), &description) == CLEBSCH_OK);
    clebsch_plan* plan = nullptr;
    REQUIRE(clebsch_plan_prepare(description, nullptr, &plan) == CLEBSCH_OK);
    const std::vector<std::int64_t> rows(operation.spaces().size(), rows_of_each);
    std::size_t bytes = 0;
    REQUIRE(clebsch_plan_workspace_size(plan, rows.data(), rows.size(), 2, &bytes) == CLEBSCH_OK);
    std::vector<unsigned char> workspace(bytes);
    std::vector<std::vector<float>> arrays;
    std::vector<clebsch_buffer> buffers;
    for (const clebsch::Operand& operand : operation.operands()) {
        const std::int64_t count = operand.space.empty() ? 1 : rows_of_each;
        arrays.emplace_back(static_cast<std::size_t>(count * operand.row_size), 0.7F);
        buffers.push_back({arrays.back().data(), CLEBSCH_FLOAT32, count, 0});
    }
    const std::vector<std::int64_t> zeros(static_cast<std::size_t>(rows_of_each), 0);
    std::vector<clebsch_index_buffer> indices;
    for (std::size_t i = 0; i < operation.indices().size(); ++i) indices.push_back({zeros.data(), CLEBSCH_INT64, rows_of_each});
    clebsch_call call = CLEBSCH_CALL_DEFAULTS;
    call.buffers = buffers.data();
    call.buffer_count = buffers.size();
    call.indices = indices.data();
    call.index_count = indices.size();
    call.rows = rows.data();
    call.space_count = rows.size();
    call.workspace = workspace.data();
    call.workspace_bytes = workspace.size();
    REQUIRE(clebsch_launch(plan, &call) == CLEBSCH_OK);
    allocations = 0;
    counting = true;
    const clebsch_status status = clebsch_launch(plan, &call);
    counting = false;
    CHECK(status == CLEBSCH_OK);
    clebsch_plan_destroy(plan);
    clebsch_operation_destroy(description);
    return allocations;
}

}  // namespace

TEST_CASE("a launch through the C interface allocates nothing") {
    REQUIRE(clebsch_set_num_threads(2) == CLEBSCH_OK);
    const auto convolution = clebsch::Operation::build("convolution", "in=16x0e+8x1o\nedge=0e+1o\nout=0e+1o");
    CHECK(allocations_of_launch(convolution, 500) == 0);
    CHECK(allocations_of_launch(convolution.vjp({"x", "y", "weights"}), 500) == 0);
    CHECK(allocations_of_launch(clebsch::Operation::build("spherical_harmonics", "irreps=0e+1o+2e\nnormalize=true"), 3000) == 0);
    CHECK(allocations_of_launch(clebsch::Operation::build("linear", "in=8x0e+8x1o\nout=8x0e+8x1o"), 500) == 0);
}
