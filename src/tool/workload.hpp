#pragma once
// An operation ready to run on arrays of this program's own: row counts and indices (a topology), arrays filled with normal numbers, a
// plan, a workspace.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/memory.hpp"
#include "describe/operations/registry.hpp"
#include "describe/reference.hpp"
#include "graph/graph.hpp"
#include "run/plan.hpp"
#include "run/program_plan.hpp"
#include "tool/gpu_workload.hpp"

namespace clebsch::tool {

/// One array of a call.
struct Argument {
    std::string name;
    std::vector<Segment> segments;
    Layout layout = Layout::mul_ir;
    Role role = Role::input;
    std::string space;      ///< "": one row
    std::int64_t size = 0;  ///< numbers per row
};
/// In the order of buffers: operands of a polynomial; inputs, then outputs of a program.
std::vector<Argument> arguments_of(const Description& description);
std::vector<std::string> input_names(const Description& description);
const std::vector<Index>& indices_of(const Description& description);
std::vector<std::string> spaces_of(const Description& description);
/// Whether it computes anything; without paths and functions outputs are zero whatever comes in.
bool computes(const Description& description);
/// Where the work is: the rows of a polynomial, or of a program's first one.
std::string iteration_space(const Description& description);

/// Rows of every space and values of every index.
struct Topology {
    std::map<std::string, std::int64_t> rows;
    std::map<std::string, std::vector<std::int64_t>> indices;
};

struct TopologyOptions {
    std::int64_t nodes = 0, neighbours = 0;  ///< rows of "node"; of "edge": nodes x neighbours
    std::int64_t rows = 0;                   ///< of any other space that is no target of an index
    bool ragged = false;                     ///< sorted indices of random lengths (some empty), some rows masked if the index is unsorted
    std::uint64_t seed = 1;
};
/// For all spaces and indices of the description: neighbours drawn from all nodes, other targets have 10 rows.
Topology make_topology(const Description& description, const TopologyOptions& options);
/// Spaces edge and node, indices sender and receiver.
Topology topology_of(const Graph& graph);

/// Rows x size numbers, 64-byte aligned, packed.
class Array {
 public:
    Array(DType dtype, std::int64_t rows, std::int64_t size);  ///< throws Error when there is no memory

    /// Normal numbers that float32 holds exactly, repeating after about a million.
    void fill_normal(std::uint64_t seed);
    void fill(const ReferenceArray& numbers);
    ReferenceArray numbers(std::int64_t first_row = 0, std::int64_t rows = -1) const;

    double get(std::int64_t i) const { return dtype_ == DType::float64 ? at<double>()[i] : static_cast<double>(at<float>()[i]); }
    void set(std::int64_t i, double value) {
        if (dtype_ == DType::float64) at<double>()[i] = value;
        else at<float>()[i] = static_cast<float>(value);
    }
    template <class T>
    T* at() const {
        return reinterpret_cast<T*>(memory_.data());
    }

    DType dtype() const { return dtype_; }
    std::int64_t rows() const { return rows_; }
    std::int64_t size() const { return size_; }
    std::int64_t count() const { return rows_ * size_; }
    std::size_t byte_count() const { return static_cast<std::size_t>(count()) * size_of(dtype_); }
    Buffer buffer() const { return {memory_.data(), dtype_, rows_, 0}; }

 private:
    DType dtype_;
    std::int64_t rows_, size_;
    Memory memory_;
};

/// Arrays by name, shared between an operation and its derivatives. Outputs of one may be overwritten by another with an output of the same
/// name.
class Arrays {
 public:
    explicit Arrays(DType dtype, std::uint64_t seed = 1) : dtype_(dtype), seed_(seed) {}

    /// Made when first asked for; inputs are filled with normal numbers that depend on the name and the seed.
    Array& get(const Argument& argument, std::int64_t rows);
    /// Instead of a filled input.
    void put(const std::string& name, Array array);
    void drop(const std::string& name);
    /// Out of here. Throws Error when there is none.
    Array take(const std::string& name, Role role);
    Array* find(const std::string& name, Role role);
    DType dtype() const { return dtype_; }

 private:
    DType dtype_;
    std::uint64_t seed_;
    std::map<std::pair<std::string, Role>, Array> arrays_;
};

struct WorkloadOptions {
    std::optional<InstructionSet> isa = {};
    std::string family = {};
    std::optional<int> gpu = {};  ///< runs there, the two above mean nothing
    bool deterministic = false;   ///< there
};

class Workload {
 public:
    /// Topology and arrays outlive the workload. Throws Error for what cannot be planned.
    Workload(Description description, const Topology& topology, Arrays& arrays, const WorkloadOptions& options = {});

    /// Call after creating all arrays' contents; allocates the workspace when threads change.
    void run(const ParallelFor& parallel_for);

    const Description& description() const { return description_; }
    const std::vector<Argument>& arguments() const { return arguments_; }
    std::int64_t rows() const;  ///< of iteration_space()
    Work work() const;
    std::string explain() const;
    /// "fold 23, general 2": kernel families with the number of paths they take.
    std::string schedule() const;
    Array& output(const std::string& name) { return *arrays_.find(name, Role::output); }
    ReferenceInputs reference_inputs() const;

 private:
    template <class Use>
    auto on_processor(Use use) const {
        if (const auto* plan = std::get_if<PolynomialPlan>(&plan_)) return use(*plan);
        return use(std::get<ProgramPlan>(plan_));
    }

    Description description_;
    const Topology& topology_;
    Arrays& arrays_;
    std::variant<PolynomialPlan, ProgramPlan, GpuWorkload> plan_;
    std::vector<Argument> arguments_;
    std::vector<Role> roles_;  ///< of the arguments
    std::vector<std::int64_t> row_counts_;
    std::vector<IndexBuffer> index_buffers_;
    Memory workspace_;
    int workspace_threads_ = 0;
};

/// Norm of the difference over the norm of the reference; infinite when a number is not finite.
double relative_error(const ReferenceArray& result, const ReferenceArray& reference);

}  // namespace clebsch::tool
