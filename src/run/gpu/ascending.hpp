#pragma once
// Sorted indices on a device that do not ascend, shown in the results of the launch that met them: nothing has to wait for a GPU to tell.
#include <cstdint>
#include <memory>
#include <vector>

#include "run/call.hpp"
#include "run/gpu/driver.hpp"
#include "run/gpu/kernels.hpp"

namespace clebsch::gpu {

class AscendingCheck {
 public:
    struct Output {
        std::size_t operand = 0;
        std::int64_t row_size = 0;  ///< in numbers
    };
    struct Sorted {
        std::size_t index = 0, space = 0;  ///< of the rows it leads to
    };
    /// Compiles its kernel, or finds it in the cache, among prebuilt ones or in the library.
    AscendingCheck(const Device& device, std::vector<Output> outputs, std::vector<Sorted> sorted);

    static KernelSource source();

    /// Puts a kernel on the stream for every sorted index (and eight outputs): where an entry from 0 to the rows it leads to lies below an
    /// earlier one, all numbers of the outputs become NaN. The call has been checked. Allocates nothing and does not wait.
    void launch(const Call& call, Stream stream) const;

 private:
    std::vector<Output> outputs_;
    std::vector<Sorted> sorted_;
    std::shared_ptr<const Module> module_;
    bool early_ = false;  ///< compiled for this architecture, where it waits for the kernel before it by itself
};

}  // namespace clebsch::gpu
