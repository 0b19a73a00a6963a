// Rows that lie more than 2^31 numbers apart, and row numbers beyond 2^31: no offset on the way to a kernel may be 32 bits wide. The memory
// is promised, not given: only the pages that a launch touches exist.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <random>

#include "base/error.hpp"
#include "describe/text.hpp"
#include "support/any_description.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

class SparseMemory {
 public:
    explicit SparseMemory(std::size_t bytes)
        : bytes_(bytes), data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
    ~SparseMemory() {
        if (given()) ::munmap(data_, bytes_);
    }
    SparseMemory(const SparseMemory&) = delete;
    SparseMemory& operator=(const SparseMemory&) = delete;
    bool given() const { return data_ != MAP_FAILED; }
    std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
    std::size_t bytes_;
    void* data_;
};

/// Runs with rows so far apart that the last one begins more than 2^31 numbers after the first, in every operand that has several.
std::map<std::string, ReferenceArray> run_far(const PolynomialPlan& plan, const ReferenceInputs& inputs) {
    const Polynomial& polynomial = plan.polynomial();
    std::vector<std::unique_ptr<SparseMemory>> memories;
    std::vector<Buffer> buffers;
    const auto number = [&](std::size_t o, std::int64_t row, std::int64_t i) {
        return memories[o]->data() + static_cast<std::size_t>(row * buffers[o].row_stride + i) * size_of(plan.dtypes()[o]);
    };
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        const std::string space = polynomial.space_of(operand);
        const std::int64_t rows = space.empty() ? 1 : inputs.rows.at(space);
        const std::int64_t between = std::max<std::int64_t>(1, rows - 1),
                           stride = ((std::int64_t{1} << 31) + 64) / between + operand.size();
        memories.push_back(
            std::make_unique<SparseMemory>(static_cast<std::size_t>((rows - 1) * stride + operand.size()) * size_of(plan.dtypes()[o])));
        REQUIRE_MESSAGE(memories.back()->given(), "this test needs a system that promises memory (vm.overcommit_memory is not 2)");
        buffers.push_back({.data = memories.back()->data(), .dtype = plan.dtypes()[o], .rows = rows, .row_stride = stride});
        if (operand.role == Role::output) continue;
        const ReferenceArray& numbers = inputs.arrays.at(operand.name);
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t i = 0; i < operand.size(); ++i)
                store_number(number(o, r, i), plan.dtypes()[o], numbers[static_cast<std::size_t>(r * operand.size() + i)]);
    }
    std::vector<StoredIndex> stored;
    std::vector<IndexBuffer> indices;
    for (const Index& index : polynomial.indices) stored.emplace_back(inputs.indices.at(index.name), IndexType::int32, 0);
    for (const StoredIndex& index : stored) indices.push_back(index.buffer());
    std::vector<std::int64_t> rows;
    for (const std::string& space : plan.spaces()) rows.push_back(space.empty() ? 1 : inputs.rows.at(space));
    std::vector<std::byte> workspace(plan.workspace_bytes(rows, 1));
    plan.launch({.buffers = buffers, .indices = indices, .rows = rows}, {.data = workspace.data(), .bytes = workspace.size()}, {});
    std::map<std::string, ReferenceArray> outputs;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        if (operand.role != Role::output) continue;
        for (std::int64_t r = 0; r < buffers[o].rows; ++r)
            for (std::int64_t i = 0; i < operand.size(); ++i)
                outputs[operand.name].push_back(load_number(number(o, r, i), plan.dtypes()[o]));
    }
    return outputs;
}

}  // namespace

TEST_CASE("rows more than 2^31 numbers apart, read and written by every family, gathered and scattered") {
    struct Case {
        std::string family;
        const char* operation;
        OptionTexts options;
    };
    const Case cases[] = {
        {"fold", "convolution", {{"in", "8x0e+8x1o"}, {"edge", "0e+1o"}, {"out", "0e+1o"}}},
        {"mix", "linear", {{"in", "8x0e+8x1o"}, {"out", "9x0e+7x1o"}, {"weights", "per_row"}}},
        {"mix", "linear", {{"in", "8x0e+8x1o"}, {"out", "9x0e+7x1o"}, {"weights", "species"}, {"x_layout", "ir_mul"}}},
        {"terms", "symmetric_contraction", {{"in", "8x0e+8x1o"}, {"out", "8x0e+8x1o"}, {"correlation", "2"}}},
        {"lanes", "convolution", {{"in", "2x0e+2x1o"}, {"edge", "0e+1o"}, {"out", "0e+1o"}}},
        {"general", "convolution", {{"in", "3x0e+2x1o"}, {"edge", "0e+1o"}, {"out", "0e+1o"}}},
    };
    std::mt19937_64 random(20261204);
    for (const Case& one : cases) {
        CAPTURE(one.family);
        Description description = build_operation(one.operation, one.options);
        for (int order = 0; order <= 1; ++order) {
            if (order > 0) description = gradient_of(description);
            const Polynomial& polynomial = std::get<Polynomial>(description);
            const ReferenceInputs call = random_call(description, random, {{"row", 4}, {"edge", 6}, {"node", 3}, {"element", 2}});
            const Arrays reference = evaluate(description, call);
            for (const DType dtype : {DType::float32, DType::bfloat16}) {
                PlanOptions options{.dtypes = {}, .compute = DType::float32, .instruction_set = {}, .family = one.family};
                for (const Operand& operand : polynomial.operands)  // 16-bit arrays are staged, the others read where they are
                    options.dtypes.push_back(operand.role == Role::output ? DType::float32 : dtype);
                const ReferenceInputs rounded_call = rounded_inputs(polynomial, call, options.dtypes);
                const auto found = run_far(PolynomialPlan(polynomial, options), rounded_call);
                for (const auto& [name, numbers] : dtype == DType::float32 ? reference : evaluate(description, rounded_call))
                    CHECK(relative_error(found.at(name), numbers) < 2e-6);
            }
        }
    }
}

TEST_CASE("row numbers beyond 2^31, in an index of 64 bits") {
    const std::int64_t rows = (std::int64_t{1} << 32) + 7;
    const PolynomialPlan plan(
        parse_polynomial("clebsch polynomial 0\nbasis e3nn-0.5\nrows edge\nindex sender: edge -> far\ninput x: 2x(1) mul_ir @ sender\n"
                         "output z: 2x(1) mul_ir @ each\npath u=2: z.0[u] += 3 * x.0[u]\n"));
    const SparseMemory memory(static_cast<std::size_t>(2 * rows) * sizeof(float));
    REQUIRE_MESSAGE(memory.given(), "this test needs a system that promises memory (vm.overcommit_memory is not 2)");
    auto* x = reinterpret_cast<float*>(memory.data());
    const std::vector<std::int64_t> sender{rows - 1, 0, (std::int64_t{1} << 31) + 1, -1, (std::int64_t{1} << 32) - 1};
    for (const std::int64_t row : sender)
        if (row >= 0) x[2 * row] = static_cast<float>(row % 1000), x[2 * row + 1] = static_cast<float>(row % 77);
    std::vector<float> z(10, -1);
    const std::vector<Buffer> buffers{{.data = x, .dtype = DType::float32, .rows = rows, .row_stride = 0},
                                      {.data = z.data(), .dtype = DType::float32, .rows = 5, .row_stride = 0}};
    const std::vector<IndexBuffer> indices{{sender.data(), IndexType::int64, 5}};
    const std::vector<std::int64_t> counts{5, rows};
    std::vector<std::byte> workspace(plan.workspace_bytes(counts, 1));
    const auto launch = [&] {
        plan.launch({.buffers = buffers, .indices = indices, .rows = counts}, {.data = workspace.data(), .bytes = workspace.size()}, {});
    };
    launch();
    for (std::size_t e = 0; e < 5; ++e) {
        CHECK(z[2 * e] == (sender[e] < 0 ? 0 : 3 * static_cast<float>(sender[e] % 1000)));
        CHECK(z[2 * e + 1] == (sender[e] < 0 ? 0 : 3 * static_cast<float>(sender[e] % 77)));
    }
}

TEST_CASE("sizes near 2^63 are refused by the operand's name") {
    const PolynomialPlan plan(
        parse_polynomial("clebsch polynomial 0\nbasis e3nn-0.5\nrows row\ninput x: 2x(1) mul_ir @ each\n"
                         "output z: 2x(1) mul_ir @ each\npath u=2: z.0[u] += x.0[u]\n"));
    std::vector<float> numbers(4);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const auto& [rows, stride] :
         {std::pair{most, std::int64_t{0}}, {most / 4, 0}, {std::int64_t{3}, most}, {3, most / 8}, {most, most}}) {
        const std::vector<Buffer> buffers{{.data = numbers.data(), .dtype = DType::float32, .rows = rows, .row_stride = stride},
                                          {.data = numbers.data(), .dtype = DType::float32, .rows = rows, .row_stride = stride}};
        const std::vector<std::int64_t> counts{rows};
        CHECK_THROWS_WITH_AS(plan.launch({.buffers = buffers, .indices = {}, .rows = counts}, {}, {}), doctest::Contains("'x'"), Error);
    }
}
