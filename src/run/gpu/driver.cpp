#include "run/gpu/driver.hpp"

#include <charconv>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "run/dynamic_library.hpp"

namespace clebsch::gpu {
namespace {

// The part of the driver's C interface that is used here (cuda.h).
namespace abi {
using Result = int;
using Pointer = unsigned long long;
struct LaunchAttribute {  // CUlaunchAttribute
    int id, unused;
    int value[16];
};
struct LaunchConfig {  // CUlaunchConfig
    unsigned grid[3], block[3], shared_bytes;
    void* stream;
    LaunchAttribute* attributes;
    unsigned attribute_count;
};
constexpr int launch_programmatic = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
struct Functions {
    DynamicLibrary library;
    Result (*init)(unsigned);
    Result (*driver_version)(int*);
    Result (*error_string)(Result, const char**);
    Result (*device_count)(int*);
    Result (*device)(int*, int);
    Result (*device_name)(char*, int, int);
    Result (*device_attribute)(int*, int, int);
    Result (*retain)(void**, int);
    Result (*push)(void*);
    Result (*pop)(void**);
    Result (*current)(void**);
    Result (*allocate)(Pointer*, std::size_t);
    Result (*release)(Pointer);
    Result (*to_device)(Pointer, const void*, std::size_t);
    Result (*from_device)(void*, Pointer, std::size_t);
    Result (*copy)(Pointer, Pointer, std::size_t, void*);
    Result (*zero)(Pointer, unsigned char, std::size_t, void*);
    Result (*zero_rows)(Pointer, std::size_t, unsigned char, std::size_t, std::size_t, void*);
    Result (*synchronize)();
    Result (*allocate_host)(void**, std::size_t, unsigned);
    Result (*release_host)(void*);
    Result (*to_device_later)(Pointer, const void*, std::size_t, void*);
    Result (*from_device_later)(void*, Pointer, std::size_t, void*);
    Result (*stream_synchronize)(void*);
    Result (*begin_capture)(void*, int);
    Result (*end_capture)(void*, void**);
    Result (*capture_info)(void*, int*, std::uint64_t*, void**, void* const**, std::size_t*);
    Result (*capture_dependencies)(void*, void**, std::size_t, unsigned);
    Result (*graph_instantiate)(void**, void*, unsigned long long);
    Result (*graph_launch)(void*, void*);
    Result (*graph_destroy)(void*);
    Result (*graph_executable_destroy)(void*);
    Result (*stream_create)(void**, unsigned);
    Result (*stream_destroy)(void*);
    Result (*event_create)(void**, unsigned);
    Result (*event_destroy)(void*);
    Result (*event_record)(void*, void*);
    Result (*event_synchronize)(void*);
    Result (*event_elapsed)(float*, void*, void*);
    Result (*module_load)(void**, const void*);
    Result (*module_unload)(void*);
    Result (*module_function)(void**, void*, const char*);
    Result (*function_attribute)(int*, int, void*);
    Result (*set_function_attribute)(void*, int, int);
    Result (*occupancy)(int*, void*, int, std::size_t);
    Result (*launch_with)(const abi::LaunchConfig*, void*, void**, void**);
    Result (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);

    Functions() : library("libcuda.so.1") {
        get(init, "cuInit");
        get(driver_version, "cuDriverGetVersion");
        get(error_string, "cuGetErrorString");
        get(device_count, "cuDeviceGetCount");
        get(device, "cuDeviceGet");
        get(device_name, "cuDeviceGetName");
        get(device_attribute, "cuDeviceGetAttribute");
        get(retain, "cuDevicePrimaryCtxRetain");
        get(push, "cuCtxPushCurrent_v2");
        get(pop, "cuCtxPopCurrent_v2");
        get(current, "cuCtxGetCurrent");
        get(allocate, "cuMemAlloc_v2");
        get(release, "cuMemFree_v2");
        get(to_device, "cuMemcpyHtoD_v2");
        get(from_device, "cuMemcpyDtoH_v2");
        get(copy, "cuMemcpyDtoDAsync_v2");
        get(zero, "cuMemsetD8Async");
        get(zero_rows, "cuMemsetD2D8Async");
        get(synchronize, "cuCtxSynchronize");
        get(allocate_host, "cuMemHostAlloc");
        get(release_host, "cuMemFreeHost");
        get(to_device_later, "cuMemcpyHtoDAsync_v2");
        get(from_device_later, "cuMemcpyDtoHAsync_v2");
        get(stream_synchronize, "cuStreamSynchronize");
        get(begin_capture, "cuStreamBeginCapture_v2");
        get(end_capture, "cuStreamEndCapture");
        get(capture_info, "cuStreamGetCaptureInfo_v2");
        get(capture_dependencies, "cuStreamUpdateCaptureDependencies");
        get(graph_instantiate, "cuGraphInstantiateWithFlags");
        get(graph_launch, "cuGraphLaunch");
        get(graph_destroy, "cuGraphDestroy");
        get(graph_executable_destroy, "cuGraphExecDestroy");
        get(stream_create, "cuStreamCreate");
        get(stream_destroy, "cuStreamDestroy_v2");
        get(event_create, "cuEventCreate");
        get(event_destroy, "cuEventDestroy_v2");
        get(event_record, "cuEventRecord");
        get(event_synchronize, "cuEventSynchronize");
        get(event_elapsed, "cuEventElapsedTime");
        get(module_load, "cuModuleLoadData");
        get(module_unload, "cuModuleUnload");
        get(module_function, "cuModuleGetFunction");
        get(function_attribute, "cuFuncGetAttribute");
        get(set_function_attribute, "cuFuncSetAttribute");
        get(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
        get(launch, "cuLaunchKernel");
        get(launch_with, "cuLaunchKernelEx");
        check(init(0), "initialising the CUDA driver");
    }

    /// The error says `doing` and `what`: in two pieces, so that launches make no text.
    void check(Result result, std::string_view doing, std::string_view what = {}) const {
        if (result == 0) return;
        const char* words = nullptr;
        error_string(result, &words);
        throw Error(ErrorKind::unsupported, std::string(doing) + std::string(what) + ": CUDA error " + std::to_string(result) +
                                                (words != nullptr ? ", " + std::string(words) : ""));
    }

 private:
    template <class F>
    void get(F*& function, const char* name) {
        function = library.function<F>(name);
    }
};

// CUdevice_attribute, CUfunction_attribute
constexpr int attribute_major = 75, attribute_minor = 76, attribute_multiprocessors = 16;
constexpr int function_registers = 4, function_dynamic_shared = 8;
constexpr int capture_active = 1;             // CUstreamCaptureStatus
constexpr int capture_of_this_thread = 1;     // CUstreamCaptureMode
constexpr unsigned replace_dependencies = 1;  // CUstreamUpdateCaptureDependencies_flags
}  // namespace abi

/// Loaded once; stays to the end, since other threads may be in it.
const abi::Functions& driver() {
    static const abi::Functions* loaded = [] {
        try {
            return new abi::Functions;
        } catch (const Error& error) {
            throw Error(ErrorKind::not_found, std::string("no usable CUDA driver (libcuda.so.1): ") + error.what());
        }
    }();
    return *loaded;
}

abi::Pointer address(const void* pointer) { return reinterpret_cast<abi::Pointer>(pointer); }

}  // namespace

DriverStatus driver_status() {
    try {
        int version = 0, count = 0;
        driver().check(driver().driver_version(&version), "asking for the driver's version");
        driver().check(driver().device_count(&count), "counting GPUs");
        std::string text = "CUDA driver " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
        if (count == 0) return {false, text + ", no GPU"};
        for (int d = 0; d < count; ++d) {
            const Device& device = Device::get(d);
            text += ", " + device.name() + " (" + device.target().name() + ", " + std::to_string(device.multiprocessors()) +
                    " multiprocessors)";
        }
        return {true, text};
    } catch (const std::exception& error) { return {false, error.what()}; }
}

int device_count() {
    try {
        int count = 0;
        driver().check(driver().device_count(&count), "counting GPUs");
        return count;
    } catch (const std::exception&) { return 0; }
}

std::optional<int> parse_device(std::string_view text, const std::string& where) {
    constexpr std::string_view cuda = "cuda";
    if (text == "cpu") return std::nullopt;
    if (text == cuda) return 0;
    int number = -1;
    if (text.starts_with(cuda) && text.substr(cuda.size()).starts_with(':')) {
        const char *const begin = text.data() + cuda.size() + 1, *const last = text.data() + text.size();
        const auto [end, error] = std::from_chars(begin, last, number);
        if (error == std::errc() && end == last && number >= 0) return number;
    }
    fail(where + ": expected cpu, cuda or cuda:NUMBER, got '" + std::string(text) + "'");
}

const Device& Device::get(int number) {
    static std::mutex mutex;
    static auto* devices = new std::map<int, const Device*>;
    const std::lock_guard lock(mutex);
    const Device*& device = (*devices)[number];
    if (device == nullptr) device = new Device(number);
    return *device;
}

Device::Device(int number) : number_(number) {
    const abi::Functions& f = driver();
    int count = 0;
    f.check(f.device_count(&count), "counting GPUs");
    if (number < 0 || number >= count) fail("GPU number " + std::to_string(number) + ": this machine has " + std::to_string(count));
    int handle = 0, major = 0, minor = 0;
    f.check(f.device(&handle, number), "opening a GPU");
    char name[256] = {};
    f.check(f.device_name(name, sizeof name - 1, handle), "asking for a GPU's name");
    name_ = name;
    f.check(f.device_attribute(&major, abi::attribute_major, handle), "asking for a GPU's architecture");
    f.check(f.device_attribute(&minor, abi::attribute_minor, handle), "asking for a GPU's architecture");
    f.check(f.device_attribute(&multiprocessors_, abi::attribute_multiprocessors, handle), "asking for a GPU's size");
    target_ = gpu_target(major, minor);
    f.check(f.retain(&context_, handle), "opening the context of " + name_);
}

void* Device::allocate(std::size_t bytes) const {
    const InUse in_use(*this);
    abi::Pointer pointer = 0;
    driver().check(driver().allocate(&pointer, bytes), "allocating " + std::to_string(bytes) + " bytes on " + name_);
    return reinterpret_cast<void*>(pointer);  // NOLINT(performance-no-int-to-ptr): the driver's addresses are numbers
}

void Device::release(void* memory) const noexcept {
    try {
        const InUse in_use(*this);
        driver().release(address(memory));
    } catch (const std::exception&) {  // the context is gone at the end of a process, and its memory with it
        return;
    }
}

void Device::to_device(void* to, const void* from, std::size_t bytes) const {
    if (bytes == 0) return;
    const InUse in_use(*this);
    driver().check(driver().to_device(address(to), from, bytes), "copying to " + name_);
}

void Device::from_device(void* to, const void* from, std::size_t bytes) const {
    const InUse in_use(*this);
    driver().check(driver().synchronize(), "waiting for " + name_);
    if (bytes > 0) driver().check(driver().from_device(to, address(from), bytes), "copying from " + name_);
}

void Device::copy(void* to, const void* from, std::size_t bytes, Stream stream) const {
    const InUse in_use(*this);
    driver().check(driver().copy(address(to), address(from), bytes, stream), "copying on ", name_);
}

void Device::synchronize() const {
    const InUse in_use(*this);
    driver().check(driver().synchronize(), "waiting for " + name_);
}

void* Device::allocate_host(std::size_t bytes) const {
    const InUse in_use(*this);
    void* memory = nullptr;
    driver().check(driver().allocate_host(&memory, bytes, 0), "allocating " + std::to_string(bytes) + " bytes of host memory");
    return memory;
}

void Device::release_host(void* memory) const noexcept {
    try {
        const InUse in_use(*this);
        driver().release_host(memory);
    } catch (const std::exception&) { return; }
}

void Device::to_device(void* to, const void* from, std::size_t bytes, Stream stream) const {
    if (bytes == 0) return;
    const InUse in_use(*this);
    driver().check(driver().to_device_later(address(to), from, bytes, stream), "copying to ", name_);
}

void Device::from_device(void* to, const void* from, std::size_t bytes, Stream stream) const {
    if (bytes == 0) return;
    const InUse in_use(*this);
    driver().check(driver().from_device_later(to, address(from), bytes, stream), "copying from ", name_);
}

void Device::synchronize(Stream stream) const {
    const InUse in_use(*this);
    driver().check(driver().stream_synchronize(stream), "waiting for ", name_);
}

void Device::zero(void* to, std::size_t stride, std::size_t bytes, std::size_t rows, Stream stream) const {
    if (bytes == 0 || rows == 0) return;
    const InUse in_use(*this);
    if (stride == bytes || rows == 1) driver().check(driver().zero(address(to), 0, bytes * rows, stream), "setting an output to zero");
    else driver().check(driver().zero_rows(address(to), stride, 0, bytes, rows, stream), "setting an output to zero");
}

std::vector<RecordedNode> Device::latest_recorded(Stream stream) const {
    const InUse in_use(*this);
    int status = 0;
    std::uint64_t number = 0;
    void* graph = nullptr;
    void* const* nodes = nullptr;
    std::size_t count = 0;
    driver().check(driver().capture_info(stream, &status, &number, &graph, &nodes, &count), "asking what was recorded on ", name_);
    if (status != abi::capture_active) fail("internal: a stream that was to record does not");
    return {nodes, nodes + count};
}

void Device::record_after(std::span<const RecordedNode> nodes, Stream stream) const {
    const InUse in_use(*this);
    std::vector<RecordedNode> list(nodes.begin(), nodes.end());
    driver().check(driver().capture_dependencies(stream, list.data(), list.size(), abi::replace_dependencies), "recording on ", name_);
}

Stream Device::make_stream() const {
    const InUse in_use(*this);
    void* stream = nullptr;
    driver().check(driver().stream_create(&stream, 1), "making a stream");
    return stream;
}

void Device::destroy_stream(Stream stream) const noexcept { driver().stream_destroy(stream); }

CapturedWork::CapturedWork(const Device& device, Stream stream, const std::function<void()>& work) : device_(device) {
    const Device::InUse in_use(device);
    driver().check(driver().begin_capture(stream, abi::capture_of_this_thread), "beginning to record work");
    void* graph = nullptr;
    try {
        work();
    } catch (...) {
        driver().end_capture(stream, &graph);
        if (graph != nullptr) driver().graph_destroy(graph);
        throw;
    }
    driver().check(driver().end_capture(stream, &graph), "recording work");
    const abi::Result result = driver().graph_instantiate(&executable_, graph, 0);
    driver().graph_destroy(graph);
    driver().check(result, "preparing recorded work");
}

CapturedWork::~CapturedWork() {
    try {
        const Device::InUse in_use(device_);
        driver().graph_executable_destroy(executable_);
    } catch (const std::exception&) { return; }
}

void CapturedWork::launch(Stream stream) const {
    const Device::InUse in_use(device_);
    driver().check(driver().graph_launch(executable_, stream), "launching recorded work");
}

Device::InUse::InUse(const Device& device) {
    void* before = nullptr;  // asking costs less than changing it
    driver().check(driver().current(&before), "asking for the current CUDA context");
    if (before == device.context_) return;
    driver().check(driver().push(device.context_), "making a CUDA context current");
    pushed_ = true;
}

Device::InUse::~InUse() {
    void* previous = nullptr;
    if (pushed_) driver().pop(&previous);
}

Device::Timer::Timer(const Device& device) : device_(device) {
    const Device::InUse in_use(device_);
    driver().check(driver().event_create(&begin_, 0), "making an event");
    driver().check(driver().event_create(&end_, 0), "making an event");
}

Device::Timer::~Timer() {
    driver().event_destroy(begin_);
    driver().event_destroy(end_);
}

void Device::Timer::start(Stream stream) const {
    const Device::InUse in_use(device_);
    driver().check(driver().event_record(begin_, stream), "recording an event");
}

double Device::Timer::stop(Stream stream) const {
    const Device::InUse in_use(device_);
    driver().check(driver().event_record(end_, stream), "recording an event");
    driver().check(driver().event_synchronize(end_), "waiting for a kernel");
    float milliseconds = 0;
    driver().check(driver().event_elapsed(&milliseconds, begin_, end_), "reading a time");
    return static_cast<double>(milliseconds);
}

Module::Module(const Device& device, const std::string& cubin, const std::string& kernel, int spilled_bytes)
    : device_(device), name_(kernel), spilled_bytes_(spilled_bytes) {
    const Device::InUse in_use(device_);
    driver().check(driver().module_load(&library_, cubin.data()), "loading kernel " + kernel + " on " + device.name());
    const abi::Result result = driver().module_function(&function_, library_, kernel.c_str());
    if (result != 0) {
        driver().module_unload(library_);
        driver().check(result, "looking for kernel " + kernel);
    }
}

Module::~Module() {
    try {
        const Device::InUse in_use(device_);
        driver().module_unload(library_);
    } catch (const std::exception&) { return; }
}

void Module::allow_shared(int bytes) const {
    const Device::InUse in_use(device_);
    driver().check(driver().set_function_attribute(function_, abi::function_dynamic_shared, bytes),
                   "kernel " + name_ + ": asking for " + std::to_string(bytes) + " bytes of shared memory");
}

int Module::blocks_per_multiprocessor(int threads, int shared_bytes) const {
    const Device::InUse in_use(device_);
    int blocks = 0;
    driver().check(driver().occupancy(&blocks, function_, threads, static_cast<std::size_t>(shared_bytes)),
                   "kernel " + name_ + ": occupancy");
    return blocks;
}

int Module::registers() const {
    const Device::InUse in_use(device_);
    int value = 0;
    driver().check(driver().function_attribute(&value, abi::function_registers, function_), "kernel " + name_ + ": registers");
    return value;
}

void Module::launch(std::array<std::int64_t, 2> grid, int threads, int shared_bytes, Stream stream,
                    std::span<const std::uint64_t> arguments) const {
    if (grid[0] == 0 || grid[1] == 0) return;
    const Device::InUse in_use(device_);
    void* parameters[] = {const_cast<std::uint64_t*>(arguments.data())};
    driver().check(driver().launch(function_, static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]), 1,
                                   static_cast<unsigned>(threads), 1, 1, static_cast<unsigned>(shared_bytes), stream, parameters, nullptr),
                   "launching kernel ", name_);
}

void Module::launch_early(std::array<std::int64_t, 2> grid, int threads, int shared_bytes, Stream stream,
                          std::span<const std::uint64_t> arguments) const {
    if (device_.target().major < 9) return launch(grid, threads, shared_bytes, stream, arguments);
    const Device::InUse in_use(device_);
    void* parameters[] = {const_cast<std::uint64_t*>(arguments.data())};
    abi::LaunchAttribute attribute{.id = abi::launch_programmatic, .unused = 0, .value = {1}};
    const abi::LaunchConfig config{.grid = {static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]), 1},
                                   .block = {static_cast<unsigned>(threads), 1, 1},
                                   .shared_bytes = static_cast<unsigned>(shared_bytes),
                                   .stream = stream,
                                   .attributes = &attribute,
                                   .attribute_count = 1};
    driver().check(driver().launch_with(&config, function_, parameters, nullptr), "launching kernel ", name_);
}

}  // namespace clebsch::gpu
