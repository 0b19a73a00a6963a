#pragma once
// The pieces of a planned program, one after another. Internal to run/.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "describe/program.hpp"
#include "run/call.hpp"
#include "run/plan.hpp"
#include "run/threads.hpp"
#include "run/workspace.hpp"

namespace clebsch {

/// What all steps of a group share during a launch. All arrays are those of the whole program.
struct GroupLaunch {
    const Buffer* values = nullptr;        ///< [values]; without data where a value exists only in chunks
    const IndexBuffer* indices = nullptr;  ///< [indices], checked
    const std::int64_t* rows = nullptr;    ///< [spaces]
    Division division;
    const ParallelFor* parallel_for = nullptr;
};

/// A range of iteration rows of one part, in the hands of one worker.
struct Chunk {
    /// [values]: those of the iteration's own rows are these rows only, `begin` first; all others are whole.
    const Buffer* values = nullptr;
    std::int64_t begin = 0, end = 0, part = 0;
    int worker = 0;
};

/// Immutable. A launch is: start; then for every part, by one worker, start_part, run for chunk after chunk, end_part; then finish. `state`
/// is memory of this launch, 64-byte aligned.
class ProgramStep {
 public:
    virtual ~ProgramStep() = default;
    virtual std::vector<int> reads() const = 0;  ///< values, in any order
    virtual std::vector<int> writes() const = 0;
    virtual PartCosts costs(std::span<const std::int64_t> rows) const = 0;
    virtual std::size_t scratch_bytes() const { return 0; }  ///< of a worker, for the time of `run`
    virtual std::size_t state_bytes(std::span<const std::int64_t> /*rows*/, const Division& /*division*/) const { return 0; }
    /// What can be made from inputs of the program that stay the same for many launches (weights packed for matrix products): bytes from a
    /// 64-byte aligned address, and making it. A launch that is handed it does not make it again.
    virtual std::size_t prepared_bytes() const { return 0; }
    virtual void prepare(const Buffer* /*values*/, std::byte* /*prepared*/) const {}
    /// `prepared`: null: not made yet.
    virtual void start(const GroupLaunch& /*launch*/, std::byte* /*state*/, const std::byte* /*prepared*/) const {}
    virtual void start_part(std::byte* /*state*/, std::int64_t /*part*/, int /*worker*/) const {}
    virtual void run(const GroupLaunch& launch, std::byte* state, const Chunk& chunk) const = 0;
    virtual void end_part(std::byte* /*state*/, std::int64_t /*part*/, int /*worker*/) const {}
    virtual void finish(const GroupLaunch& /*launch*/, std::byte* /*state*/) const {}

    /// The largest output summed through sorted indices: parts had better begin where its row changes.
    struct SortedOutput {
        std::int64_t numbers = 0;
        std::vector<int> chain;  ///< indices of the program, first applied first
    };
    virtual SortedOutput sorted_output() const { return {}; }
    virtual double multiply_adds(std::span<const std::int64_t> /*rows*/) const { return 0; }  ///< functions are not counted
    virtual std::string explain() const = 0;                                                  ///< lines
};

/// What steps know about the program when they are made.
struct StepRequest {
    const Program* program;
    const std::vector<std::string>* spaces;
    std::vector<DType> dtypes;  ///< storage of every value
    DType compute = DType::float32;
    InstructionSet isa{};
    std::string family;
    int threads = 1;  ///< that make steps ready, the caller's among them

    int space_of(const std::string& name) const;  ///< position in spaces; -1: shared
    /// Whether a plan for one runs the other: layers that are alike, and much of their derivatives, are the same polynomials.
    bool same_plan(const PolynomialNode& a, const PolynomialNode& b) const;
};

/// A plan for a node of a program that has been validated. Steps may share it.
std::shared_ptr<const PolynomialPlan> plan_node(const StepRequest& request, const PolynomialNode& node);
/// Applies the polynomial of a node.
std::unique_ptr<ProgramStep> make_polynomial_step(const StepRequest& request, const PolynomialNode& node,
                                                  std::shared_ptr<const PolynomialPlan> plan);
/// Applies a function, both values stored in the compute type.
std::unique_ptr<ProgramStep> make_function_step(const StepRequest& request, const FunctionNode& node);
/// Runs nodes of one row space that suit lanes as one tape; all their values are stored in the compute type. `stored`: the values to write.
std::unique_ptr<ProgramStep> make_lanes_step(const StepRequest& request, std::span<const Node* const> nodes,
                                             const std::vector<int>& stored);
/// Copies a value into another one with the same numbers and space and another storage type.
std::unique_ptr<ProgramStep> make_conversion_step(const StepRequest& request, int from, int to);

inline std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace clebsch
