#include "run/program_step.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <type_traits>

#include "base/error.hpp"
#include "run/kernels/functions.hpp"
#include "run/stage.hpp"

namespace clebsch {
namespace {

constexpr std::size_t most_spaces = 64;

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::int64_t rows_of(int space, const std::int64_t* rows) { return space < 0 ? 1 : rows[space]; }

class PolynomialStep final : public ProgramStep {
 public:
    PolynomialStep(const StepRequest& request, const PolynomialNode& node)
        : plan_(node.polynomial, plan_options(request, node)), values_(node.arguments) {
        for (const std::string& space : plan_.spaces()) spaces_.push_back(space.empty() ? -1 : request.space_of(space));
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
    }

    std::vector<int> reads() const override { return with_role(Role::input); }
    std::vector<int> writes() const override { return with_role(Role::output); }

    std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const override {
        return with_own_rows(rows, [&](std::span<const std::int64_t> own) { return table_bytes() + plan_.workspace_bytes(own, threads); });
    }
    double multiply_adds(std::span<const std::int64_t> rows) const override {
        return with_own_rows(rows, [&](std::span<const std::int64_t> own) { return plan_.work(own).multiply_adds; });
    }

    void launch(const StepCall& call) const override {
        auto* buffers = reinterpret_cast<Buffer*>(call.workspace);
        auto* indices = reinterpret_cast<IndexBuffer*>(buffers + values_.size());
        auto* rows = reinterpret_cast<std::int64_t*>(indices + indices_.size());
        for (std::size_t i = 0; i < values_.size(); ++i) new (buffers + i) Buffer(call.values[values_[i]]);
        for (std::size_t i = 0; i < indices_.size(); ++i) new (indices + i) IndexBuffer(call.indices[indices_[i]]);
        for (std::size_t i = 0; i < spaces_.size(); ++i) rows[i] = rows_of(spaces_[i], call.rows);
        const Call own{.buffers = {buffers, values_.size()},
                       .indices = {indices, indices_.size()},
                       .rows = {rows, spaces_.size()},
                       .indices_checked = true};
        plan_.launch(own, {call.workspace + table_bytes(), call.workspace_bytes - table_bytes()}, *call.parallel_for);
    }

    std::string explain() const override { return results_ + " = polynomial of " + arguments_ + "\n" + plan_.explain(); }

 private:
    /// Calls f with the rows of the polynomial's own spaces. A launch comes here too, so nothing is allocated.
    template <class F>
    std::invoke_result_t<F, std::span<const std::int64_t>> with_own_rows(std::span<const std::int64_t> rows, F f) const {
        std::array<std::int64_t, most_spaces> own{};
        for (std::size_t i = 0; i < spaces_.size(); ++i) own[i] = rows_of(spaces_[i], rows.data());
        return f(std::span<const std::int64_t>(own.data(), spaces_.size()));
    }

    static PlanOptions plan_options(const StepRequest& request, const PolynomialNode& node) {
        PlanOptions options;
        for (const int value : node.arguments) options.dtypes.push_back(request.dtypes[at(value)]);
        options.compute = request.compute;
        options.instruction_set = request.isa;
        options.family = request.family;
        return options;
    }

    std::vector<int> with_role(Role role) const {
        std::vector<int> result;
        for (std::size_t i = 0; i < values_.size(); ++i)
            if (plan_.polynomial().operands[i].role == role) result.push_back(values_[i]);
        return result;
    }

    std::size_t table_bytes() const {
        return round_up(values_.size() * sizeof(Buffer) + indices_.size() * sizeof(IndexBuffer) + spaces_.size() * sizeof(std::int64_t),
                        64);
    }

    PolynomialPlan plan_;
    std::vector<int> values_, indices_, spaces_;
    std::string results_, arguments_;
};

/// Steps that treat every row by itself: rows are divided into chunks of a fixed size, so that results do not depend on the number of
/// threads.
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
    std::size_t workspace_bytes(std::span<const std::int64_t>, int) const override { return 0; }
    std::string explain() const override { return text_; }

    void launch(const StepCall& call) const override {
        if (compute_ == DType::float64) run(call, double_);
        else run(call, float_);
    }

 private:
    template <class T>
    void run(const StepCall& call, void (*apply)(const FunctionCode&, const T*, T*, std::int64_t)) const {
        const Buffer &in = call.values[node_.input], &out = call.values[node_.output];
        if (size_ == 0 || in.rows == 0) return;
        const std::int64_t in_stride = in.row_stride == 0 ? size_ : in.row_stride,
                           out_stride = out.row_stride == 0 ? size_ : out.row_stride;
        const bool flat = in_stride == size_ && out_stride == size_;
        const std::int64_t rows = flat ? 1 : in.rows, count = flat ? in.rows * size_ : size_;
        const std::int64_t numbers = 8192;  // of a task: enough to outweigh handing it over
        const std::int64_t pieces = (count + numbers - 1) / numbers, rows_per_task = std::max<std::int64_t>(1, numbers / count);
        const FunctionCode code = code_of(node_.function);
        const auto* x = static_cast<const T*>(in.data);
        auto* y = static_cast<T*>(out.data);
        for_each_task(*call.parallel_for, (rows + rows_per_task - 1) / rows_per_task * pieces, [&](std::int64_t task) {
            const std::int64_t piece = task % pieces * numbers, first = task / pieces * rows_per_task;
            for (std::int64_t r = first; r < std::min(rows, first + rows_per_task); ++r)
                apply(code, x + r * in_stride + piece, y + r * out_stride + piece, std::min(numbers, count - piece));
        });
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
    std::size_t workspace_bytes(std::span<const std::int64_t>, int) const override { return 0; }
    std::string explain() const override { return text_; }

    void launch(const StepCall& call) const override {
        if (compute_ == DType::float64) run<double>(call);
        else run<float>(call);
    }

 private:
    template <class T>
    void run(const StepCall& call) const {
        const Buffer &in = call.values[from_], &out = call.values[to_];
        const auto bytes = [&](const Buffer& buffer) {
            return (buffer.row_stride == 0 ? form_.size : buffer.row_stride) * static_cast<std::int64_t>(size_of(buffer.dtype));
        };
        const auto* from = static_cast<const std::byte*>(in.data);
        auto* to = static_cast<std::byte*>(out.data);
        const std::int64_t rows = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, form_.size));
        for_each_task(*call.parallel_for, (in.rows + rows - 1) / rows, [&](std::int64_t task) {
            for (std::int64_t r = task * rows; r < std::min(in.rows, (task + 1) * rows); ++r) {
                const std::byte* source = from + r * bytes(in);
                std::byte* target = to + r * bytes(out);
                if (to_stored_) store_row(form_, reinterpret_cast<const T*>(source), target);
                else load_row(form_, source, reinterpret_cast<T*>(target));
            }
        });
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

std::unique_ptr<ProgramStep> make_polynomial_step(const StepRequest& request, const PolynomialNode& node) {
    return std::make_unique<PolynomialStep>(request, node);
}
std::unique_ptr<ProgramStep> make_function_step(const StepRequest& request, const FunctionNode& node) {
    return std::make_unique<FunctionStep>(request, node);
}
std::unique_ptr<ProgramStep> make_conversion_step(const StepRequest& request, int from, int to) {
    return std::make_unique<ConversionStep>(request, from, to);
}

}  // namespace clebsch
