#include "schedule/gpu_target.hpp"

#include "base/error.hpp"

namespace clebsch {

GpuTarget gpu_target(int major, int minor) {
    if (major < 8)
        throw Error(ErrorKind::unsupported, "a GPU of compute capability " + std::to_string(major) + "." + std::to_string(minor) +
                                                ": 8.0 (Ampere) or newer is needed");
    GpuTarget target{.major = major, .minor = minor};
    const int number = major * 10 + minor;
    constexpr int kilobyte = 1024;
    // From the CUDA programming guide's table of compute capabilities.
    if (number == 80 || number == 87) target.shared_bytes = 163 * kilobyte;
    else if (major == 8 || major == 12) target.shared_bytes = 99 * kilobyte;
    else target.shared_bytes = 227 * kilobyte;
    return target;
}

GpuTarget gpu_target(std::string_view name) {
    int number = 0;
    bool right = name.substr(0, 3) == "sm_" && (name.size() == 5 || name.size() == 6);
    for (std::size_t i = 3; right && i < name.size(); ++i) {
        right = name[i] >= '0' && name[i] <= '9';
        number = number * 10 + (name[i] - '0');
    }
    if (!right || number < 80)
        fail("GPU target '" + std::string(name) + "': expected sm_80, sm_90, sm_100, sm_120 or another from sm_80 on");
    return gpu_target(number / 10, number % 10);
}

}  // namespace clebsch
