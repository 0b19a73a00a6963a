#pragma once
/// Clebsch for C++: values with destructors over the C interface, whose header clebsch.h has the contracts. Errors are exceptions:
/// clebsch::Failure with the library's message, std::invalid_argument for arrays that do not fit the names of a call.
///
///   const auto conv = clebsch::Operation::build("convolution", "in=8x0e+8x1o\nedge=0e+1o\nout=0e+1o");
///   const clebsch::Plan plan(conv, CLEBSCH_FLOAT32);
///   plan.run({{"edge", edges}, {"node", nodes}}, {{"x", x}, {"y", y}, {"weights", weights}},
///            {{"sender", sender}, {"receiver", receiver}}, {{"out", out}});
///
/// Irreps, Operation, Plan, Graph and Potential are immutable; their copies share one handle and may be used by several threads.
#include <clebsch/clebsch.h>

#include <array>
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

/// Text for the library, whose strings end at the first zero.
inline const char* pass(const std::string& text) {
    if (text.find('\0') != std::string::npos) throw std::invalid_argument("clebsch: text has a zero in it");
    return text.c_str();
}

/// Text of the library: `get(&text)` gives it.
template <class Get>
std::string text_from(Get get) {
    char* text = nullptr;
    check(get(&text));
    const std::unique_ptr<char, void (*)(char*)> owner(text, clebsch_free);
    return std::string(text);
}

/// A handle that copies of a value share: `create(&handle)` gives it.
template <class T, class Create>
std::shared_ptr<T> created(void (*destroy)(T*), Create create) {
    T* handle = nullptr;
    check(create(&handle));
    return std::shared_ptr<T>(handle, destroy);
}

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

/* ------------------------------------------------------------------ the library */

inline std::string version() { return clebsch_version(); }
/// Processor, instruction sets, threads, libraries found or not and why. JSON.
inline std::string info() { return detail::text_from(clebsch_info); }
/// Names that Operation::build takes, with their options, defaults and help. JSON.
inline std::string builders() { return detail::text_from(clebsch_builders); }
/// Threads of the library's own pool, the caller included (0: one per core).
inline void set_num_threads(int threads) { check(clebsch_set_num_threads(threads)); }
/// Instruction set of plans prepared from now on: "baseline", "avx2", "avx512", "neon"; "": the best.
inline void force_instruction_set(const std::string& name) { check(clebsch_force_instruction_set(detail::pass(name))); }
/// Path of libvesin.so, tried before the other places it is looked for.
inline void set_vesin_library(const std::string& path) { check(clebsch_set_vesin_library(detail::pass(path))); }

/* ------------------------------------------------------------------ algebra */

/// A list of irreps with multiplicities: clebsch::Irreps("128x0e+64x1o").
class Irreps {
 public:
    struct Block {
        std::int64_t multiplicity;
        int degree, parity;  ///< parity: 1 even, -1 odd, 0 for SO(3)

        friend bool operator==(const Block&, const Block&) = default;
    };
    struct Sorted;

    explicit Irreps(const std::string& text)
        : handle_(detail::created(clebsch_irreps_destroy,
                                  [&](clebsch_irreps** handle) { return clebsch_irreps_parse(detail::pass(text), handle); })) {}
    /// Numbers per row.
    std::int64_t dim() const { return clebsch_irreps_dim(handle()); }
    std::vector<Block> blocks() const {
        std::vector<Block> result(clebsch_irreps_count(handle()));
        for (std::size_t i = 0; i < result.size(); ++i)
            check(clebsch_irreps_block(handle(), i, &result[i].multiplicity, &result[i].degree, &result[i].parity));
        return result;
    }
    /// Sorted stably.
    Sorted sorted() const;
    /// Adjacent equal irreps merged, multiplicity 0 dropped.
    Irreps simplified() const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_simplify(handle(), result); });
    }
    /// Sorted, then simplified.
    Irreps regrouped() const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_regroup(handle(), result); });
    }
    /// The list `times` times, one after another.
    Irreps repeated(std::int64_t times) const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_repeat(handle(), times, result); });
    }
    /// The blocks whose irrep is in `keep`, and of degree at most `lmax` (negative: any).
    Irreps filtered(const Irreps& keep, int lmax = -1) const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_filter(handle(), keep.handle(), nullptr, lmax, result); });
    }
    /// For every pair of blocks the irreps of their product, ascending, neither sorted nor merged.
    Irreps product(const Irreps& other) const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_product(handle(), other.handle(), nullptr, result); });
    }
    std::string text() const {
        return detail::text_from([&](char** text) { return clebsch_irreps_text(handle(), text); });
    }
    const clebsch_irreps* handle() const { return handle_.get(); }

    friend bool operator==(const Irreps& a, const Irreps& b) { return a.blocks() == b.blocks(); }

 private:
    explicit Irreps(std::shared_ptr<const clebsch_irreps> handle) : handle_(std::move(handle)) {}
    template <class Make>
    static Irreps made(const Make& make) {
        return Irreps(detail::created(clebsch_irreps_destroy, make));
    }

    std::shared_ptr<const clebsch_irreps> handle_;
};

struct Irreps::Sorted {
    Irreps irreps;
    std::vector<int> permutation;  ///< permutation[old] = new
};

inline Irreps::Sorted Irreps::sorted() const {
    std::vector<int> permutation(clebsch_irreps_count(handle()));
    Irreps irreps(detail::created(clebsch_irreps_destroy,
                                  [&](clebsch_irreps** result) { return clebsch_irreps_sort(handle(), result, permutation.data()); }));
    return {std::move(irreps), std::move(permutation)};
}

/// Row-major.
using Matrix3 = std::array<double, 9>;

namespace detail {

/// Components of a degree; the library refuses a degree that has no room here before it writes.
inline std::size_t components(int degree) { return degree < 0 || degree > 100 ? 1 : 2 * static_cast<std::size_t>(degree) + 1; }

}  // namespace detail

/// Real coupling coefficients, (2 l1 + 1) x (2 l2 + 1) x (2 l3 + 1). `sign_table`: 5 (e3nn 0.5 and newer) or 4 (e3nn 0.4).
inline std::vector<double> wigner_3j(int l1, int l2, int l3, int sign_table = 5) {
    std::vector<double> result(detail::components(l1) * detail::components(l2) * detail::components(l3));
    check(clebsch_wigner_3j(l1, l2, l3, sign_table, result.data()));
    return result;
}

/// Matrix of an orthogonal matrix on the irrep (degree, parity), (2l + 1) x (2l + 1).
inline std::vector<double> wigner_d(int degree, int parity, const Matrix3& rotation) {
    std::vector<double> result(detail::components(degree) * detail::components(degree));
    check(clebsch_wigner_d(degree, parity, rotation.data(), result.data()));
    return result;
}

/// From Euler angles (Y-X-Y), in radians.
inline Matrix3 rotation_from_angles(double alpha, double beta, double gamma) {
    Matrix3 rotation{};
    check(clebsch_rotation_from_angles(alpha, beta, gamma, rotation.data()));
    return rotation;
}

/// From (w, x, y, z).
inline Matrix3 rotation_from_quaternion(const std::array<double, 4>& quaternion) {
    Matrix3 rotation{};
    check(clebsch_rotation_from_quaternion(quaternion.data(), rotation.data()));
    return rotation;
}

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
        handle_ = detail::created(clebsch_plan_destroy,
                                  [&](clebsch_plan** handle) { return clebsch_plan_prepare(operation.handle(), &given, handle); });
    }
    explicit Plan(const Operation& operation, clebsch_dtype dtype = CLEBSCH_FLOAT32)
        : Plan(operation, PlanOptions{dtype, {}, {}, {}, {}, false}) {}

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

/* ------------------------------------------------------------------ graphs and potentials */

/// Atoms of one structure or of a batch, seen where they lie.
struct Structures {
    std::span<const double> positions;             ///< atoms x 3
    std::span<const double> cells = {};            ///< structures x 9 (rows are lattice vectors); empty: no periodicity
    std::span<const int> periodic = {};            ///< structures x 3 flags; empty: all periodic if there are cells
    std::span<const std::int64_t> structure = {};  ///< structure of each atom, non-decreasing from 0; empty: one structure
    std::int64_t count = 1;                        ///< structures

    std::int64_t atoms() const { return static_cast<std::int64_t>(positions.size() / 3); }
    /// As the C interface takes it. Throws std::invalid_argument naming the array that does not fit.
    clebsch_graph_options options(double cutoff = 0) const {
        const auto require = [](const char* name, std::size_t size, std::int64_t rows, std::int64_t row_size) {
            const auto got = static_cast<std::int64_t>(size);
            if (got % row_size != 0 || got / row_size != rows)
                throw std::invalid_argument("clebsch: " + std::string(name) + ": expected " + std::to_string(rows) + " x " +
                                            std::to_string(row_size) + " numbers, got " + std::to_string(size));
        };
        if (count < 1) throw std::invalid_argument("clebsch: count: expected at least 1 structure, got " + std::to_string(count));
        require("positions", positions.size(), atoms(), 3);
        if (!cells.empty()) require("cells", cells.size(), count, 9);
        if (!periodic.empty()) require("periodic", periodic.size(), count, 3);
        if (!structure.empty()) require("structure", structure.size(), atoms(), 1);
        clebsch_graph_options result = CLEBSCH_GRAPH_OPTIONS_DEFAULTS;
        result.positions = positions.data();
        result.atoms = atoms();
        result.cells = cells.empty() ? nullptr : cells.data();
        result.periodic = periodic.empty() ? nullptr : periodic.data();
        result.structure = structure.empty() ? nullptr : structure.data();
        result.structures = count;
        result.cutoff = cutoff;
        return result;
    }
};

/// A neighbour list as a receiver-sorted graph: an edge for every pair closer than the cutoff, from sender j to receiver i, with vector
/// x_j - x_i + shift . cell. Needs the vesin library. What it shows lives as long as the graph or a copy of it.
class Graph {
 public:
    Graph(const Structures& structures, double cutoff) {
        const clebsch_graph_options options = structures.options(cutoff);
        handle_ = detail::created(clebsch_graph_destroy, [&](clebsch_graph** handle) { return clebsch_graph_build(&options, handle); });
    }
    std::int64_t nodes() const { return clebsch_graph_node_count(handle()); }
    std::int64_t edges() const { return clebsch_graph_edge_count(handle()); }
    std::span<const std::int64_t> sender() const { return view(clebsch_graph_sender(handle()), edges()); }
    std::span<const std::int64_t> receiver() const { return view(clebsch_graph_receiver(handle()), edges()); }
    /// nodes + 1: first edge of each receiver.
    std::span<const std::int64_t> offsets() const { return view(clebsch_graph_offsets(handle()), nodes() + 1); }
    /// Edges ordered by sender.
    std::span<const std::int64_t> transposed() const { return view(clebsch_graph_transposed(handle()), edges()); }
    std::span<const double> vectors() const { return view(clebsch_graph_vectors(handle()), 3 * edges()); }
    /// In lattice vectors.
    std::span<const std::int32_t> shifts() const { return view(clebsch_graph_shifts(handle()), 3 * edges()); }
    /// Structure of each node.
    std::span<const std::int64_t> structure() const { return view(clebsch_graph_structure(handle()), nodes()); }
    const clebsch_graph* handle() const { return handle_.get(); }

 private:
    template <class T>
    static std::span<const T> view(const T* data, std::int64_t size) {
        return {data, static_cast<std::size_t>(size)};
    }

    std::shared_ptr<const clebsch_graph> handle_;
};

struct PotentialOptions {
    clebsch_dtype dtype = CLEBSCH_FLOAT32;  ///< of the model's arithmetic; sums over atoms and edges are float64
    std::string instruction_set = {};       ///< "": the default one
    double skin = 0;          ///< Angstrom: neighbours this far beyond the cutoff are remembered between evaluations; 0: search every time
    std::string device = {};  ///< "": the processor; "cuda", "cuda:1": a GPU
    bool deterministic = false;  ///< on a GPU: every sum has one order, so that results are the same bits every time
};

/// In eV and Angstrom.
struct Energies {
    std::vector<double> energy;       ///< structures
    std::vector<double> atom_energy;  ///< atoms
    std::vector<double> forces;       ///< atoms x 3
    std::vector<double> virial;       ///< structures x 9: dE/d(symmetric strain); over the volume it is the stress, positive: tension
};

/// A pretrained potential. One evaluation runs at a time: further threads wait.
class Potential {
 public:
    /// From a checkpoint: a Nequix .nqx file.
    explicit Potential(const std::string& path, const PotentialOptions& options = {}) {
        clebsch_potential_options given = CLEBSCH_POTENTIAL_OPTIONS_DEFAULTS;
        given.dtype = options.dtype;
        given.skin = options.skin;
        if (!options.instruction_set.empty()) given.instruction_set = detail::pass(options.instruction_set);
        if (!options.device.empty()) given.device = detail::pass(options.device);
        given.deterministic = options.deterministic ? 1 : 0;
        handle_ = detail::created(clebsch_potential_destroy,
                                  [&](clebsch_potential** handle) { return clebsch_potential_load(detail::pass(path), &given, handle); });
    }
    /// Pairs at this distance and beyond have no effect.
    double cutoff() const { return clebsch_potential_cutoff(handle()); }
    /// Atomic numbers that the model knows; they live as long as the potential or a copy of it.
    std::span<const int> elements() const {
        std::size_t count = 0;
        const int* numbers = clebsch_potential_elements(handle(), &count);
        return {numbers, count};
    }
    std::string explain() const {
        return detail::text_from([&](char** text) { return clebsch_potential_explain(handle(), text); });
    }
    /// `atomic_numbers`: one per atom. Needs the vesin library.
    Energies evaluate(const Structures& structures, std::span<const int> atomic_numbers) const {
        const clebsch_graph_options options = structures.options();
        if (static_cast<std::int64_t>(atomic_numbers.size()) != options.atoms)
            throw std::invalid_argument("clebsch: atomic_numbers: expected " + std::to_string(options.atoms) + " numbers, got " +
                                        std::to_string(atomic_numbers.size()));
        const auto atoms = static_cast<std::size_t>(options.atoms), count = static_cast<std::size_t>(options.structures);
        Energies energies{std::vector<double>(count), std::vector<double>(atoms), std::vector<double>(3 * atoms),
                          std::vector<double>(9 * count)};
        clebsch_potential_result result = CLEBSCH_POTENTIAL_RESULT_DEFAULTS;
        result.energy = energies.energy.data();
        result.atom_energy = energies.atom_energy.data();
        result.forces = energies.forces.data();
        result.virial = energies.virial.data();
        check(clebsch_potential_evaluate(handle(), &options, atomic_numbers.data(), &result));
        return energies;
    }
    clebsch_potential* handle() const { return handle_.get(); }

 private:
    std::shared_ptr<clebsch_potential> handle_;
};

}  // namespace clebsch
