// Plans and launches.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>

#include "api/guard.hpp"
#include "api/library.hpp"
#include "api/operation.hpp"
#include "base/number.hpp"
#include "describe/reference.hpp"
#include "run/gpu/ascending.hpp"
#include "run/gpu/plan.hpp"
#include "run/gpu/program_plan.hpp"
#include "run/plan.hpp"
#include "run/program_plan.hpp"
#include "schedule/cpu_target.hpp"
#include "schedule/estimate.hpp"

struct clebsch_plan {
    std::variant<clebsch::PolynomialPlan, clebsch::ProgramPlan, clebsch::gpu::PolynomialPlan, clebsch::gpu::ProgramPlan> value;
    std::vector<clebsch::api::OperandFacts> operands;
    std::vector<clebsch::api::IndexFacts> indices;
    std::optional<clebsch::gpu::AscendingCheck> ascending;  ///< of sorted indices, after every launch
};

namespace {

using namespace clebsch;
using api::guarded;
using api::require;

/// `where()` names it in an error.
template <class Where>
DType dtype_of(int number, const Where& where) {
    if (number < CLEBSCH_FLOAT32 || number > CLEBSCH_FLOAT16)
        fail(where() + ": expected 0 (float32), 1 (float64), 2 (bfloat16) or 3 (float16), got " + std::to_string(number));
    return static_cast<DType>(number);
}

/// What all kinds of plans take.
template <class Options>
Options common_options(const clebsch_plan_options& given, std::size_t operands) {
    Options options;
    const DType dtype = dtype_of(given.dtype, [] { return std::string("dtype"); });
    if (given.dtypes == nullptr) {
        options.dtypes.assign(operands, dtype);
    } else {
        if (given.dtype_count != operands)
            fail("dtypes: expected one per operand (" + std::to_string(operands) + "), got " + std::to_string(given.dtype_count));
        for (std::size_t i = 0; i < operands; ++i)
            options.dtypes.push_back(dtype_of(given.dtypes[i], [i] { return "dtypes[" + std::to_string(i) + "]"; }));
    }
    for (const DType operand : options.dtypes)
        if (operand == DType::float64) options.compute = DType::float64;
    return options;
}

/// Options of either kind of plan for the processor: they have the same members.
template <class Options>
Options plan_options(const clebsch_plan_options& given, std::size_t operands) {
    Options options = common_options<Options>(given, operands);
    if (given.instruction_set != nullptr) options.instruction_set = parse_instruction_set(given.instruction_set);
    if (given.kernel != nullptr) options.family = given.kernel;
    return options;
}

/// The GPU that a plan is for; nothing: the processor, whose sums always have one order. Refuses what a GPU has no use for.
std::optional<int> gpu_of(const clebsch_plan_options& given, bool polynomial) {
    const std::optional<int> number = given.device == nullptr ? std::nullopt : gpu::parse_device(given.device, "device");
    if (given.deterministic != 0 && given.deterministic != 1)
        fail("deterministic: expected 0 or 1, got " + std::to_string(given.deterministic));
    if (number && given.instruction_set != nullptr)
        fail("instruction_set: expected NULL for a plan on a GPU, got '" + std::string(given.instruction_set) + "'");
    if (number && !polynomial && given.kernel != nullptr)
        fail("kernel: expected NULL for a program on a GPU, got '" + std::string(given.kernel) + "'");
    return number;
}

decltype(clebsch_plan::value) planned(const clebsch_operation& operation, const clebsch_plan_options& given) {
    const std::size_t operands = operation.operands.size();
    const auto* polynomial = std::get_if<Polynomial>(&operation.value);
    const std::optional<int> number = gpu_of(given, polynomial != nullptr);
    if (polynomial != nullptr && number) {
        auto options = common_options<gpu::PlanOptions>(given, operands);
        options.device = *number;
        options.deterministic = given.deterministic != 0;
        if (given.kernel != nullptr) options.schedule = given.kernel;
        return gpu::PolynomialPlan(*polynomial, options);
    }
    if (polynomial != nullptr) return PolynomialPlan(*polynomial, plan_options<PlanOptions>(given, operands));
    const auto& program = std::get<Program>(operation.value);
    if (!number) return ProgramPlan(program, plan_options<ProgramOptions>(given, operands));
    auto options = common_options<gpu::ProgramOptions>(given, operands);
    options.device = *number;
    options.deterministic = given.deterministic != 0;
    return gpu::ProgramPlan(program, options);
}

/// What looks at sorted indices after launches, where that was asked for.
std::optional<gpu::AscendingCheck> ascending_check(const clebsch_operation& operation, const clebsch_plan_options& given) {
    if (given.nan_if_unsorted != 0 && given.nan_if_unsorted != 1)
        fail("nan_if_unsorted: expected 0 or 1, got " + std::to_string(given.nan_if_unsorted));
    const std::optional<int> number = gpu_of(given, true);
    if (given.nan_if_unsorted == 0 || !number) return std::nullopt;
    std::vector<gpu::AscendingCheck::Sorted> sorted;
    for (std::size_t i = 0; i < operation.indices.size(); ++i)
        if (operation.indices[i].sorted) sorted.push_back({.index = i, .space = static_cast<std::size_t>(operation.indices[i].to)});
    if (sorted.empty()) return std::nullopt;
    std::vector<gpu::AscendingCheck::Output> outputs;
    for (std::size_t o = 0; o < operation.operands.size(); ++o)
        if (operation.operands[o].is_output) outputs.push_back({.operand = o, .row_size = operation.operands[o].row_size});
    return gpu::AscendingCheck(gpu::Device::get(*number), std::move(outputs), std::move(sorted));
}

template <class Plan>
constexpr bool on_gpu = std::is_same_v<Plan, gpu::PolynomialPlan> || std::is_same_v<Plan, gpu::ProgramPlan>;

/// As a vector, but the first ones take no memory: a launch allocates nothing.
template <class T>
class ShortList {
 public:
    void push_back(const T& value) {
        if (size_ == few_.size()) many_.assign(few_.begin(), few_.end());
        if (size_ < few_.size()) few_[size_] = value;
        else many_.push_back(value);
        ++size_;
    }
    std::span<const T> span() const { return size_ <= few_.size() ? std::span<const T>(few_.data(), size_) : many_; }
    const T& operator[](std::size_t i) const { return span()[i]; }

 private:
    std::array<T, 16> few_{};
    std::vector<T> many_;
    std::size_t size_ = 0;
};

struct Buffers {
    ShortList<Buffer> buffers;
    ShortList<IndexBuffer> indices;
    std::span<const std::int64_t> rows;
};

Buffers buffers_of(const clebsch_call& call, std::size_t operands, std::size_t indices) {
    api::require_size(call.size, sizeof(clebsch_call), "clebsch_call");
    if (call.buffer_count != operands) fail("buffers: expected " + std::to_string(operands) + ", got " + std::to_string(call.buffer_count));
    if (call.index_count != indices) fail("indices: expected " + std::to_string(indices) + ", got " + std::to_string(call.index_count));
    if (operands != 0) require(call.buffers, "buffers");
    if (indices != 0) require(call.indices, "indices");
    if (call.space_count != 0) require(call.rows, "rows");
    Buffers result;
    for (std::size_t i = 0; i < operands; ++i) {
        const clebsch_buffer& buffer = call.buffers[i];
        result.buffers.push_back({buffer.data, dtype_of(buffer.dtype, [i] { return "buffers[" + std::to_string(i) + "].dtype"; }),
                                  buffer.rows, buffer.row_stride});
    }
    for (std::size_t i = 0; i < indices; ++i) {
        const clebsch_index_buffer& index = call.indices[i];
        if (index.type != CLEBSCH_INT32 && index.type != CLEBSCH_INT64)
            fail("indices[" + std::to_string(i) + "].type: expected 0 (int32) or 1 (int64), got " + std::to_string(index.type));
        result.indices.push_back({index.data, static_cast<IndexType>(index.type), index.count});
    }
    result.rows = {call.rows, call.space_count};
    return result;
}

ParallelFor parallel_of(const clebsch_parallel* parallel, ThreadPool& pool) {
    if (parallel == nullptr) return pool.parallel_for();
    if (parallel->run == nullptr) return {};
    if (parallel->threads < 1) fail("parallel.threads: expected at least 1, got " + std::to_string(parallel->threads));
    return {.run = parallel->run, .context = parallel->context, .threads = parallel->threads};
}

/// Whether the rows of a buffer and `bytes` bytes elsewhere have one in common. Buffers that a launch would refuse have none.
bool touches(const Buffer& buffer, std::int64_t row_size, const void* data, std::uintptr_t bytes) {
    const std::int64_t numbers = buffer.row_stride == 0 ? row_size : buffer.row_stride;
    const auto element = static_cast<std::int64_t>(size_of(buffer.dtype));
    std::int64_t stride = 0, last = 0;
    if (buffer.data == nullptr || data == nullptr || bytes == 0 || buffer.rows <= 0 || row_size <= 0 || numbers < row_size ||
        __builtin_mul_overflow(numbers, element, &stride) || __builtin_mul_overflow(stride, buffer.rows - 1, &last))
        return false;
    const auto row = static_cast<std::uintptr_t>(row_size * element), step = static_cast<std::uintptr_t>(stride);
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.data), other = reinterpret_cast<std::uintptr_t>(data);
    const std::uintptr_t end = begin + static_cast<std::uintptr_t>(last) + row;
    if (other + bytes <= begin || end <= other) return false;
    if (other < begin) return true;
    const std::uintptr_t shift = (other - begin) % step;  // between two rows there may be room
    return shift < row || shift + bytes > step;
}

/// Outputs and other operands are compared by the launch; here are the arrays that are no operands.
void check_overlap(const clebsch_plan& plan, const Buffers& buffers, const clebsch_call& call) {
    for (std::size_t o = 0; o < plan.operands.size(); ++o) {
        const api::OperandFacts& facts = plan.operands[o];
        if (touches(buffers.buffers[o], facts.row_size, call.workspace, call.workspace_bytes))
            fail("workspace: expected memory of its own, it overlaps operand '" + facts.name + "'");
        if (!facts.is_output) continue;
        for (std::size_t i = 0; i < plan.indices.size(); ++i) {
            const IndexBuffer& index = buffers.indices[i];
            if (touches(buffers.buffers[o], facts.row_size, index.data,
                        static_cast<std::uintptr_t>(std::max<std::int64_t>(index.size, 0)) * size_of(index.type)))
                fail("operand '" + facts.name + "': an output may share no memory with other arrays, it overlaps index '" +
                     plan.indices[i].name + "'");
        }
    }
}

/// Number i of an array at any address.
template <class Number>
Number number_at(const void* data, std::int64_t i) {
    Number number;
    std::memcpy(&number, static_cast<const std::byte*>(data) + i * static_cast<std::int64_t>(sizeof number), sizeof number);
    return number;
}

/// One array of the reference: float64 rows, copied into (or out of) extended precision.
ReferenceArray read_rows(const Buffer& buffer, const api::OperandFacts& facts, std::int64_t rows) {
    const std::int64_t stride = buffer.row_stride == 0 ? facts.row_size : buffer.row_stride;
    ReferenceArray array;
    array.reserve(static_cast<std::size_t>(rows * facts.row_size));
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t i = 0; i < facts.row_size; ++i) array.push_back(number_at<double>(buffer.data, r * stride + i));
    return array;
}

void write_rows(const ReferenceArray& array, const Buffer& buffer, const api::OperandFacts& facts, std::int64_t rows) {
    const std::int64_t stride = buffer.row_stride == 0 ? facts.row_size : buffer.row_stride;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t i = 0; i < facts.row_size; ++i) {
            const auto number = static_cast<double>(array[static_cast<std::size_t>(r * facts.row_size + i)]);
            std::memcpy(static_cast<std::byte*>(buffer.data) + (r * stride + i) * std::int64_t{sizeof number}, &number, sizeof number);
        }
}

void check_reference_buffer(const Buffer& buffer, const api::OperandFacts& facts, std::int64_t rows) {
    if (buffer.dtype != DType::float64) fail(facts.name + ": the reference takes float64, got " + to_text(buffer.dtype));
    if (buffer.rows != rows) fail(facts.name + ": expected " + std::to_string(rows) + " rows, got " + std::to_string(buffer.rows));
    if (buffer.row_stride != 0 && buffer.row_stride < facts.row_size)
        fail(facts.name + ": expected a row stride of at least " + std::to_string(facts.row_size) + ", got " +
             std::to_string(buffer.row_stride));
    const std::int64_t stride = buffer.row_stride == 0 ? facts.row_size : buffer.row_stride;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(stride, std::int64_t{sizeof(double)}, &bytes) || __builtin_mul_overflow(bytes, rows, &bytes))
        fail(facts.name + ": " + std::to_string(rows) + " rows with a stride of " + std::to_string(stride) + " exceed 2^63 bytes");
    if (rows > 0 && facts.row_size > 0) require(buffer.data, facts.name.c_str());
}

ReferenceInputs reference_inputs(const clebsch_operation& operation, const Buffers& call) {
    ReferenceInputs inputs;
    if (call.rows.size() != operation.spaces.size())
        fail("rows: expected one number per space (" + std::to_string(operation.spaces.size()) + "), got " +
             std::to_string(call.rows.size()));
    for (std::size_t s = 0; s < operation.spaces.size(); ++s) {
        if (call.rows[s] < 0)
            fail("row space '" + operation.spaces[s] + "': expected at least 0 rows, got " + std::to_string(call.rows[s]));
        inputs.rows[operation.spaces[s]] = call.rows[s];
    }
    for (std::size_t i = 0; i < operation.indices.size(); ++i) {
        const IndexBuffer& buffer = call.indices[i];
        const api::IndexFacts& facts = operation.indices[i];
        const std::int64_t from = facts.from < 0 ? 1 : call.rows[static_cast<std::size_t>(facts.from)];
        if (buffer.size != from) fail(facts.name + ": expected " + std::to_string(from) + " numbers, got " + std::to_string(buffer.size));
        if (from > 0) require(buffer.data, facts.name.c_str());
        std::vector<std::int64_t>& values = inputs.indices[facts.name];
        for (std::int64_t k = 0; k < buffer.size; ++k)
            values.push_back(buffer.type == IndexType::int64 ? number_at<std::int64_t>(buffer.data, k)
                                                             : number_at<std::int32_t>(buffer.data, k));
    }
    return inputs;
}

}  // namespace

clebsch_status clebsch_plan_prepare(const clebsch_operation* operation, const clebsch_plan_options* options, clebsch_plan** plan) {
    return guarded([&] {
        require(operation, "operation");
        require(plan, "plan");
        const clebsch_plan_options defaults = CLEBSCH_PLAN_OPTIONS_DEFAULTS;
        const clebsch_plan_options& given = options == nullptr ? defaults : *options;
        api::require_size(given.size, sizeof(clebsch_plan_options), "clebsch_plan_options");
        *plan = std::make_unique<clebsch_plan>(
                    clebsch_plan{planned(*operation, given), operation->operands, operation->indices, ascending_check(*operation, given)})
                    .release();
    });
}

void clebsch_plan_destroy(clebsch_plan* plan) { delete plan; }

clebsch_status clebsch_plan_explain(const clebsch_plan* plan, double copy_gigabytes_per_second, double fma_gigaflops, char** text) {
    return guarded([&] {
        require(plan, "plan");
        require(text, "text");
        for (const auto& [name, peak] :
             {std::pair{"copy_gigabytes_per_second", copy_gigabytes_per_second}, {"fma_gigaflops", fma_gigaflops}})
            if (!(peak >= 0 && std::isfinite(peak)))
                fail(std::string(name) + ": expected 0 (not known) or a positive number, got " + number_text(peak));
        const Peaks peaks{.copy_bytes_per_second = copy_gigabytes_per_second * 1e9, .multiply_adds_per_second = fma_gigaflops * 0.5e9};
        const std::string result = std::visit(
            [&](const auto& value) {
                const std::vector<std::int64_t> one_row(value.spaces().size(), 1);
                return value.explain() + "with one row of every space: " + explain_limit(value.work(one_row), peaks) + "\n";
            },
            plan->value);
        *text = api::copy_text(result);
    });
}

clebsch_status clebsch_plan_workspace_size(const clebsch_plan* plan, const int64_t* rows, size_t space_count, int threads, size_t* bytes) {
    return guarded([&] {
        require(plan, "plan");
        require(bytes, "bytes");
        if (space_count != 0) require(rows, "rows");
        if (threads < 0) fail("threads: expected 0 (the library's pool) or more, got " + std::to_string(threads));
        const int at_once = threads == 0 ? api::current_pool()->threads() : threads;
        const std::span<const std::int64_t> counts(rows, space_count);
        *bytes = std::visit(
            [&](const auto& value) {
                if constexpr (on_gpu<std::decay_t<decltype(value)>>) return value.workspace_bytes(counts);
                else return value.workspace_bytes(counts, at_once);
            },
            plan->value);
    });
}

namespace {

/// `stream`: nothing where the caller named none.
clebsch_status launch(const clebsch_plan* plan, const clebsch_call* call, std::optional<void*> stream) {
    return guarded([&] {
        require(plan, "plan");
        require(call, "call");
        const Buffers buffers = buffers_of(*call, plan->operands.size(), plan->indices.size());
        check_overlap(*plan, buffers, *call);
        const std::shared_ptr<ThreadPool> pool = api::current_pool();
        const Call run{.buffers = buffers.buffers.span(), .indices = buffers.indices.span(), .rows = buffers.rows};
        std::visit(
            [&](const auto& value) {
                const Workspace workspace{.data = call->workspace, .bytes = call->workspace_bytes};
                if constexpr (on_gpu<std::decay_t<decltype(value)>>) {
                    value.launch(run, workspace, stream.value_or(nullptr));
                    if (plan->ascending) plan->ascending->launch(run, stream.value_or(nullptr));
                } else {
                    if (stream) fail("stream: this plan is for the processor; clebsch_launch runs it");
                    value.launch(run, workspace, parallel_of(call->parallel, *pool));
                }
            },
            plan->value);
    });
}

}  // namespace

clebsch_status clebsch_launch(const clebsch_plan* plan, const clebsch_call* call) { return launch(plan, call, std::nullopt); }

clebsch_status clebsch_launch_on_stream(const clebsch_plan* plan, const clebsch_call* call, void* stream) {
    return launch(plan, call, stream);
}

clebsch_status clebsch_plan_index_error(const clebsch_plan* plan, int* error) {
    return guarded([&] {
        require(plan, "plan");
        require(error, "error");
        *error = std::visit(
            [](const auto& value) {
                if constexpr (on_gpu<std::decay_t<decltype(value)>>) return value.index_error() ? 1 : 0;
                else return 0;
            },
            plan->value);
    });
}

clebsch_status clebsch_evaluate_reference(const clebsch_operation* operation, const clebsch_call* call) {
    const auto body = [&] {
        require(operation, "operation");
        require(call, "call");
        const Buffers buffers = buffers_of(*call, operation->operands.size(), operation->indices.size());
        ReferenceInputs inputs = reference_inputs(*operation, buffers);
        const auto rows_of = [&](const api::OperandFacts& facts) {
            return facts.space < 0 ? 1 : buffers.rows[static_cast<std::size_t>(facts.space)];
        };
        for (std::size_t i = 0; i < operation->operands.size(); ++i) {
            const api::OperandFacts& facts = operation->operands[i];
            check_reference_buffer(buffers.buffers[i], facts, rows_of(facts));
            if (!facts.is_output) inputs.arrays[facts.name] = read_rows(buffers.buffers[i], facts, rows_of(facts));
        }
        const auto outputs = std::visit([&](const auto& value) { return evaluate(value, inputs); }, operation->value);
        for (std::size_t i = 0; i < operation->operands.size(); ++i) {
            const api::OperandFacts& facts = operation->operands[i];
            if (facts.is_output) write_rows(outputs.at(facts.name), buffers.buffers[i], facts, rows_of(facts));
        }
    };
    return guarded(body, [&] {
        std::string text = "the reference keeps every number in 16 bytes";
        for (const api::OperandFacts& facts : operation->operands)
            text += ", " + facts.name + " has " + std::to_string(facts.space < 0 ? 1 : call->rows[facts.space]) + " x " +
                    std::to_string(facts.row_size);
        return text;
    });
}
