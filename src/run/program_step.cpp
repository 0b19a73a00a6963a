#include "run/program_step.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <type_traits>

#include "base/error.hpp"
#include "run/execute.hpp"
#include "run/kernels/functions.hpp"
#include "run/plan_data.hpp"
#include "run/stage.hpp"
#include "schedule/program_groups.hpp"

namespace clebsch {
namespace {

constexpr std::size_t most_spaces = 64;

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::int64_t rows_of(int space, const std::int64_t* rows) { return space < 0 ? 1 : rows[space]; }

class PolynomialStep final : public ProgramStep {
 public:
    PolynomialStep(const StepRequest& request, const PolynomialNode& node, std::shared_ptr<const PolynomialPlan> plan)
        : plan_(std::move(plan)), values_(node.arguments) {
        for (const std::string& space : plan_->spaces()) spaces_.push_back(space.empty() ? -1 : request.space_of(space));
        if (spaces_.size() > most_spaces)
            throw Error(ErrorKind::unsupported, "a polynomial over " + std::to_string(spaces_.size()) + " row spaces: at most " +
                                                    std::to_string(most_spaces) + " can run");
        for (const Index& index : node.polynomial.indices) {
            const auto& known = request.program->indices;
            indices_.push_back(static_cast<int>(std::ranges::find(known, index.name, &Index::name) - known.begin()));
        }
        for (std::size_t i = 0; i < values_.size(); ++i) {
            const std::string& name = request.program->values[at(values_[i])].name;
            const bool output = node.polynomial.operands[i].role == Role::output;
            (output ? results_ : arguments_) += ((output ? results_ : arguments_).empty() ? "" : ", ") + name;
        }
        constant_ = has_constant_inputs(*request.program);
    }

    std::vector<int> reads() const override { return with_role(Role::input); }
    std::vector<int> writes() const override { return with_role(Role::output); }

    PartCosts costs(std::span<const std::int64_t> rows) const override {
        return with_own_rows(rows, [&](std::span<const std::int64_t> own) { return part_costs(plan_->data(), own); });
    }
    std::size_t scratch_bytes() const override { return plan_->data().scratch_bytes; }
    std::size_t state_bytes(std::span<const std::int64_t> rows, const Division& division) const override {
        Arena arena;
        with_own_rows(rows, [&](std::span<const std::int64_t> own) { return lay_out(own, division, arena); });
        return arena.used();
    }
    double multiply_adds(std::span<const std::int64_t> rows) const override {
        return with_own_rows(rows, [&](std::span<const std::int64_t> own) { return plan_->work(own).multiply_adds; });
    }
    SortedOutput sorted_output() const override {
        const PlanData& data = plan_->data();
        SortedOutput result;
        for (const OperandPlan& operand : data.operands) {
            if (!operand.output || !operand.sorted || operand.form.size <= result.numbers) continue;
            result.numbers = operand.form.size;
            result.chain.clear();
            for (const int index : data.chains[at(operand.chain)]) result.chain.push_back(indices_[at(index)]);
        }
        return result;
    }

    std::size_t prepared_bytes() const override {
        std::size_t bytes = 0;
        if (constant_)
            for (const std::size_t of_kernel : plan_->data().prepared_bytes) bytes += round_up(of_kernel, 64);
        return bytes;
    }
    void prepare(const Buffer* values, std::byte* prepared) const override {
        if (is_double()) prepare_as<double>(values, prepared);
        else prepare_as<float>(values, prepared);
    }

    void start(const GroupLaunch& launch, std::byte* state, const std::byte* prepared) const override {
        Arena arena(state);
        std::array<std::int64_t, most_spaces> own{};
        for (std::size_t i = 0; i < spaces_.size(); ++i) own[i] = rows_of(spaces_[i], launch.rows);
        const Layout layout = lay_out({own.data(), spaces_.size()}, launch.division, arena);
        for (std::size_t i = 0; i < values_.size(); ++i) new (layout.buffers + i) Buffer(launch.values[values_[i]]);
        for (std::size_t i = 0; i < indices_.size(); ++i) new (layout.indices + i) IndexBuffer(launch.indices[indices_[i]]);
        std::copy_n(own.begin(), spaces_.size(), layout.rows);
        const Call call{.buffers = {layout.buffers, values_.size()},
                        .indices = {layout.indices, indices_.size()},
                        .rows = {layout.rows, spaces_.size()},
                        .indices_checked = true};
        const auto begin = [&]<class T>(T /*type*/) {
            auto* running = new (state) Running<T>{.plan = &plan_->data(), .call = call, .state = {}};
            running->state = arrange<T>(plan_->data(), call.rows, launch.division, arena);
            if (constant_ && prepared != nullptr) {
                running->state.is_prepared = true;
                std::size_t before = 0;
                for (std::size_t k = 0; k < plan_->data().kernels.size(); ++k) {
                    running->state.prepared[k] = prepared + before;
                    before += round_up(plan_->data().prepared_bytes[k], 64);
                }
            }
            clebsch::start(*running, *launch.parallel_for);
        };
        if (is_double()) begin(double{});
        else begin(float{});
    }
    void start_part(std::byte* state, std::int64_t part, int worker) const override {
        if (is_double()) clebsch::start_part(running<double>(state), part, worker);
        else clebsch::start_part(running<float>(state), part, worker);
    }
    void run(const GroupLaunch&, std::byte* state, const Chunk& chunk) const override {
        if (is_double()) run_chunk(running<double>(state), chunk);
        else run_chunk(running<float>(state), chunk);
    }
    void end_part(std::byte* state, std::int64_t part, int worker) const override {
        if (is_double()) clebsch::end_part(running<double>(state), part, worker);
        else clebsch::end_part(running<float>(state), part, worker);
    }
    void finish(const GroupLaunch& launch, std::byte* state) const override {
        if (is_double()) clebsch::finish(running<double>(state), *launch.parallel_for);
        else clebsch::finish(running<float>(state), *launch.parallel_for);
    }

    std::string explain() const override { return results_ + " = polynomial of " + arguments_ + "\n" + plan_->explain(); }

 private:
    /// Whether all shared inputs are inputs of the program that kernels read as they are stored.
    bool has_constant_inputs(const Program& program) const {
        for (std::size_t o = 0; o < values_.size(); ++o) {
            const OperandPlan& operand = plan_->data().operands[o];
            if (operand.output || operand.kind != OperandPlan::Kind::shared) continue;
            if (!operand.plain || std::ranges::find(program.inputs, values_[o]) == program.inputs.end()) return false;
        }
        return true;
    }

    template <class T>
    void prepare_as(const Buffer* values, std::byte* prepared) const {
        const PlanData& data = plan_->data();
        std::vector<const T*> shared(values_.size(), nullptr);
        for (std::size_t o = 0; o < values_.size(); ++o)
            if (!data.operands[o].output && data.operands[o].kind == OperandPlan::Kind::shared)
                shared[o] = static_cast<const T*>(values[values_[o]].data);
        for (std::size_t k = 0; k < data.kernels.size(); ++k) {
            if (data.prepared_bytes[k] > 0) data.kernels[k]->prepare(shared.data(), prepared);
            prepared += round_up(data.prepared_bytes[k], 64);
        }
    }

    struct Layout {
        Buffer* buffers;
        IndexBuffer* indices;
        std::int64_t* rows;
    };
    /// Everything in `state`; the running launch comes first.
    Layout lay_out(std::span<const std::int64_t> own, const Division& division, Arena& arena) const {
        arena.take(1, std::max(sizeof(Running<float>), sizeof(Running<double>)));
        const Layout layout{arena.take<Buffer>(static_cast<std::int64_t>(values_.size())),
                            arena.take<IndexBuffer>(static_cast<std::int64_t>(indices_.size())),
                            arena.take<std::int64_t>(static_cast<std::int64_t>(spaces_.size()))};
        if (!arena.measuring()) return layout;
        if (is_double()) arrange<double>(plan_->data(), own, division, arena);
        else arrange<float>(plan_->data(), own, division, arena);
        return layout;
    }

    bool is_double() const { return plan_->compute() == DType::float64; }
    template <class T>
    static Running<T>& running(std::byte* state) {
        return *std::launder(reinterpret_cast<Running<T>*>(state));
    }
    template <class T>
    void run_chunk(Running<T>& running, const Chunk& chunk) const {
        for (std::size_t o = 0; o < values_.size(); ++o)
            if (plan_->data().operands[o].kind == OperandPlan::Kind::each)
                see_each(running, o, chunk.worker, chunk.values[values_[o]].data, chunk.begin);
        run_rows(running, chunk.part, chunk.worker, chunk.begin, chunk.end);
    }

    /// Calls f with the rows of the polynomial's own spaces. A launch comes here too, so nothing is allocated.
    template <class F>
    std::invoke_result_t<F, std::span<const std::int64_t>> with_own_rows(std::span<const std::int64_t> rows, F f) const {
        std::array<std::int64_t, most_spaces> own{};
        for (std::size_t i = 0; i < spaces_.size(); ++i) own[i] = rows_of(spaces_[i], rows.data());
        return f(std::span<const std::int64_t>(own.data(), spaces_.size()));
    }

    std::vector<int> with_role(Role role) const {
        std::vector<int> result;
        for (std::size_t i = 0; i < values_.size(); ++i)
            if (plan_->polynomial().operands[i].role == role) result.push_back(values_[i]);
        return result;
    }

    std::shared_ptr<const PolynomialPlan> plan_;
    std::vector<int> values_, indices_, spaces_;
    bool constant_ = false;  ///< what kernels prepare stays the same as long as inputs of the program do
    std::string results_, arguments_;
};

class FunctionStep final : public ProgramStep {
 public:
    FunctionStep(const StepRequest& request, const FunctionNode& node)
        : node_(node), compute_(request.compute), size_(request.program->values[at(node.input)].size()) {
        using OfFloat = void (*)(const FunctionCode&, const float*, float*, std::int64_t);
        using OfDouble = void (*)(const FunctionCode&, const double*, double*, std::int64_t);
        float_ = CLEBSCH_SELECT(OfFloat, request.isa, apply_function);
        double_ = CLEBSCH_SELECT(OfDouble, request.isa, apply_function);
        text_ = request.program->values[at(node.output)].name + " = " + to_text(node.function) + " of " +
                request.program->values[at(node.input)].name + "\n";
    }

    std::vector<int> reads() const override { return {node_.input}; }
    std::vector<int> writes() const override { return {node_.output}; }
    PartCosts costs(std::span<const std::int64_t>) const override {
        const auto numbers = static_cast<double>(size_);
        return {.work_per_row = (work_of_function + 2) * numbers, .numbers_per_row = 2 * numbers, .sums = 0, .least_rows = 1};
    }
    std::string explain() const override { return text_; }

    void run(const GroupLaunch&, std::byte*, const Chunk& chunk) const override {
        if (compute_ == DType::float64) run_chunk(chunk, double_);
        else run_chunk(chunk, float_);
    }

 private:
    template <class T>
    void run_chunk(const Chunk& chunk, void (*apply)(const FunctionCode&, const T*, T*, std::int64_t)) const {
        const Buffer &in = chunk.values[node_.input], &out = chunk.values[node_.output];
        if (size_ == 0) return;
        const std::int64_t in_stride = in.row_stride == 0 ? size_ : in.row_stride,
                           out_stride = out.row_stride == 0 ? size_ : out.row_stride;
        const FunctionCode code = code_of(node_.function);
        const auto* x = static_cast<const T*>(in.data);
        auto* y = static_cast<T*>(out.data);
        if (in_stride == size_ && out_stride == size_) return apply(code, x, y, size_ * in.rows);
        for (std::int64_t r = 0; r < in.rows; ++r) apply(code, x + r * in_stride, y + r * out_stride, size_);
    }

    FunctionNode node_;
    DType compute_;
    std::int64_t size_;
    void (*float_)(const FunctionCode&, const float*, float*, std::int64_t) = nullptr;
    void (*double_)(const FunctionCode&, const double*, double*, std::int64_t) = nullptr;
    std::string text_;
};

class ConversionStep final : public ProgramStep {
 public:
    ConversionStep(const StepRequest& request, int from, int to) : from_(from), to_(to), compute_(request.compute) {
        const Value& value = request.program->values[at(from)];
        // One segment of single numbers: nothing to transpose.
        Operand plain;
        plain.segments = {{value.size(), 1, std::nullopt}};
        to_stored_ = request.dtypes[at(to)] != request.compute;
        form_ = row_form(plain, request.dtypes[at(to_stored_ ? to : from)], request.isa);
        text_ = request.program->values[at(to)].name + " = " + value.name + " as " + to_text(request.dtypes[at(to)]) + "\n";
    }

    std::vector<int> reads() const override { return {from_}; }
    std::vector<int> writes() const override { return {to_}; }
    PartCosts costs(std::span<const std::int64_t>) const override {
        const auto numbers = static_cast<double>(form_.size);
        return {.work_per_row = 2 * numbers, .numbers_per_row = 2 * numbers, .sums = 0, .least_rows = 1};
    }
    std::string explain() const override { return text_; }

    void run(const GroupLaunch&, std::byte*, const Chunk& chunk) const override {
        if (compute_ == DType::float64) convert<double>(chunk);
        else convert<float>(chunk);
    }

 private:
    template <class T>
    void convert(const Chunk& chunk) const {
        const Buffer &in = chunk.values[from_], &out = chunk.values[to_];
        const auto bytes = [&](const Buffer& buffer) {
            return (buffer.row_stride == 0 ? form_.size : buffer.row_stride) * static_cast<std::int64_t>(size_of(buffer.dtype));
        };
        for (std::int64_t r = 0; r < in.rows; ++r) {
            const std::byte* source = static_cast<const std::byte*>(in.data) + r * bytes(in);
            std::byte* target = static_cast<std::byte*>(out.data) + r * bytes(out);
            if (to_stored_) store_row(form_, reinterpret_cast<const T*>(source), target);
            else load_row(form_, source, reinterpret_cast<T*>(target));
        }
    }

    int from_, to_;
    DType compute_;
    bool to_stored_ = false;
    RowForm form_;
    std::string text_;
};

}  // namespace

int StepRequest::space_of(const std::string& name) const {
    return name.empty() ? -1 : static_cast<int>(std::ranges::find(*spaces, name) - spaces->begin());
}

bool StepRequest::same_plan(const PolynomialNode& a, const PolynomialNode& b) const {
    return a.polynomial == b.polynomial &&
           std::ranges::equal(
               a.arguments, b.arguments, {}, [&](int value) { return dtypes[at(value)]; }, [&](int value) { return dtypes[at(value)]; });
}

std::shared_ptr<const PolynomialPlan> plan_node(const StepRequest& request, const PolynomialNode& node) {
    PlanOptions options;
    for (const int value : node.arguments) options.dtypes.push_back(request.dtypes[at(value)]);
    options.compute = request.compute;
    options.instruction_set = request.isa;
    options.family = request.family;
    options.checked = true;
    return std::make_shared<const PolynomialPlan>(node.polynomial, options);
}
std::unique_ptr<ProgramStep> make_polynomial_step(const StepRequest& request, const PolynomialNode& node,
                                                  std::shared_ptr<const PolynomialPlan> plan) {
    return std::make_unique<PolynomialStep>(request, node, std::move(plan));
}
std::unique_ptr<ProgramStep> make_function_step(const StepRequest& request, const FunctionNode& node) {
    return std::make_unique<FunctionStep>(request, node);
}
std::unique_ptr<ProgramStep> make_conversion_step(const StepRequest& request, int from, int to) {
    return std::make_unique<ConversionStep>(request, from, to);
}

}  // namespace clebsch
