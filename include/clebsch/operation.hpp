#pragma once
/// Operations, arrays by name, and plans that run on them.
#include <clebsch/library.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace clebsch {

namespace detail {

template <class T>
constexpr int dtype_of() {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "float or double; 16-bit numbers by Array::bfloat16 and float16");
    return std::is_same_v<T, float> ? CLEBSCH_FLOAT32 : CLEBSCH_FLOAT64;
}

template <class T>
constexpr int index_type_of() {
    static_assert(std::is_integral_v<T> && std::is_signed_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "integers of 32 or 64 bits");
    return sizeof(T) == 4 ? CLEBSCH_INT32 : CLEBSCH_INT64;
}

}  // namespace detail

/* ------------------------------------------------------------------ arrays of a call */

/// Rows of numbers, seen where they lie: what it was made from must outlive the call.
struct Array {
    void* data = nullptr;
    int dtype = CLEBSCH_FLOAT32;  ///< clebsch_dtype
    std::int64_t size = 0;        ///< numbers from the first to the end of the last row
    std::int64_t row_stride = 0;  ///< numbers from row to row; 0: packed
    bool writable = false;        ///< outputs must be

    template <class T>
    Array(std::vector<T>& values) : Array(std::span<T>(values)) {}  // NOLINT(google-explicit-constructor)
    template <class T>
    Array(const std::vector<T>& values) : Array(std::span<const T>(values)) {}  // NOLINT(google-explicit-constructor)
    template <class T>
    Array(std::span<T> values, std::int64_t stride = 0)  // NOLINT(google-explicit-constructor)
        : Array(values, detail::dtype_of<std::remove_const_t<T>>(), stride) {}
    /// 16-bit numbers by their bits; of const ones only an input.
    static Array bfloat16(std::span<std::uint16_t> bits, std::int64_t stride = 0) { return {bits, CLEBSCH_BFLOAT16, stride}; }
    static Array bfloat16(std::span<const std::uint16_t> bits, std::int64_t stride = 0) { return {bits, CLEBSCH_BFLOAT16, stride}; }
    static Array float16(std::span<std::uint16_t> bits, std::int64_t stride = 0) { return {bits, CLEBSCH_FLOAT16, stride}; }
    static Array float16(std::span<const std::uint16_t> bits, std::int64_t stride = 0) { return {bits, CLEBSCH_FLOAT16, stride}; }

 private:
    template <class T>
    Array(std::span<T> values, int type, std::int64_t stride)
        : data(const_cast<std::remove_const_t<T>*>(values.data())),
          dtype(type),
          size(static_cast<std::int64_t>(values.size())),
          row_stride(stride),
          writable(!std::is_const_v<T>) {}
};

/// Integers of 32 or 64 bits, one per row of the space that the index maps from; -1 masks a row.
struct IndexArray {
    const void* data = nullptr;
    int type = CLEBSCH_INT64;  ///< clebsch_index_type
    std::int64_t size = 0;

    template <class T>
    IndexArray(const std::vector<T>& values) : IndexArray(std::span<const T>(values)) {}  // NOLINT(google-explicit-constructor)
    template <class T>
    IndexArray(std::span<T> values)  // NOLINT(google-explicit-constructor)
        : data(values.data()), type(detail::index_type_of<std::remove_const_t<T>>()), size(static_cast<std::int64_t>(values.size())) {}
};

/// By name of a row space, an operand, an index. Every one of the operation's must be there; other rows and indices are not read, other
/// arrays are errors.
using Rows = std::map<std::string, std::int64_t>;
using Arrays = std::map<std::string, Array>;
using Indices = std::map<std::string, IndexArray>;

/* ------------------------------------------------------------------ operations */

/// One array of a call.
struct Operand {
    std::string name;
    std::string segments;  ///< "128x0e+64x1o", plain segments as "1312x(1)"
    bool is_output;
    clebsch_layout layout;
    std::int64_t row_size;  ///< numbers per row
    std::string space;      ///< "": one row, shared by all
};

/// One index array of a call.
struct Index {
    std::string name, from, to;  ///< a row of space `from` to a row of space `to`
    bool sorted;                 ///< values must not decrease
};

/// An immutable description: a polynomial or a program.
class Operation {
 public:
    /// From canonical text (docs/text.md).
    explicit Operation(const std::string& text)
        : handle_(detail::created(clebsch_operation_destroy,
                                  [&](clebsch_operation** handle) { return clebsch_operation_parse(detail::pass(text), handle); })) {}
    /// From a builder, with lines "key=value".
    static Operation build(const std::string& name, const std::string& options) {
        return Operation(detail::created(clebsch_operation_destroy, [&](clebsch_operation** handle) {
            return clebsch_operation_build(detail::pass(name), detail::pass(options), handle);
        }));
    }
    /// Takes the inputs and `<output>_cotangent`, gives `<input>_gradient` of the named inputs.
    Operation vjp(const std::vector<std::string>& inputs) const { return derivative(clebsch_operation_vjp, inputs); }
    /// Takes the inputs and `<input>_tangent` of the named ones, gives `<output>_tangent`.
    Operation jvp(const std::vector<std::string>& inputs) const { return derivative(clebsch_operation_jvp, inputs); }
    /// The same with its rows in the order of an index: takes `<index>_order` and `<index>_sorted` of a RowOrder instead.
    Operation in_order_of(const std::string& index) const {
        return Operation(detail::created(clebsch_operation_destroy, [&](clebsch_operation** ordered) {
            return clebsch_operation_in_order_of(handle(), detail::pass(index), ordered);
        }));
    }
    bool is_program() const { return text().starts_with("clebsch program"); }
    std::string text() const {
        return detail::text_from([&](char** text) { return clebsch_operation_text(handle(), text); });
    }
    /// 32 hexadecimal digits.
    std::string hash() const {
        char digits[33];
        check(clebsch_operation_hash(handle(), digits));
        return digits;
    }
    std::vector<Operand> operands() const {
        const std::vector<std::string> names = spaces();
        std::vector<Operand> result;
        for (std::size_t i = 0; i < clebsch_operation_operand_count(handle()); ++i) {
            clebsch_operand_info info = CLEBSCH_OPERAND_INFO_DEFAULTS;
            check(clebsch_operation_operand(handle(), i, &info));
            result.push_back({info.name, info.segments, info.is_output != 0, static_cast<clebsch_layout>(info.layout), info.row_size,
                              info.space < 0 ? "" : names[static_cast<std::size_t>(info.space)]});
        }
        return result;
    }
    std::vector<std::string> spaces() const {
        std::vector<std::string> result;
        for (std::size_t i = 0; i < clebsch_operation_space_count(handle()); ++i) result.emplace_back(clebsch_operation_space(handle(), i));
        return result;
    }
    std::vector<Index> indices() const {
        const std::vector<std::string> names = spaces();
        const auto space = [&](int i) { return i < 0 ? std::string() : names[static_cast<std::size_t>(i)]; };
        std::vector<Index> result;
        for (std::size_t i = 0; i < clebsch_operation_index_count(handle()); ++i) {
            const char* name = nullptr;
            int from = 0, to = 0, sorted = 0;
            check(clebsch_operation_index(handle(), i, &name, &from, &to, &sorted));
            result.push_back({name, space(from), space(to), sorted != 0});
        }
        return result;
    }
    const clebsch_operation* handle() const { return handle_.get(); }

 private:
    using Derive = clebsch_status (*)(const clebsch_operation*, const char* const*, std::size_t, clebsch_operation**);
    explicit Operation(std::shared_ptr<const clebsch_operation> handle) : handle_(std::move(handle)) {}
    Operation derivative(Derive derive, const std::vector<std::string>& inputs) const {
        std::vector<const char*> names;
        names.reserve(inputs.size());
        for (const std::string& input : inputs) names.push_back(detail::pass(input));
        return Operation(detail::created(clebsch_operation_destroy,
                                         [&](clebsch_operation** result) { return derive(handle(), names.data(), names.size(), result); }));
    }

    std::shared_ptr<const clebsch_operation> handle_;
};

namespace detail {

/// Names of an operation's arrays, and arrays by name as the C interface takes them.
class Signature {
 public:
    explicit Signature(const Operation& operation)
        : operands_(operation.operands()), spaces_(operation.spaces()), indices_(operation.indices()) {}

    std::vector<std::int64_t> counts(const Rows& rows) const {
        std::vector<std::int64_t> result;
        for (const std::string& space : spaces_) result.push_back(find(rows, space, "rows of space"));
        return result;
    }

    /// `use(call)` with everything but workspace and `parallel`. Throws std::invalid_argument naming what is missing, unknown or too short.
    template <class Use>
    void with_call(const Rows& rows, const Arrays& inputs, const Indices& indices, const Arrays& outputs, Use use) const {
        const std::vector<std::int64_t> row_counts = counts(rows);
        for (const Arrays* arrays : {&inputs, &outputs})
            for (const auto& [name, array] : *arrays) require_known(name, arrays == &outputs);
        std::vector<clebsch_buffer> buffers;
        for (const Operand& operand : operands_) {
            const Array& array = find(operand.is_output ? outputs : inputs, operand.name, operand.is_output ? "output" : "input");
            const std::int64_t count = operand.space.empty() ? 1 : rows.at(operand.space);
            require_size(operand, array, count);
            if (operand.is_output && !array.writable) fail(operand.name + ": an output needs numbers that are not const");
            buffers.push_back({array.data, array.dtype, count, array.row_stride});
        }
        std::vector<clebsch_index_buffer> index_buffers;
        for (const Index& index : indices_) {
            const IndexArray& values = find(indices, index.name, "index");
            index_buffers.push_back({values.data, values.type, values.size});
        }
        clebsch_call call = CLEBSCH_CALL_DEFAULTS;
        call.buffers = buffers.data();
        call.buffer_count = buffers.size();
        call.indices = index_buffers.data();
        call.index_count = index_buffers.size();
        call.rows = row_counts.data();
        call.space_count = row_counts.size();
        use(call);
    }

 private:
    [[noreturn]] static void fail(const std::string& message) { throw std::invalid_argument("clebsch: " + message); }
    template <class T>
    static const T& find(const std::map<std::string, T>& map, const std::string& name, const char* what) {
        const auto found = map.find(name);
        if (found == map.end()) fail(std::string(what) + " '" + name + "' is missing");
        return found->second;
    }
    void require_known(const std::string& name, bool output) const {
        std::string names;
        for (const Operand& operand : operands_) {
            if (operand.is_output != output) continue;
            if (operand.name == name) return;
            names += (names.empty() ? "" : ", ") + operand.name;
        }
        fail(std::string("there is no ") + (output ? "output" : "input") + " '" + name + "'; there are " + names);
    }
    /// Rows must lie inside the array: the library sees only where it begins. Numbers are checked by division, which cannot overflow; what
    /// is negative is left to the library's own messages.
    static void require_size(const Operand& operand, const Array& array, std::int64_t rows) {
        if (rows < 0 || array.row_stride < 0 || operand.row_size == 0) return;
        const std::int64_t stride = array.row_stride == 0 ? operand.row_size : array.row_stride,
                           after_first = array.size - operand.row_size;
        const bool enough = rows == 0 || (after_first >= 0 && (rows - 1) <= after_first / stride);
        const bool packed_exactly = array.row_stride != 0 || (enough && array.size == rows * operand.row_size);
        if (enough && packed_exactly) return;
        fail(operand.name + ": expected " + std::to_string(rows) + " x " + std::to_string(operand.row_size) + " numbers" +
             (array.row_stride == 0 ? "" : ", rows " + std::to_string(stride) + " apart") + ", got " + std::to_string(array.size));
    }

    std::vector<Operand> operands_;
    std::vector<std::string> spaces_;
    std::vector<Index> indices_;
};

}  // namespace detail

/// Rows in the order of where an index leads, found once for any number of launches (Operation::in_order_of). `device`: "" or where the
/// index array is: "cuda", "cuda:1".
class RowOrder {
 public:
    RowOrder(const IndexArray& index, std::int64_t target_rows, const std::string& device = {}) {
        const clebsch_index_buffer given{index.data, index.type, index.size};
        handle_ = detail::created(clebsch_row_order_destroy, [&](clebsch_row_order** handle) {
            return clebsch_row_order_create(device.empty() ? nullptr : detail::pass(device), &given, target_rows, handle);
        });
    }
    /// To pass as `<index>_order` and `<index>_sorted`; the memory belongs to this object and its copies.
    IndexArray rows() const { return indices(true); }
    IndexArray sorted() const { return indices(false); }

 private:
    IndexArray indices(bool of_rows) const {
        clebsch_index_buffer rows{}, sorted{};
        check(clebsch_row_order_indices(handle_.get(), &rows, &sorted));
        const clebsch_index_buffer& chosen = of_rows ? rows : sorted;
        return std::span(static_cast<const std::int64_t*>(chosen.data), static_cast<std::size_t>(chosen.count));
    }

    std::shared_ptr<const clebsch_row_order> handle_;
};

/// What an operation means: the slow evaluator in extended precision, on float64 arrays by name.
inline void evaluate_reference(const Operation& operation, const Rows& rows, const Arrays& inputs, const Indices& indices,
                               const Arrays& outputs) {
    detail::Signature(operation).with_call(rows, inputs, indices, outputs,
                                           [&](const clebsch_call& call) { check(clebsch_evaluate_reference(operation.handle(), &call)); });
}

/* ------------------------------------------------------------------ plans */

struct PlanOptions {
    clebsch_dtype dtype = CLEBSCH_FLOAT32;             ///< of every operand that `dtypes` does not name
    std::map<std::string, clebsch_dtype> dtypes = {};  ///< by operand
    std::string instruction_set = {};                  ///< "": the default one
    std::string kernel = {};                           ///< "", or a kernel family to force, for tests
    std::string device = {};                           ///< "": the processor; "cuda", "cuda:1": a GPU, run by launch()
    bool deterministic = false;                        ///< on a GPU: every sum has one order (clebsch_plan_options)
    bool nan_if_unsorted = false;                      ///< on a GPU: outputs are NaN where a sorted index decreases
};

struct RunOptions {
    std::span<std::byte> workspace = {};         ///< at least Plan::workspace_bytes; empty: taken for this call
    const clebsch_parallel* parallel = nullptr;  ///< nullptr: the library's pool
};

/// An operation prepared to run here.
class Plan {
 public:
    Plan(const Operation& operation, const PlanOptions& options) : signature_(operation) {
        const std::vector<Operand> operands = operation.operands();
        std::vector<int> dtypes(operands.size(), options.dtype);
        for (const auto& [name, dtype] : options.dtypes) {
            std::size_t i = 0;
            while (i < operands.size() && operands[i].name != name) ++i;
            if (i == operands.size()) throw std::invalid_argument("clebsch: dtypes: there is no operand '" + name + "'");
            dtypes[i] = dtype;
        }
        clebsch_plan_options given = CLEBSCH_PLAN_OPTIONS_DEFAULTS;
        given.dtypes = dtypes.data();
        given.dtype_count = dtypes.size();
        if (!options.instruction_set.empty()) given.instruction_set = detail::pass(options.instruction_set);
        if (!options.kernel.empty()) given.kernel = detail::pass(options.kernel);
        if (!options.device.empty()) given.device = detail::pass(options.device);
        given.deterministic = options.deterministic ? 1 : 0;
        given.nan_if_unsorted = options.nan_if_unsorted ? 1 : 0;
        handle_ = detail::created(clebsch_plan_destroy,
                                  [&](clebsch_plan** handle) { return clebsch_plan_prepare(operation.handle(), &given, handle); });
    }
    explicit Plan(const Operation& operation, clebsch_dtype dtype = CLEBSCH_FLOAT32)
        : Plan(operation, PlanOptions{dtype, {}, {}, {}, {}, false, false}) {}

    /// Which kernels take which paths and why; work and limit of one row of every space for the given peaks (0: not known).
    std::string explain(double copy_gigabytes_per_second = 0, double fma_gigaflops = 0) const {
        return detail::text_from(
            [&](char** text) { return clebsch_plan_explain(handle(), copy_gigabytes_per_second, fma_gigaflops, text); });
    }
    /// Scratch of a launch with these rows when `threads` tasks run at once (0: as many as the library's pool has).
    std::size_t workspace_bytes(const Rows& rows, int threads = 0) const {
        const std::vector<std::int64_t> counts = signature_.counts(rows);
        return bytes_for(counts.data(), counts.size(), threads);
    }

    /// Runs on arrays by name. Outputs are overwritten.
    void run(const Rows& rows, const Arrays& inputs, const Indices& indices, const Arrays& outputs, const RunOptions& options = {}) const {
        signature_.with_call(rows, inputs, indices, outputs, [&](clebsch_call& call) {
            std::vector<std::byte> own;
            std::span<std::byte> workspace = options.workspace;
            if (workspace.empty()) {
                const int threads = options.parallel == nullptr ? 0 : options.parallel->threads;
                own.resize(bytes_for(call.rows, call.space_count, threads));
                workspace = own;
            }
            call.workspace = workspace.data();
            call.workspace_bytes = workspace.size();
            call.parallel = options.parallel;
            launch(call);
        });
    }
    /// The C interface's launch, for callers that keep their own lists of arrays.
    void launch(const clebsch_call& call) const { check(clebsch_launch(handle(), &call)); }
    /// Of a plan for a GPU, whose arrays are in its memory: puts the work on a stream and does not wait.
    void launch(const clebsch_call& call, void* stream) const { check(clebsch_launch_on_stream(handle(), &call, stream)); }
    /// Waits for the GPU; whether a launch met an index out of range, or a sorted one that decreases.
    bool index_error() const {
        int error = 0;
        check(clebsch_plan_index_error(handle(), &error));
        return error != 0;
    }
    const clebsch_plan* handle() const { return handle_.get(); }

 private:
    std::size_t bytes_for(const std::int64_t* counts, std::size_t spaces, int threads) const {
        std::size_t bytes = 0;
        check(clebsch_plan_workspace_size(handle(), counts, spaces, threads, &bytes));
        return bytes;
    }

    detail::Signature signature_;
    std::shared_ptr<const clebsch_plan> handle_;
};

}  // namespace clebsch
