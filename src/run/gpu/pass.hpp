#pragma once
// The kernels of one polynomial, loaded, and how they are launched one after the other. PolynomialPlan checks what a caller passes and has
// one of these, or several where sums have a fixed order.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emit/kernels.hpp"
#include "run/call.hpp"
#include "run/gpu/driver.hpp"
#include "run/gpu/kernels.hpp"

namespace clebsch::gpu {

/// Adds room for so many rows to a workspace, at multiples of 256 bytes. Throws Error beyond 2^62 bytes.
void add_workspace(std::size_t& bytes, std::int64_t rows, std::int64_t numbers, std::size_t element);

class Pass {
 public:
    /// Schedules, compiles (or finds compiled kernels) and loads. Where neither the compiler nor prebuilt kernels are there, a channel-wise
    /// polynomial runs on the kernel that was compiled with the library. Throws Error.
    Pass(const Device& device, GpuProblem problem, std::vector<DType> dtypes, DType compute, const std::string& schedule);

    const Polynomial& polynomial() const { return problem_.polynomial; }
    const std::vector<std::string>& spaces() const { return spaces_; }
    const GpuKernels& kernels() const { return kernels_; }
    const std::vector<std::shared_ptr<const Module>>& modules() const { return modules_; }

    /// Of sums that are stored otherwise than they are summed, and of parts of sums.
    std::size_t workspace_bytes(std::span<const std::int64_t> rows) const;
    /// The call is checked. `error`: the flag in device memory that kernels set for indices.
    void launch(const Call& call, void* workspace, void* error, Stream stream) const;

 private:
    GpuProblem problem_;
    std::vector<DType> dtypes_;
    std::vector<std::int64_t> sizes_;  ///< numbers in a row of each operand
    DType compute_;
    const Device* device_;
    std::vector<std::string> spaces_;
    std::vector<int> operand_space_;  ///< -1: one row
    std::vector<int> index_to_;
    int stationary_space_ = -1;
    GpuKernels kernels_;
    std::vector<std::shared_ptr<const Module>> modules_;  ///< of the stages
    std::unique_ptr<Memory> tables_;                      ///< of the table schedule
    std::vector<std::int64_t> stream_blocks_;             ///< of every stage that is a stream kernel (else 0): the machine takes at once

    void load_table();
    void load_table_without(const KernelMissing& missing);
    std::int64_t rows_of(std::size_t o, std::span<const std::int64_t> rows) const;
    GpuChunks chunks(std::span<const std::int64_t> rows) const;
    /// Where an output's sums or parts begin in the workspace; behind the last operand's the targets of parts; then the end.
    std::size_t offset(std::size_t o, std::span<const std::int64_t> rows) const;
    std::uint64_t argument(const KernelArgument& argument, const Call& call, void* workspace, void* error, const GpuChunks& chunks) const;
    void clear(const Call& call, void* workspace, Stream stream) const;
};

}  // namespace clebsch::gpu
