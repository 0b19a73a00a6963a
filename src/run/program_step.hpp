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

namespace clebsch {

/// What a step sees of a launch. All arrays are those of the whole program.
struct StepCall {
    const Buffer* values = nullptr;        ///< [values]
    const IndexBuffer* indices = nullptr;  ///< [indices], checked
    const std::int64_t* rows = nullptr;    ///< [spaces]
    std::byte* workspace = nullptr;        ///< 64-byte aligned, workspace_bytes() long
    std::size_t workspace_bytes = 0;
    const ParallelFor* parallel_for = nullptr;
};

/// Immutable.
class ProgramStep {
 public:
    virtual ~ProgramStep() = default;
    virtual std::vector<int> reads() const = 0;  ///< values, in any order
    virtual std::vector<int> writes() const = 0;
    virtual std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const = 0;
    virtual void launch(const StepCall& call) const = 0;
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

    int space_of(const std::string& name) const;  ///< position in spaces; -1: shared
};

/// Applies the polynomial of a node through a plan of its own.
std::unique_ptr<ProgramStep> make_polynomial_step(const StepRequest& request, const PolynomialNode& node);
/// Applies a function, both values stored in the compute type.
std::unique_ptr<ProgramStep> make_function_step(const StepRequest& request, const FunctionNode& node);
/// Runs nodes of one row space that suit lanes as one tape; all their values are stored in the compute type. `stored`: the values to write.
std::unique_ptr<ProgramStep> make_lanes_step(const StepRequest& request, std::span<const Node* const> nodes,
                                             const std::vector<int>& stored);
/// Copies a value into another one with the same numbers and space and another storage type.
std::unique_ptr<ProgramStep> make_conversion_step(const StepRequest& request, int from, int to);

inline std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace clebsch
