#include "results.hpp"

#include <clebsch/clebsch.h>

#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace clebsch::torch {
namespace {

constexpr std::size_t alignment = 64, default_limit = std::size_t{512} << 20;

/// Lies before a result, at the begin of its block.
struct alignas(alignment) Header {
    std::size_t bytes;  ///< of the result
};

Header& header_of(void* memory) { return static_cast<Header*>(memory)[-1]; }

std::size_t limit_of_process() {
    const char* const text = std::getenv("CLEBSCH_TORCH_KEPT_MEMORY");
    if (text == nullptr || *text == 0) return default_limit;
    constexpr std::size_t most = std::size_t{1} << 30;
    std::size_t mebibytes = 0;
    const char* const end = text + std::strlen(text);
    const auto [last, error] = std::from_chars(text, end, mebibytes);
    if (error != std::errc() || last != end || mebibytes > most)
        throw std::runtime_error("CLEBSCH_TORCH_KEPT_MEMORY: expected a number of MiB, 0 to " + std::to_string(most) + ", got '" + text +
                                 "'");
    return mebibytes << 20;
}

}  // namespace

ResultMemory& ResultMemory::instance() {
    static auto* const result = [] {
        auto* const made = new ResultMemory(limit_of_process());
        pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); }, [] { instance().mutex_.unlock(); });
        return made;
    }();
    return *result;
}

void* ResultMemory::take(std::size_t bytes) {
    // Numbers of rows change a little from call to call: sizes in steps of a 16th to an 8th, of blocks up to a quarter larger than asked.
    std::size_t step = alignment;
    while (limit_ > 0 && step < bytes / 16) step *= 2;
    bytes = (bytes + step - 1) / step * step;
    {
        const std::lock_guard lock(mutex_);
        auto best = kept_.end();
        for (auto each = kept_.begin(); each != kept_.end(); ++each) {
            const std::size_t has = header_of(*each).bytes;
            if (has >= bytes && has - bytes <= bytes / 4 && (best == kept_.end() || has <= header_of(*best).bytes)) best = each;
        }
        if (best != kept_.end()) {
            void* const memory = *best;
            kept_.erase(best);
            kept_bytes_ -= header_of(memory).bytes;
            used_ += header_of(memory).bytes;
            most_used_ = std::max(most_used_, used_);
            return memory;
        }
        used_ += bytes;
        most_used_ = std::max(most_used_, used_);
        drop_beyond(most_used_ - used_);  // what did not fit makes room
    }
    void* const block = std::aligned_alloc(alignment, sizeof(Header) + bytes);
    if (block == nullptr) {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
        throw std::bad_alloc();
    }
    return new (block) Header{bytes} + 1;
}

void ResultMemory::give_back(void* memory) noexcept {
    Header& header = header_of(memory);
    const std::lock_guard lock(mutex_);
    used_ -= header.bytes;
    try {
        kept_.push_back(memory);
    } catch (const std::bad_alloc&) {
        std::free(&header);
        return;
    }
    kept_bytes_ += header.bytes;
    drop_beyond(std::min(limit_, most_used_ - used_));
}

void ResultMemory::empty() noexcept {
    const std::lock_guard lock(mutex_);
    drop_beyond(0);
    most_used_ = used_;
}

std::size_t ResultMemory::kept_bytes() const {
    const std::lock_guard lock(mutex_);
    return kept_bytes_;
}

/// Oldest first.
void ResultMemory::drop_beyond(std::size_t bytes) noexcept {
    while (kept_bytes_ > bytes) {
        Header& header = header_of(kept_.front());
        kept_.erase(kept_.begin());
        kept_bytes_ -= header.bytes;
        std::free(&header);
    }
}

}  // namespace clebsch::torch

namespace {

/// DLPack's description of an array (version 0, which every PyTorch takes), with the memory that it describes.
struct Shared {
    struct Array {
        void* data;
        std::int32_t device_type, device_index;
        std::int32_t dimensions;
        std::uint8_t kind, bits;
        std::uint16_t lanes;
        std::int64_t* sizes;
        std::int64_t* strides;
        std::uint64_t offset;
    } array;
    void* owner;
    void (*destroy)(Shared*);

    std::int64_t shape[4];  ///< sizes, strides
};

void destroy(Shared* shared) {
    clebsch::torch::ResultMemory::instance().give_back(shared->array.data);
    delete shared;
}

std::string& trouble() {
    static thread_local std::string text;
    return text;
}

}  // namespace

/// A DLManagedTensor for PyTorch to take: uninitialised, contiguous, on the processor; `kind` and `bits` of its dtype as DLPack has them.
/// It goes with the tensor. NULL: clebsch_torch_result_error says why.
extern "C" CLEBSCH_API void* clebsch_torch_result(int kind, int bits, std::int64_t rows, std::int64_t size) {
    try {
        const auto bytes = static_cast<std::size_t>(rows) * static_cast<std::size_t>(size) * static_cast<std::size_t>(bits / 8);
        auto made = std::make_unique<Shared>();
        constexpr std::int32_t cpu = 1;
        made->array = {nullptr,         cpu, 0, 2, static_cast<std::uint8_t>(kind), static_cast<std::uint8_t>(bits), 1, made->shape,
                       made->shape + 2, 0};
        made->destroy = destroy;
        made->shape[0] = rows;
        made->shape[1] = made->shape[2] = size;
        made->shape[3] = 1;
        made->array.data = clebsch::torch::ResultMemory::instance().take(bytes);
        return made.release();
    } catch (const std::exception& error) {
        trouble() = error.what();
        return nullptr;
    }
}

/// Why this thread's last clebsch_torch_result gave none.
extern "C" CLEBSCH_API const char* clebsch_torch_result_error() { return trouble().c_str(); }

extern "C" CLEBSCH_API void clebsch_torch_empty_cache() {
    try {
        clebsch::torch::ResultMemory::instance().empty();
    } catch (const std::exception&) {}  // there is none: calls say why
}

/// Bytes that are kept for results to come.
extern "C" CLEBSCH_API std::uint64_t clebsch_torch_kept_bytes() {
    try {
        return clebsch::torch::ResultMemory::instance().kept_bytes();
    } catch (const std::exception&) { return 0; }
}
