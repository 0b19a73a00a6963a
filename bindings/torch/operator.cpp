// torch.ops.clebsch.run(text, tensors, rows) without Python: plans by text, tensors to the C interface and back. Loading the
// library registers it, so that exported models run in programs that know nothing of Clebsch.
#include <clebsch/clebsch.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "torch_functions.hpp"

namespace {

using namespace clebsch::torch;

void check(clebsch_status status) {
    if (status != CLEBSCH_OK) throw std::runtime_error(clebsch_last_error());
}

/// PyTorch has logged what happened.
void check_torch(int status, const char* what) {
    if (status != 0) throw std::runtime_error(std::string("clebsch::run: PyTorch failed in ") + what);
}

/// A tensor that this function owns.
class Owned {
 public:
    explicit Owned(Tensor tensor) : tensor_(tensor) {}
    Owned(Owned&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(tensor_, other.tensor_);
        return *this;
    }
    ~Owned() {
        if (tensor_ != nullptr) functions().tensor_delete(tensor_);
    }
    Tensor get() const { return tensor_; }
    Tensor release() { return std::exchange(tensor_, nullptr); }

 private:
    Tensor tensor_;
};

/// Handles as what passes between PyTorch and a kernel.
void* as_handle(Value value) { return std::bit_cast<void*>(value); }
Value as_value(void* handle) { return std::bit_cast<Value>(handle); }

struct Placement {
    std::int32_t device_type = 0, device_index = 0;
    bool operator==(const Placement&) const = default;
};

/// What a call asks of a tensor.
struct View {
    void* data = nullptr;
    std::int64_t dimensions = 0;
    const std::int64_t* sizes = nullptr;
    const std::int64_t* strides = nullptr;
    std::int32_t dtype = 0;
    Placement placement;
};

View view_of(Tensor tensor) {
    const Functions& torch = functions();
    View view;
    std::int64_t *sizes = nullptr, *strides = nullptr;
    check_torch(torch.tensor_data(tensor, &view.data), "get_data_ptr");
    check_torch(torch.tensor_dimensions(tensor, &view.dimensions), "get_dim");
    check_torch(torch.tensor_sizes(tensor, &sizes), "get_sizes");
    check_torch(torch.tensor_strides(tensor, &strides), "get_strides");
    check_torch(torch.tensor_dtype(tensor, &view.dtype), "get_dtype");
    check_torch(torch.tensor_device(tensor, &view.placement.device_type), "get_device_type");
    check_torch(torch.tensor_device_index(tensor, &view.placement.device_index), "get_device_index");
    view.sizes = sizes;
    view.strides = strides;
    return view;
}

std::string shape_text(const View& view) {
    std::string text = "(";
    for (std::int64_t i = 0; i < view.dimensions; ++i) text += (i > 0 ? ", " : "") + std::to_string(view.sizes[i]);
    return text + ")";
}

Owned contiguous(Tensor tensor) {
    Value stack[] = {as_value(tensor), static_cast<Value>(static_cast<std::uint32_t>(functions().contiguous_format()))};
    check_torch(functions().call("aten::contiguous", "", stack, abi_version), "contiguous");
    return Owned(as_handle(stack[0]));
}

/// An operation of a text and what of it a call needs, by position.
struct Known {
    struct Operand {
        std::string name, segments;
        bool is_output = false;
        std::int64_t row_size = 0;
        int space = -1;
    };
    struct Index {
        std::string name;
        int space = -1;
    };
    std::unique_ptr<clebsch_operation, void (*)(clebsch_operation*)> operation{nullptr, clebsch_operation_destroy};
    std::vector<Operand> operands;
    std::vector<Index> indices;
    std::size_t spaces = 0, inputs = 0;

    /// By dtype, GPU (-1: the processor) and whether sums have one order. Plans live as long as the process.
    std::map<std::tuple<int, int, bool>, clebsch_plan*> plans;
    std::shared_mutex mutex;

    explicit Known(const std::string& text) {
        clebsch_operation* handle = nullptr;
        check(clebsch_operation_parse(text.c_str(), &handle));
        operation.reset(handle);
        for (std::size_t i = 0; i < clebsch_operation_operand_count(handle); ++i) {
            clebsch_operand_info info = CLEBSCH_OPERAND_INFO_DEFAULTS;
            check(clebsch_operation_operand(handle, i, &info));
            operands.push_back({info.name, info.segments, info.is_output != 0, info.row_size, info.space});
            inputs += info.is_output == 0 ? 1 : 0;
        }
        for (std::size_t i = 0; i < clebsch_operation_index_count(handle); ++i) {
            const char* name = nullptr;
            int from = -1;
            check(clebsch_operation_index(handle, i, &name, &from, nullptr, nullptr));
            indices.push_back({name, from});
        }
        spaces = clebsch_operation_space_count(handle);
    }

    const clebsch_plan* plan(int dtype, int gpu, bool deterministic) {
        const std::tuple key(dtype, gpu, deterministic);
        {
            const std::shared_lock lock(mutex);
            if (const auto found = plans.find(key); found != plans.end()) return found->second;
        }
        const std::unique_lock lock(mutex);
        if (const auto found = plans.find(key); found != plans.end()) return found->second;
        const std::string device = gpu < 0 ? "cpu" : "cuda:" + std::to_string(gpu);
        clebsch_plan_options options = CLEBSCH_PLAN_OPTIONS_DEFAULTS;
        options.dtype = dtype;
        options.device = device.c_str();
        options.deterministic = deterministic ? 1 : 0;
        clebsch_plan* plan = nullptr;
        check(clebsch_plan_prepare(operation.get(), &options, &plan));
        plans.emplace(key, plan);
        return plan;
    }
};

/// Operations stay for good: a process has few.
Known& known(std::string_view text) {
    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    static std::unordered_map<std::string, std::unique_ptr<Known>, Hash, std::equal_to<>> operations;
    static std::shared_mutex mutex;
    {
        const std::shared_lock lock(mutex);
        if (const auto found = operations.find(text); found != operations.end()) return *found->second;
    }
    const std::unique_lock lock(mutex);
    if (const auto found = operations.find(text); found != operations.end()) return *found->second;
    auto made = std::make_unique<Known>(std::string(text));
    return *operations.emplace(std::string(text), std::move(made)).first->second;
}

int dtype_of(const View& view, const std::string& name) {
    const Functions& torch = functions();
    if (view.dtype == torch.float32()) return CLEBSCH_FLOAT32;
    if (view.dtype == torch.float64()) return CLEBSCH_FLOAT64;
    if (view.dtype == torch.bfloat16()) return CLEBSCH_BFLOAT16;
    if (view.dtype == torch.float16()) return CLEBSCH_FLOAT16;
    throw std::runtime_error(name + ": expected float32, float64, bfloat16 or float16, got another dtype");
}

/// The items of a list, which is then deleted. `take` receives each and owns what it holds.
template <class Take>
void take_items(List list, Take&& take) {
    const Functions& torch = functions();
    std::size_t size = 0;
    check_torch(torch.list_size(list, &size), "list_size");
    for (std::size_t i = 0; i < size; ++i) {
        Value value = 0;
        check_torch(torch.list_item(list, i, &value), "list_get_item");
        take(value);
    }
    torch.list_delete(list);
}

Owned make_tensor(std::int64_t rows, std::int64_t size, std::int32_t dtype, Placement placement) {
    const std::int64_t sizes[] = {rows, size}, strides[] = {size, 1};
    Tensor tensor = nullptr;
    check_torch(functions().tensor_make(2, sizes, strides, dtype, placement.device_type, placement.device_index, &tensor), "empty_strided");
    return Owned(tensor);
}

void expect_count(const char* what, std::size_t expected, std::size_t got) {
    if (expected != got)
        throw std::runtime_error(std::string(what) + ": expected " + std::to_string(expected) + ", got " + std::to_string(got));
}

/// One call: checks tensors, fills what the C interface takes, launches.
/// `tensors`: inputs, then indices.
std::vector<Owned> run(Known& what, std::vector<Owned> tensors, const std::vector<std::int64_t>& rows) {
    const Functions& torch = functions();
    expect_count("tensors", what.inputs + what.indices.size(), tensors.size());
    expect_count("rows", what.spaces, rows.size());
    for (const std::int64_t count : rows)
        if (count < 0) throw std::runtime_error("rows: expected numbers of rows, got " + std::to_string(count));
    const auto rows_of = [&](int space) { return space < 0 ? 1 : rows[static_cast<std::size_t>(space)]; };

    std::vector<clebsch_buffer> buffers(what.operands.size());
    std::vector<clebsch_index_buffer> index_buffers(what.indices.size());
    const View first = tensors.empty() ? View{} : view_of(tensors[0].get());
    const auto first_input = std::ranges::find_if(what.operands, [](const Known::Operand& operand) { return !operand.is_output; });
    const std::string first_name = first_input == what.operands.end() ? "" : first_input->name;
    const std::int32_t number = what.inputs == 0 ? torch.float32() : first.dtype;
    const int dtype = what.inputs == 0 ? int{CLEBSCH_FLOAT32} : dtype_of(first, first_name);

    std::vector<Owned> outputs;
    std::size_t next = 0;
    for (std::size_t i = 0; i < what.operands.size(); ++i) {
        const Known::Operand& operand = what.operands[i];
        const std::int64_t count = rows_of(operand.space), size = operand.row_size;
        if (operand.is_output) {
            outputs.push_back(make_tensor(count, size, number, first.placement));
            buffers[i] = {view_of(outputs.back().get()).data, dtype, count, 0};
            continue;
        }
        Owned& tensor = tensors[next++];
        View view = view_of(tensor.get());
        if (view.dtype != number) throw std::runtime_error(operand.name + ": expected the dtype of " + first_name + ", got another");
        if (view.placement != first.placement)
            throw std::runtime_error(operand.name + ": expected a tensor on the device of " + first_name + ", got one on another");
        if (view.dimensions != 2 || view.sizes[0] != count || view.sizes[1] != size)
            throw std::runtime_error(operand.name + ": expected shape (" + std::to_string(count) + ", " + std::to_string(size) + ") for " +
                                     operand.segments + ", got " + shape_text(view));
        if ((count > 1 && view.strides[0] < size) || (size > 1 && view.strides[1] != 1)) {
            tensor = contiguous(tensor.release());
            view = view_of(tensor.get());
        }
        buffers[i] = {view.data, dtype, count, count > 1 && size > 0 ? view.strides[0] : 0};
    }
    for (std::size_t i = 0; i < what.indices.size(); ++i) {
        Owned& index = tensors[what.inputs + i];
        const std::int64_t count = rows_of(what.indices[i].space);
        View view = view_of(index.get());
        const bool wide = view.dtype == torch.int64();
        if ((!wide && view.dtype != torch.int32()) || view.dimensions != 1 || view.sizes[0] != count)
            throw std::runtime_error(what.indices[i].name + ": expected int32 or int64 of shape (" + std::to_string(count) + ",), got " +
                                     shape_text(view));
        if (view.placement != first.placement)
            throw std::runtime_error(what.indices[i].name + ": expected a tensor on the device of the inputs, got one on another");
        if (count > 1 && view.strides[0] != 1) {
            index = contiguous(index.release());
            view = view_of(index.get());
        }
        index_buffers[i] = {view.data, wide ? CLEBSCH_INT64 : CLEBSCH_INT32, count};
    }

    const bool on_gpu = first.placement.device_type == torch.cuda();
    const clebsch_plan* plan = what.plan(dtype, on_gpu ? first.placement.device_index : -1, on_gpu && torch.deterministic());
    std::size_t bytes = 0;
    check(clebsch_plan_workspace_size(plan, rows.data(), rows.size(), 0, &bytes));
    const Owned workspace = make_tensor(1, static_cast<std::int64_t>(bytes) + 64, torch.uint8(), first.placement);
    auto* const memory = static_cast<std::byte*>(view_of(workspace.get()).data);  // aligned by PyTorch; on a GPU to more than is needed
    clebsch_call call = CLEBSCH_CALL_DEFAULTS;
    call.buffers = buffers.data();
    call.buffer_count = buffers.size();
    call.indices = index_buffers.data();
    call.index_count = index_buffers.size();
    call.rows = rows.data();
    call.space_count = rows.size();
    call.workspace = memory + (-std::bit_cast<std::uintptr_t>(memory) & 63);
    call.workspace_bytes = bytes;
    if (!on_gpu) {
        check(clebsch_launch(plan, &call));
        return outputs;
    }
    if (torch.current_cuda_stream == nullptr) throw std::runtime_error("clebsch::run: expected PyTorch with CUDA for tensors on a GPU");
    void* stream = nullptr;
    check_torch(torch.current_cuda_stream(first.placement.device_index, &stream), "get_current_cuda_stream");
    check(clebsch_launch_on_stream(plan, &call, stream));
    return outputs;
}

/// The kernel as PyTorch calls it: arguments text, tensors, rows; result a list of tensors.
void kernel(Value* stack, std::uint64_t, std::uint64_t) {
    const Functions& torch = functions();
    const std::unique_ptr<void, int (*)(Text)> text(as_handle(stack[0]), torch.text_delete);
    std::size_t size = 0;
    const char* data = nullptr;
    std::vector<Owned> tensors;
    std::vector<std::int64_t> rows;
    take_items(as_handle(stack[1]), [&](Value value) { tensors.emplace_back(as_handle(value)); });
    take_items(as_handle(stack[2]), [&](Value value) { rows.push_back(static_cast<std::int64_t>(value)); });
    check_torch(torch.text_size(text.get(), &size), "string_length");
    check_torch(torch.text_data(text.get(), &data), "string_c_str");
    std::vector<Owned> outputs = run(known({data, size}), std::move(tensors), rows);
    List results = nullptr;
    check_torch(torch.list_make(outputs.size(), &results), "new_list");
    for (Owned& output : outputs) check_torch(torch.list_push(results, as_value(output.release())), "list_push_back");
    stack[0] = as_value(results);
}

/// Why the operator is not there; empty: it is.
std::string& trouble() {
    static std::string text;
    return text;
}

void register_operator() {
    const Functions& torch = functions();
    Library library = nullptr;  // kept: what it holds is taken back when it goes
    check_torch(torch.library_define("clebsch", __FILE__, __LINE__, &library), "library_init_def");
    check_torch(torch.define(library, "run(str text, Tensor[] tensors, SymInt[] rows) -> Tensor[]"), "library_def");
    for (const char* key : {"CPU", "CUDA"}) {
        check_torch(torch.library_implement("clebsch", key, __FILE__, __LINE__, &library), "library_init_impl");
        check_torch(torch.implement(library, "run", kernel, abi_version), "library_impl");
    }
}

[[gnu::constructor]] void load() {
    try {
        register_operator();
    } catch (const std::exception& error) { trouble() = error.what(); }
}

}  // namespace

/// NULL if the operator was registered when this library was loaded, else why not. The text lives as long as the library.
extern "C" CLEBSCH_API const char* clebsch_torch_trouble() { return trouble().empty() ? nullptr : trouble().c_str(); }
