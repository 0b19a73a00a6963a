#include "run/gpu/kernels.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/version.hpp"
#include "emit/text.hpp"

namespace clebsch::gpu {
namespace {

std::atomic<int> compiled{0};

struct Slot {
    std::once_flag once;
    std::shared_ptr<const Module> module;
};

std::shared_ptr<Slot> slot_of(const Device& device, const KernelSource& source) {
    static std::mutex mutex;
    static auto* slots = new std::map<std::pair<int, Hash>, std::shared_ptr<Slot>>;
    const std::lock_guard lock(mutex);
    std::shared_ptr<Slot>& slot = (*slots)[{device.number(), hash_text(source.text)}];
    if (slot == nullptr) slot = std::make_shared<Slot>();
    return slot;
}

std::shared_ptr<const Module> load(const Device& device, const KernelSource& source) {
    const std::shared_ptr<Slot> slot = slot_of(device, source);
    std::call_once(slot->once, [&] {
        const MachineCode code = machine_code(device.target(), source);
        slot->module = std::make_shared<const Module>(device, code.cubin, source.name, code.spilled_bytes);
    });
    return slot->module;
}

}  // namespace

KernelSource source_of(const KernelText& kernel, std::string_view preamble) {
    return {kernel.name, std::string(device_preamble()) + std::string(preamble) + "\n" + kernel.text};
}

MachineCode machine_code_of(const Compiled& result) { return {result.cubin, resources_of(result.log).spill_bytes}; }

Hash prebuilt_key(const GpuTarget& target, const KernelSource& source) {
    return hash_text(std::string("clebsch ") + version() + ", prebuilt\n" + target.name() + "\n" + source.text);
}

MachineCode machine_code(const GpuTarget& target, const KernelSource& source) {
    for (const std::filesystem::path& folder : prebuilt_folders())
        if (const std::optional<MachineCode> kept = KernelStore(folder).read(prebuilt_key(target, source))) return *kept;
    const CompilerStatus compiler = compiler_status();
    if (!compiler.found)
        throw KernelMissing(ErrorKind::not_found, compiler.text + "\nNor is kernel " + source.name + " for " + target.name() +
                                                      " in a folder of prebuilt ones (clebsch prebuild): " + prebuilt_text());
    const KernelStore store = default_store();
    const Hash key =
        hash_text(std::string("clebsch ") + version() + "\n" + target.name() + "\n" + compiler_identity() + "\n" + source.text);
    if (const std::optional<MachineCode> kept = store.read(key)) return *kept;
    ++compiled;
    MachineCode code = machine_code_of(compile(source.text, source.name, target));
    store.write(key, code);
    return code;
}

void side_by_side(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::vector<std::exception_ptr> errors(count);
    std::atomic<std::size_t> next{0};
    const auto walk = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            try {
                work(i);
            } catch (...) { errors[i] = std::current_exception(); }
        }
    };
    constexpr std::size_t most_threads = 16;
    const std::size_t threads = std::min({count, std::max<std::size_t>(1, std::thread::hardware_concurrency()), most_threads});
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back(walk);
    walk();
    for (std::thread& thread : others) thread.join();
    for (const std::exception_ptr& error : errors)
        if (error) std::rethrow_exception(error);
}

std::vector<std::shared_ptr<const Module>> load_kernels(const Device& device, const std::vector<KernelSource>& sources) {
    std::vector<std::shared_ptr<const Module>> modules(sources.size());
    side_by_side(sources.size(), [&](std::size_t i) { modules[i] = load(device, sources[i]); });
    return modules;
}

int compiled_kernels() { return compiled; }

}  // namespace clebsch::gpu
