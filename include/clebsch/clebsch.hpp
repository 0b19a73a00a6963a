#pragma once
/// Clebsch for C++: values with destructors over the C interface, whose header clebsch.h has the contracts. Errors are exceptions
/// (clebsch::Failure). The names of a call are those of the operation's operands, spaces and indices.
///
///   const auto conv = clebsch::Operation::build("convolution", "in=8x0e+8x1o\nedge=0e+1o\nout=0e+1o");
///   const clebsch::Plan plan(conv, CLEBSCH_FLOAT32);
///   plan.run({{"edge", edges}, {"node", nodes}}, {{"x", x}, {"y", y}, {"weights", weights}},
///            {{"sender", sender}, {"receiver", receiver}}, {{"out", out}});
#include <clebsch/clebsch.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace clebsch {

/// A call that failed: the status and the library's message.
class Failure : public std::runtime_error {
 public:
    Failure(clebsch_status status, const char* message) : std::runtime_error(message), status_(status) {}
    clebsch_status status() const { return status_; }

 private:
    clebsch_status status_;
};

inline void check(clebsch_status status) {
    if (status != CLEBSCH_OK) throw Failure(status, clebsch_last_error());
}

namespace detail {

/// Takes text from the library into a string.
inline std::string take(char* text) {
    std::unique_ptr<char, void (*)(char*)> owner(text, clebsch_free);
    return std::string(text);
}

template <class T, void (*destroy)(T*)>
struct Destroy {
    void operator()(T* handle) const { destroy(handle); }
};

template <class T>
constexpr int dtype_of() {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "float or double");
    return std::is_same_v<T, float> ? CLEBSCH_FLOAT32 : CLEBSCH_FLOAT64;
}

}  // namespace detail

/// An array of a call by type: packed rows.
struct Array {
    void* data;
    int dtype;
    std::int64_t size;  ///< numbers

    template <class T>
    Array(std::vector<T>& values) : Array(std::span<T>(values)) {}  // NOLINT(google-explicit-constructor)
    template <class T>
    Array(const std::vector<T>& values) : Array(std::span<const T>(values)) {}  // NOLINT(google-explicit-constructor)
    template <class T>
    Array(std::span<T> values)  // NOLINT(google-explicit-constructor)
        : data(const_cast<std::remove_const_t<T>*>(values.data())),
          dtype(detail::dtype_of<std::remove_const_t<T>>()),
          size(static_cast<std::int64_t>(values.size())) {}
};

/// An immutable description.
class Operation {
 public:
    explicit Operation(const std::string& text) {
        clebsch_operation* handle = nullptr;
        check(clebsch_operation_parse(text.c_str(), &handle));
        handle_.reset(handle);
    }
    static Operation build(const std::string& name, const std::string& options) {
        clebsch_operation* handle = nullptr;
        check(clebsch_operation_build(name.c_str(), options.c_str(), &handle));
        return Operation(handle);
    }
    Operation vjp(const std::vector<std::string>& inputs) const { return derivative(clebsch_operation_vjp, inputs); }
    Operation jvp(const std::vector<std::string>& inputs) const { return derivative(clebsch_operation_jvp, inputs); }
    std::string text() const {
        char* text = nullptr;
        check(clebsch_operation_text(handle_.get(), &text));
        return detail::take(text);
    }
    std::string hash() const {
        char digits[33];
        check(clebsch_operation_hash(handle_.get(), digits));
        return digits;
    }
    std::vector<clebsch_operand_info> operands() const {
        std::vector<clebsch_operand_info> result(clebsch_operation_operand_count(handle_.get()));
        for (std::size_t i = 0; i < result.size(); ++i) {
            result[i].size = sizeof(clebsch_operand_info);
            check(clebsch_operation_operand(handle_.get(), i, &result[i]));
        }
        return result;
    }
    const clebsch_operation* handle() const { return handle_.get(); }

 private:
    using Derive = clebsch_status (*)(const clebsch_operation*, const char* const*, std::size_t, clebsch_operation**);
    explicit Operation(clebsch_operation* handle) : handle_(handle) {}
    Operation derivative(Derive derive, const std::vector<std::string>& inputs) const {
        std::vector<const char*> names;
        for (const std::string& input : inputs) names.push_back(input.c_str());
        clebsch_operation* handle = nullptr;
        check(derive(handle_.get(), names.data(), names.size(), &handle));
        return Operation(handle);
    }

    std::unique_ptr<clebsch_operation, detail::Destroy<clebsch_operation, clebsch_operation_destroy>> handle_;
};

/// An operation prepared to run here. `run` allocates its workspace; callers that must not allocate use `launch` with their own.
class Plan {
 public:
    explicit Plan(const Operation& operation, clebsch_dtype dtype = CLEBSCH_FLOAT32) {
        clebsch_plan_options options = CLEBSCH_PLAN_OPTIONS_DEFAULTS;
        options.dtype = dtype;
        clebsch_plan* handle = nullptr;
        check(clebsch_plan_prepare(operation.handle(), &options, &handle));
        handle_.reset(handle);
        facts_ = operation.operands();
        for (std::size_t i = 0; i < facts_.size(); ++i) names_.emplace_back(facts_[i].name);
        for (std::size_t i = 0; i < clebsch_operation_space_count(operation.handle()); ++i)
            spaces_.emplace_back(clebsch_operation_space(operation.handle(), i));
        for (std::size_t i = 0; i < clebsch_operation_index_count(operation.handle()); ++i) {
            const char* name = nullptr;
            check(clebsch_operation_index(operation.handle(), i, &name, nullptr, nullptr, nullptr));
            indices_.emplace_back(name);
        }
    }

    std::string explain(double copy_gigabytes_per_second = 0, double fma_gigaflops = 0) const {
        char* text = nullptr;
        check(clebsch_plan_explain(handle_.get(), copy_gigabytes_per_second, fma_gigaflops, &text));
        return detail::take(text);
    }

    /// Runs on packed arrays by name. `rows` names every space; every operand and index must be given.
    void run(const std::map<std::string, std::int64_t>& rows, const std::map<std::string, Array>& inputs,
             const std::map<std::string, std::span<const std::int64_t>>& indices, const std::map<std::string, Array>& outputs) const {
        std::vector<std::int64_t> counts;
        for (const std::string& space : spaces_) counts.push_back(find(rows, space, "rows of space"));
        std::vector<clebsch_buffer> buffers;
        for (std::size_t i = 0; i < names_.size(); ++i) {
            const Array& array = find(facts_[i].is_output ? outputs : inputs, names_[i], "array");
            const std::int64_t expected = facts_[i].space < 0 ? 1 : counts[static_cast<std::size_t>(facts_[i].space)];
            if (array.size != expected * facts_[i].row_size)
                throw std::invalid_argument("clebsch: " + names_[i] + ": expected " + std::to_string(expected) + " x " +
                                            std::to_string(facts_[i].row_size) + " numbers, got " + std::to_string(array.size));
            buffers.push_back({array.data, array.dtype, expected, 0});
        }
        std::vector<clebsch_index_buffer> index_buffers;
        for (const std::string& name : indices_) {
            const auto& values = find(indices, name, "index");
            index_buffers.push_back({values.data(), CLEBSCH_INT64, static_cast<std::int64_t>(values.size())});
        }
        std::size_t bytes = 0;
        check(clebsch_plan_workspace_size(handle_.get(), counts.data(), counts.size(), 0, &bytes));
        std::vector<std::byte> workspace(bytes);
        clebsch_call call = CLEBSCH_CALL_DEFAULTS;
        call.buffers = buffers.data();
        call.buffer_count = buffers.size();
        call.indices = index_buffers.data();
        call.index_count = index_buffers.size();
        call.rows = counts.data();
        call.space_count = counts.size();
        call.workspace = workspace.data();
        call.workspace_bytes = bytes;
        launch(call);
    }
    void launch(const clebsch_call& call) const { check(clebsch_launch(handle_.get(), &call)); }
    const clebsch_plan* handle() const { return handle_.get(); }

 private:
    template <class T>
    static const T& find(const std::map<std::string, T>& map, const std::string& name, const char* what) {
        const auto found = map.find(name);
        if (found == map.end()) throw std::invalid_argument("clebsch: " + std::string(what) + " '" + name + "' is missing");
        return found->second;
    }

    std::unique_ptr<clebsch_plan, detail::Destroy<clebsch_plan, clebsch_plan_destroy>> handle_;
    std::vector<clebsch_operand_info> facts_;
    std::vector<std::string> names_, spaces_, indices_;
};

}  // namespace clebsch
