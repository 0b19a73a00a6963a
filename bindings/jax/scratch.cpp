#include "scratch.hpp"

#include <mutex>
#include <new>
#include <vector>

namespace clebsch_jax {
namespace {

constexpr std::size_t kept_bytes = std::size_t{16} << 20;  // of one block
constexpr std::align_val_t alignment{64};

struct Block {
    void* data;
    std::size_t capacity;
};
struct Kept {
    std::mutex access;
    std::vector<Block> blocks;
};
Kept& kept() {
    static auto& only = *new Kept;
    return only;
}

}  // namespace

Scratch::Scratch(std::size_t bytes) {
    if (bytes == 0) return;
    Block taken{nullptr, 0};
    if (bytes <= kept_bytes) {
        Kept& all = kept();
        const std::scoped_lock lock(all.access);
        if (!all.blocks.empty()) {
            taken = all.blocks.back();
            all.blocks.pop_back();
        }
    }
    if (taken.capacity < bytes) {
        ::operator delete(taken.data, alignment);
        taken = {::operator new(bytes, alignment), bytes};
    }
    block_ = taken.data;
    capacity_ = taken.capacity;
}

Scratch::~Scratch() {
    if (block_ == nullptr) return;
    if (capacity_ <= kept_bytes) {
        Kept& all = kept();
        const std::scoped_lock lock(all.access);
        try {
            all.blocks.push_back({block_, capacity_});
            return;
        } catch (const std::bad_alloc&) {}
    }
    ::operator delete(block_, alignment);
}

}  // namespace clebsch_jax
