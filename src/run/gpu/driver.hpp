#pragma once
// The CUDA driver, loaded when first used. The only file that knows its functions.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "schedule/gpu_target.hpp"

namespace clebsch::gpu {

/// A CUDA stream as the caller has it (CUstream, cudaStream_t); null: the default stream.
using Stream = void*;

/// What is there (loading it if need be) or why nothing is: one line for `clebsch info`. Never throws.
struct DriverStatus {
    bool found = false;
    std::string text;  ///< "CUDA driver 13.0, NVIDIA H200 (sm_90, 132 multiprocessors)", or what is missing
};
DriverStatus driver_status();
/// GPUs in this machine; 0 without a driver. Never throws.
int device_count();
/// "cpu": nothing; "cuda", "cuda:2": the number of a GPU, which need not be there. Throws Error(invalid_argument) beginning with `where`
/// for any other text.
std::optional<int> parse_device(std::string_view text, const std::string& where);

using RecordedNode = void*;  ///< CUgraphNode

/// The primary context of a device, retained to the end of the process. Functions make it current for the calling thread while they run.
/// Every function throws Error(unsupported) with the driver's own words.
class Device {
 public:
    /// Device `number`. Throws Error(not_found) without a driver, Error(invalid_argument) for a number there is not.
    static const Device& get(int number);

    int number() const { return number_; }
    const std::string& name() const { return name_; }
    const GpuTarget& target() const { return target_; }
    int multiprocessors() const { return multiprocessors_; }

    void* allocate(std::size_t bytes) const;
    void release(void* memory) const noexcept;
    void to_device(void* to, const void* from, std::size_t bytes) const;            ///< waits
    void from_device(void* to, const void* from, std::size_t bytes) const;          ///< waits for the device, then copies
    void copy(void* to, const void* from, std::size_t bytes, Stream stream) const;  ///< within the device, in the order of the stream
    void synchronize() const;

    /// Memory of the host that the device reads and writes by itself, and copies of it in the order of the stream, without waiting.
    void* allocate_host(std::size_t bytes) const;
    void release_host(void* memory) const noexcept;
    void to_device(void* to, const void* from, std::size_t bytes, Stream stream) const;
    void from_device(void* to, const void* from, std::size_t bytes, Stream stream) const;
    void synchronize(Stream stream) const;

    /// Rows of `bytes` bytes, `stride` apart, become zero, in the order of the stream.
    void zero(void* to, std::size_t stride, std::size_t bytes, std::size_t rows, Stream stream) const;

    /// On a stream that records (CapturedWork): what the next work would wait for; and what it shall wait for instead, so that work which
    /// does not wait for one another can be recorded side by side.
    std::vector<RecordedNode> latest_recorded(Stream stream) const;
    void record_after(std::span<const RecordedNode> nodes, Stream stream) const;

    Stream make_stream() const;
    void destroy_stream(Stream stream) const noexcept;
    /// Milliseconds between two events around what `work` puts on the stream.
    class Timer;
    /// The device's context is this thread's current one while this lives: what all that follows would else change by itself.
    class InUse;

 private:
    friend class Module;
    friend class CapturedWork;
    int number_ = 0;
    void* context_ = nullptr;
    std::string name_;
    GpuTarget target_;
    int multiprocessors_ = 0;
    explicit Device(int number);
};

/// A compiled kernel on a device.
class Module {
 public:
    /// Loads a cubin and its function. `spilled_bytes`: what the compiler said of it. Throws Error(unsupported) naming the kernel.
    Module(const Device& device, const std::string& cubin, const std::string& kernel, int spilled_bytes = 0);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    /// Dynamic shared memory beyond 48 kB must be allowed before a launch.
    void allow_shared(int bytes) const;
    int blocks_per_multiprocessor(int threads, int shared_bytes) const;
    int registers() const;
    int spilled_bytes() const { return spilled_bytes_; }  ///< that its code stores and loads because registers are short

    /// Puts the kernel on the stream; `arguments` is its one parameter. Allocates nothing and does not wait.
    void launch(std::array<std::int64_t, 2> grid, int threads, int shared_bytes, Stream stream,
                std::span<const std::uint64_t> arguments) const;
    /// The same, but where the GPU knows how, the kernel may begin before the one in front of it on the stream has ended: it has to wait
    /// for that one (wait_for_kernel_before of skeletons/device.cuh) in all blocks.
    void launch_early(std::array<std::int64_t, 2> grid, int threads, int shared_bytes, Stream stream,
                      std::span<const std::uint64_t> arguments) const;

 private:
    const Device& device_;
    std::string name_;
    void* library_ = nullptr;
    void* function_ = nullptr;
    int spilled_bytes_;
};

/// Device memory with the life of this object.
class Memory {
 public:
    Memory(const Device& device, std::size_t bytes)
        : device_(&device), data_(bytes > 0 ? device.allocate(bytes) : nullptr), bytes_(bytes) {}
    Memory(Memory&& other) noexcept : device_(other.device_), data_(other.data_), bytes_(other.bytes_) { other.data_ = nullptr; }
    Memory& operator=(Memory&&) = delete;
    ~Memory() {
        if (data_ != nullptr) device_->release(data_);
    }
    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

 private:
    const Device* device_;
    void* data_;
    std::size_t bytes_;
};

/// What `work` puts on the stream, recorded instead of run, to be run as one: many kernels for the host's time of one.
class CapturedWork {
 public:
    /// Throws what `work` throws, and Error when something in it cannot be recorded.
    CapturedWork(const Device& device, Stream stream, const std::function<void()>& work);
    ~CapturedWork();
    CapturedWork(const CapturedWork&) = delete;
    CapturedWork& operator=(const CapturedWork&) = delete;

    void launch(Stream stream) const;

 private:
    const Device& device_;
    void* executable_ = nullptr;
};

class Device::InUse {
 public:
    explicit InUse(const Device& device);
    ~InUse();
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

 private:
    bool pushed_ = false;
};

/// Two events on a stream.
class Device::Timer {
 public:
    explicit Timer(const Device& device);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    void start(Stream stream) const;
    double stop(Stream stream) const;  ///< waits; milliseconds since start

 private:
    const Device& device_;
    void* begin_ = nullptr;
    void* end_ = nullptr;
};

}  // namespace clebsch::gpu
