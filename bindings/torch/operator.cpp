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

#include "tensors.hpp"

namespace {

using namespace clebsch::torch;

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
    std::unique_ptr<clebsch_operation, void (*)(clebsch_operation*)> operation;
    Signature signature;

    /// By dtype, GPU (-1: the processor) and whether sums have one order. Plans live as long as the process.
    std::map<std::tuple<int, int, bool>, clebsch_plan*> plans;
    std::shared_mutex mutex;

    explicit Known(const std::string& text) : operation(parsed(text), clebsch_operation_destroy), signature(operation.get()) {}

    static clebsch_operation* parsed(const std::string& text) {
        clebsch_operation* handle = nullptr;
        check(clebsch_operation_parse(text.c_str(), &handle));
        return handle;
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

/// Texts may have hundreds of kilobytes, and every call brings a copy: a hash that looks at their ends alone, so that finding one is little
/// more than one comparison.
struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
        constexpr std::size_t seen = 256;
        const std::hash<std::string_view> hash;
        return hash(text.substr(0, seen)) ^ (3 * hash(text.substr(text.size() - std::min(seen, text.size())))) ^ text.size();
    }
};

/// Operations stay for good: a process has few.
Known& known(std::string_view text) {
    static std::unordered_map<std::string, std::unique_ptr<Known>, TextHash, std::equal_to<>> operations;
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
    for (const Dtype& dtype : dtypes())
        if (dtype.number == view.dtype) return dtype.kind;
    throw std::runtime_error(name + ": expected float32, float64, bfloat16 or float16, got another dtype");
}

std::size_t bytes_of(int dtype) { return dtype == CLEBSCH_FLOAT64 ? 8 : dtype == CLEBSCH_FLOAT32 ? 4 : 2; }

/// A list that this object owns.
using OwnedList = std::unique_ptr<void, int (*)(List)>;

/// The items of a list. `take` receives each and owns what it holds.
template <class Take>
void take_items(const OwnedList& list, Take&& take) {
    const Functions& torch = functions();
    std::size_t size = 0;
    check_torch(torch.list_size(list.get(), &size), "list_size");
    for (std::size_t i = 0; i < size; ++i) {
        Value value = 0;
        check_torch(torch.list_item(list.get(), i, &value), "list_get_item");
        take(value);
    }
}

void expect_count(const char* what, std::size_t expected, std::size_t got) {
    if (expected != got)
        throw std::runtime_error(std::string(what) + ": expected " + std::to_string(expected) + ", got " + std::to_string(got));
}

/// One call: checks tensors, fills what the C interface takes, launches.
/// `tensors`: inputs, then indices.
std::vector<Owned> run(Known& known, std::vector<Owned> tensors, const std::vector<std::int64_t>& rows) {
    const Signature& what = known.signature;
    const Functions& torch = functions();
    expect_count("tensors", what.inputs + what.indices.size(), tensors.size());
    expect_count("rows", what.spaces, rows.size());
    for (const std::int64_t count : rows)
        if (count < 0) throw std::runtime_error("rows: expected numbers of rows, got " + std::to_string(count));
    const auto rows_of = [&](int space) { return space < 0 ? 1 : rows[static_cast<std::size_t>(space)]; };

    std::vector<clebsch_buffer> buffers(what.operands.size());
    std::vector<clebsch_index_buffer> index_buffers(what.indices.size());
    const View first = tensors.empty() ? View{} : view_of(tensors[0].get());
    const auto first_input = std::ranges::find_if(what.operands, [](const Signature::Operand& operand) { return !operand.is_output; });
    const std::string first_name = first_input == what.operands.end() ? "" : first_input->name;
    const std::int32_t number = what.inputs == 0 ? torch.float32() : first.dtype;
    const int dtype = what.inputs == 0 ? int{CLEBSCH_FLOAT32} : dtype_of(first, first_name);

    std::vector<Owned> outputs;
    std::size_t next = 0;
    for (std::size_t i = 0; i < what.operands.size(); ++i) {
        const Signature::Operand& operand = what.operands[i];
        const std::int64_t count = rows_of(operand.space), size = operand.row_size;
        if (operand.is_output) {
            const std::size_t bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(size) * bytes_of(dtype);
            outputs.push_back(make_result(count, size, number, first.placement, bytes));
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
    const clebsch_plan* plan = known.plan(dtype, on_gpu ? first.placement.device_index : -1, on_gpu && torch.deterministic());
    launch(plan, buffers, index_buffers, rows, first.placement);
    return outputs;
}

/// The kernel as PyTorch calls it: arguments text, tensors, rows; result a list of tensors.
void kernel(Value* stack, std::uint64_t, std::uint64_t) {
    const Functions& torch = functions();
    const std::unique_ptr<void, int (*)(Text)> text(as_handle(stack[0]), torch.text_delete);
    const OwnedList given(as_handle(stack[1]), torch.list_delete), counts(as_handle(stack[2]), torch.list_delete);
    std::size_t size = 0;
    const char* data = nullptr;
    std::vector<Owned> tensors;
    std::vector<std::int64_t> rows;
    take_items(given, [&](Value value) { tensors.emplace_back(as_handle(value)); });
    take_items(counts, [&](Value value) { rows.push_back(static_cast<std::int64_t>(value)); });
    check_torch(torch.text_size(text.get(), &size), "string_length");
    check_torch(torch.text_data(text.get(), &data), "string_c_str");
    std::vector<Owned> outputs = run(known({data, size}), std::move(tensors), rows);
    List made = nullptr;
    check_torch(torch.list_make(outputs.size(), &made), "new_list");
    OwnedList results(made, torch.list_delete);
    for (Owned& output : outputs) {
        const Value value = as_value(output.release());
        check_torch(torch.list_push(results.get(), value), "list_push_back");
    }
    stack[0] = as_value(results.release());
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
