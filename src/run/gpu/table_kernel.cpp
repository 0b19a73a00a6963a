#include "run/gpu/table_kernel.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "base/error.hpp"

namespace clebsch::gpu {

std::string table_image_missing() {
    if (!table_image().empty()) return "";
    return "Nor has this build the kernel that reads its coefficients at run time: there was no nvcc when it was configured "
           "(docs/gpu.md, Without the compiler)";
}

std::shared_ptr<const Module> table_module(const Device& device, const std::string& kernel) {
    if (const std::string missing = table_image_missing(); !missing.empty()) throw Error(ErrorKind::unsupported, missing);
    static std::mutex mutex;
    static auto* modules = new std::map<std::pair<int, std::string>, std::shared_ptr<const Module>>;
    const std::lock_guard lock(mutex);
    std::shared_ptr<const Module>& module = (*modules)[{device.number(), kernel}];
    if (module == nullptr) module = std::make_shared<const Module>(device, std::string(table_image()), kernel);
    return module;
}

}  // namespace clebsch::gpu
