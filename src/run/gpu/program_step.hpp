#pragma once
// The pieces of a program planned for a GPU, one after another. Internal to run/gpu.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "describe/program.hpp"
#include "run/gpu/plan.hpp"
#include "run/program_step.hpp"
#include "schedule/gpu_matrix.hpp"
#include "schedule/gpu_program.hpp"

namespace clebsch::gpu {

/// What all steps of a launch share: arrays of the whole program, in device memory.
struct ProgramLaunch {
    const Buffer* values = nullptr;        ///< [values]
    const IndexBuffer* indices = nullptr;  ///< [indices]
    const std::int64_t* rows = nullptr;    ///< [spaces]
    Workspace scratch;                     ///< of the running step
    Stream stream = nullptr;
};

/// Immutable.
class ProgramStep {
 public:
    virtual ~ProgramStep() = default;
    virtual std::vector<int> reads() const = 0;
    virtual std::vector<int> writes() const = 0;
    virtual std::size_t scratch_bytes(const std::int64_t* /*rows*/) const { return 0; }
    /// Puts the work on the stream; neither allocates device memory nor waits.
    virtual void launch(const ProgramLaunch& launch) const = 0;
    /// Waits; whether a launch met an index out of range.
    virtual bool index_error() const { return false; }
    virtual double multiply_adds(const std::int64_t* /*rows*/) const { return 0; }
    virtual std::string explain() const = 0;  ///< lines
};

/// What steps know about the program when they are made.
struct ProgramStepRequest {
    const Program* program;
    const std::vector<std::string>* spaces;
    std::vector<DType> dtypes;  ///< of every value
    DType compute = DType::float32;
    const Device* device = nullptr;
    bool deterministic = false;  ///< sums have a fixed order

    int space_of(const std::string& name) const;
};

/// The kernel of a chain; arguments: `which` is a value of the program.
KernelText chain_kernel(const Program& program, const std::vector<GpuProgramStep>& links, const std::vector<DType>& dtypes, DType compute,
                        const GpuTarget& target);

/// Compile, so that several should be made at once in threads of their own.
std::unique_ptr<ProgramStep> make_tape_step(const ProgramStepRequest& request, const GpuProgramStep& step);
std::unique_ptr<ProgramStep> make_chain_step(const ProgramStepRequest& request, const std::vector<GpuProgramStep>& links);
std::unique_ptr<ProgramStep> make_polynomial_step(const ProgramStepRequest& request, const PolynomialNode& node);
/// All values that `schedule` touches are stored in the compute type.
std::unique_ptr<ProgramStep> make_matrix_step(const ProgramStepRequest& request, const PolynomialNode& node, MatrixSchedule schedule);
std::unique_ptr<ProgramStep> make_conversion_step(const ProgramStepRequest& request, int from, int to);

}  // namespace clebsch::gpu
