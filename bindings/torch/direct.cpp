// Calls from Python past PyTorch's dispatcher, which takes longer than all the rest: for tensors that it has nothing to do with, on plans
// that Python keeps.
#include <exception>
#include <limits>

#include "tensors.hpp"

namespace {

using namespace clebsch::torch;

struct Array {
    std::size_t place = 0;  ///< among the operands
    int space = -1;
    std::int64_t size = 0;
};

/// A plan and how its arrays lie. Immutable.
struct Direct {
    const clebsch_plan* plan;
    int dtype;
    std::int32_t number;
    Placement placement;
    std::vector<Array> inputs, outputs;
    std::vector<int> indices;  ///< their spaces
    std::size_t spaces;

    Direct(const clebsch_plan* prepared, const Signature& signature, int kind, int gpu)
        : plan(prepared), dtype(kind), number(number_of(kind)), placement{gpu < 0 ? 0 : functions().cuda(), gpu}, spaces(signature.spaces) {
        for (std::size_t i = 0; i < signature.operands.size(); ++i) {
            const Signature::Operand& operand = signature.operands[i];
            (operand.is_output ? outputs : inputs).push_back({i, operand.space, operand.row_size});
        }
        for (const Signature::Index& index : signature.indices) indices.push_back(index.space);
    }

    static std::int32_t number_of(int kind) {
        for (const Dtype& dtype : dtypes())
            if (dtype.kind == kind) return dtype.number;
        throw std::runtime_error("clebsch::run: no such dtype");
    }

    bool here(const View& view) const {
        return view.placement.device_type == placement.device_type &&
               (placement.device_index < 0 || view.placement.device_index == placement.device_index);
    }
};

/// A handle is the address of a tensor, and a tensor the address of what PyTorch keeps of it: `torch.Tensor._cdata`.
Tensor handle_of(const std::uint64_t* word) { return const_cast<std::uint64_t*>(word); }

bool call(const Direct& direct, const std::uint64_t* words) {
    const Functions& torch = functions();
    const std::uint64_t* const given = words + direct.inputs.size() + direct.indices.size() + direct.outputs.size();
    std::vector<std::int64_t> rows(given, given + direct.spaces);
    const auto rows_of = [&](int space) { return space < 0 ? 1 : rows[static_cast<std::size_t>(space)]; };
    std::vector<clebsch_buffer> buffers(direct.inputs.size() + direct.outputs.size());
    std::vector<clebsch_index_buffer> indices(direct.indices.size());
    for (const Array& input : direct.inputs) {
        const View view = view_of(handle_of(words++));
        const std::int64_t count = rows_of(input.space), size = input.size;
        if (view.dtype != direct.number || !direct.here(view) || view.dimensions != 2 || view.sizes[0] != count || view.sizes[1] != size ||
            (count > 1 && view.strides[0] < size) || (size > 1 && view.strides[1] != 1) || (view.data == nullptr && count > 0 && size > 0))
            return false;
        buffers[input.place] = {view.data, direct.dtype, count, count > 1 && size > 0 ? view.strides[0] : 0};
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
        const View view = view_of(handle_of(words++));
        const std::int64_t count = rows_of(direct.indices[i]);
        const bool wide = view.dtype == torch.int64();
        if ((!wide && view.dtype != torch.int32()) || !direct.here(view) || view.dimensions != 1 || view.sizes[0] != count ||
            (count > 1 && view.strides[0] != 1) || (view.data == nullptr && count > 0))
            return false;
        indices[i] = {view.data, wide ? CLEBSCH_INT64 : CLEBSCH_INT32, count};
    }
    for (const Array& output : direct.outputs) {
        void* data = nullptr;
        check_torch(torch.tensor_data(handle_of(words++), &data), "get_data_ptr");
        buffers[output.place] = {data, direct.dtype, rows_of(output.space), 0};
    }
    launch(direct.plan, buffers, indices, rows, direct.placement);
    return true;
}

}  // namespace

/// How to call a plan of this operation for tensors of this dtype (as the C interface numbers them) on a GPU, or -1: the processor.
/// Kept by the caller as long as the plan, and given to clebsch_torch_direct_destroy. NULL: not possible.
extern "C" CLEBSCH_API void* clebsch_torch_direct(const clebsch_plan* plan, const clebsch_operation* operation, int dtype, int gpu) {
    try {
        return new Direct(plan, Signature(operation), dtype, gpu);
    } catch (const std::exception&) { return nullptr; }
}

extern "C" CLEBSCH_API void clebsch_torch_direct_destroy(void* direct) { delete static_cast<Direct*>(direct); }

/// Runs it. `words`: `_cdata` of inputs, indices and outputs (contiguous, of the right shape and dtype), then the numbers of rows. 0: done;
/// else something about the call is not plain or not right, and the caller goes the way that knows what to do or say. Thread safe.
extern "C" CLEBSCH_API int clebsch_torch_direct_call(const void* direct, const std::uint64_t* words) {
    try {
        return call(*static_cast<const Direct*>(direct), words) ? 0 : 1;
    } catch (const std::exception&) { return 1; }
}
