#pragma once
// Emitted kernels as functions of this process, and the kernels of one polynomial run on arrays: what run_emitted (emitted.hpp) stands on.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "emit/kernels.hpp"

namespace clebsch::testing {

/// Number `i` of an array that is stored so.
void put_number(void* array, GpuNumber type, std::int64_t i, long double number);
long double number_at(const void* array, GpuNumber type, std::int64_t i);

/// Kernels compiled together.
class HostKernels {
 public:
    HostKernels();
    ~HostKernels();
    HostKernels(const HostKernels&) = delete;
    HostKernels& operator=(const HostKernels&) = delete;

    /// Returns the kernel's number.
    int add(const KernelText& kernel);
    /// Once all are there. Throws Error with the compiler's words.
    void compile();
    /// Throws Error when its threads wait for one another for ever.
    void run(int kernel, const std::vector<std::uint64_t>& words, const LaunchShape& shape) const;

 private:
    std::filesystem::path folder_;  // of this object alone, gone with it
    std::string text_;
    std::vector<std::string> names_;
    void* handle_ = nullptr;
};

struct Prepared {
    GpuProblem problem;
    GpuKernels kernels;
};
/// `storage`: of every operand; empty: float64 all. `spare`: of every kernel.
Prepared prepare(const Polynomial& polynomial, const std::string& schedule, bool ordered = false, std::vector<bool> messages = {},
                 std::vector<GpuNumber> storage = {}, SpareRegisters spare = {});

using Indices = std::map<std::string, std::vector<std::int64_t>>;
using Rows = std::map<std::string, std::int64_t>;
std::int64_t rows_of(const Rows& rows, const std::string& space);

/// Runs the kernels of a polynomial on arrays, one per operand; `first`: the number of the first stage's kernel; `gap`: numbers between two
/// rows of an input.
void run_stages(const HostKernels& host, int first, const Prepared& prepared, const std::vector<double*>& arrays, const Indices& indices,
                const Rows& rows, bool aligned = false, std::int64_t gap = 0);

}  // namespace clebsch::testing
