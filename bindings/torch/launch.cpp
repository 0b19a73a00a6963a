#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

#include "tensors.hpp"

namespace clebsch::torch {
namespace {

constexpr std::size_t alignment = 64, kept_bytes = std::size_t{64} << 20;

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};

/// Workspaces on the processor: as many as calls ran at once, those of moderate size kept, as the system's memory would have to be
/// touched anew. Nobody waits for the list: in a process that was forked while another thread had it, it is never free again.
class Workspaces {
 public:
    struct Workspace {
        std::unique_ptr<void, Free> memory;
        std::size_t bytes = 0;
    };

    Workspace take(std::size_t bytes) {
        Workspace result;
        {
            const std::unique_lock lock(mutex_, std::try_to_lock);
            if (lock && !kept_.empty()) {
                result = std::move(kept_.back());
                kept_.pop_back();
            }
        }
        if (result.bytes < bytes) {
            result.memory.reset();
            result.bytes = (bytes + alignment - 1) / alignment * alignment;
            result.memory.reset(std::aligned_alloc(alignment, result.bytes));
            if (!result.memory) throw std::bad_alloc();
        }
        return result;
    }

    void give_back(Workspace workspace) {
        if (workspace.bytes == 0 || workspace.bytes > kept_bytes) return;
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock) kept_.push_back(std::move(workspace));
    }

 private:
    std::mutex mutex_;
    std::vector<Workspace> kept_;
};

Workspaces& workspaces() {
    static auto* const result = new Workspaces;  // never destroyed: threads may still be in a call when the process ends
    return *result;
}

}  // namespace

void launch(const clebsch_plan* plan, const std::vector<clebsch_buffer>& buffers, const std::vector<clebsch_index_buffer>& indices,
            const std::vector<std::int64_t>& rows, Placement placement) {
    const Functions& torch = functions();
    clebsch_call call = CLEBSCH_CALL_DEFAULTS;
    call.buffers = buffers.data();
    call.buffer_count = buffers.size();
    call.indices = indices.data();
    call.index_count = indices.size();
    call.rows = rows.data();
    call.space_count = rows.size();
    std::size_t bytes = 0;
    check(clebsch_plan_workspace_size(plan, rows.data(), rows.size(), 0, &bytes));
    call.workspace_bytes = bytes;
    if (placement.device_type != torch.cuda()) {
        Workspaces::Workspace workspace = workspaces().take(bytes);
        call.workspace = workspace.memory.get();
        const clebsch_status status = clebsch_launch(plan, &call);
        workspaces().give_back(std::move(workspace));
        check(status);
        return;
    }
    if (torch.current_cuda_stream == nullptr) throw std::runtime_error("clebsch::run: expected PyTorch with CUDA for tensors on a GPU");
    // PyTorch's allocator gives this memory to nobody else before the stream is past this launch. It is aligned to more than is needed.
    const Owned workspace = make_tensor(1, static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1)), torch.uint8(), placement);
    call.workspace = view_of(workspace.get()).data;
    void* stream = nullptr;
    check_torch(torch.current_cuda_stream(placement.device_index, &stream), "get_current_cuda_stream");
    check(clebsch_launch_on_stream(plan, &call, stream));
}

}  // namespace clebsch::torch
