#pragma once
// What a schedule may count on of a GPU: its architecture and the few limits that shape kernels. No device is asked.
#include <string>
#include <string_view>

namespace clebsch {

struct GpuTarget {
    int major = 9, minor = 0;  ///< compute capability
    int shared_bytes = 0;      ///< shared memory a block may have
    int registers = 65536;     ///< 32-bit registers of a multiprocessor

    bool bulk_copies() const { return major >= 9; }  ///< asynchronous copies of whole rows that count on a barrier
    std::string name() const { return "sm_" + std::to_string(major * 10 + minor); }
    friend bool operator==(const GpuTarget&, const GpuTarget&) = default;
};

/// By name: "sm_80", "sm_90", "sm_120", ... Throws Error(invalid_argument) below sm_80 and for anything else.
GpuTarget gpu_target(std::string_view name);
/// By compute capability. Throws Error(unsupported) below 8.0.
GpuTarget gpu_target(int major, int minor);

}  // namespace clebsch
