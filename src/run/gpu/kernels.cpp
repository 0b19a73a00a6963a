#include "run/gpu/kernels.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/version.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/store.hpp"

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

std::string machine_code(const Device& device, const KernelSource& source) {
    const KernelStore store = default_store();
    const Hash key =
        hash_text(std::string("clebsch ") + version() + "\n" + device.target().name() + "\n" + compiler_identity() + "\n" + source.text);
    if (const std::optional<std::string> kept = store.read(key)) return *kept;
    ++compiled;
    std::string cubin = compile(source.text, source.name, device.target()).cubin;
    store.write(key, cubin);
    return cubin;
}

std::shared_ptr<const Module> load(const Device& device, const KernelSource& source) {
    const std::shared_ptr<Slot> slot = slot_of(device, source);
    std::call_once(slot->once, [&] { slot->module = std::make_shared<const Module>(device, machine_code(device, source), source.name); });
    return slot->module;
}

}  // namespace

std::vector<std::shared_ptr<const Module>> load_kernels(const Device& device, const std::vector<KernelSource>& sources) {
    std::vector<std::shared_ptr<const Module>> modules(sources.size());
    std::vector<std::exception_ptr> errors(sources.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < sources.size(); i = next++) {
            try {
                modules[i] = load(device, sources[i]);
            } catch (...) { errors[i] = std::current_exception(); }
        }
    };
    const std::size_t most = std::min<std::size_t>({sources.size(), std::max<std::size_t>(1, std::thread::hardware_concurrency()), 16});
    std::vector<std::thread> threads;
    for (std::size_t t = 1; t < most; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors)
        if (error) std::rethrow_exception(error);
    return modules;
}

int compiled_kernels() { return compiled; }

}  // namespace clebsch::gpu
