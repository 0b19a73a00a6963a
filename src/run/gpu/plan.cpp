#include "run/gpu/plan.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "run/call_arguments.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/kernels.hpp"
#include "run/gpu/pass.hpp"
#include "run/gpu/program_plan.hpp"
#include "run/gpu/row_order.hpp"
#include "run/program_plan.hpp"
#include "schedule/gpu_matrix.hpp"
#include "schedule/gpu_order.hpp"

namespace clebsch::gpu {
namespace {

constexpr std::size_t alignment = 256;
std::size_t at(int position) { return static_cast<std::size_t>(position); }

int position(const std::vector<std::string>& names, const std::string& name) {
    return static_cast<int>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

GpuNumber number_of(DType dtype) {
    switch (dtype) {
        case DType::float32:
            return GpuNumber::float32;
        case DType::float64:
            return GpuNumber::float64;
        case DType::bfloat16:
            return GpuNumber::bfloat16;
        case DType::float16:
            return GpuNumber::float16;
    }
    fail("dtype number " + std::to_string(static_cast<int>(dtype)) + " is unknown");
}

std::vector<GpuNumber> numbers_of(const std::vector<DType>& dtypes) {
    std::vector<GpuNumber> numbers;
    numbers.reserve(dtypes.size());
    for (const DType dtype : dtypes) numbers.push_back(number_of(dtype));
    return numbers;
}

GpuProblem gpu_problem(const Polynomial& polynomial, const std::vector<DType>& dtypes, DType compute, const GpuTarget& target) {
    GpuProblem problem{.polynomial = polynomial, .storage = numbers_of(dtypes), .compute = number_of(compute), .target = target};
    problem.lanes_arrive = std::getenv("CLEBSCH_RACECHECK") != nullptr;  // tests/gpu/sanitize.sh
    return problem;
}

GpuProblem gpu_problem(const OrderedPass& pass, const std::vector<DType>& dtypes, DType compute, const GpuTarget& target, bool ordered) {
    std::vector<DType> own;
    for (std::size_t o = 0; o < pass.operands.size(); ++o) own.push_back(pass.messages[o] ? compute : dtypes[at(pass.operands[o])]);
    GpuProblem problem = gpu_problem(pass.polynomial, own, compute, target);
    problem.ordered = ordered;
    for (std::size_t o = 0; o < pass.operands.size(); ++o)
        problem.messages.push_back(pass.messages[o] && pass.polynomial.operands[o].role == Role::output);
    return problem;
}

void check_device_workspace(const Workspace& workspace, std::size_t needed) {
    if (needed > 0 && (workspace.data == nullptr || workspace.bytes < needed))
        fail("workspace: expected at least " + std::to_string(needed) + " bytes of device memory, got " +
             (workspace.data == nullptr ? "a null pointer" : std::to_string(workspace.bytes)));
    if (needed > 0 && reinterpret_cast<std::uintptr_t>(workspace.data) % workspace_alignment != 0)
        fail("workspace: the address is not a multiple of " + std::to_string(workspace_alignment) + " bytes");
}

Work gpu_work(const Polynomial& polynomial, const std::vector<DType>& dtypes, std::span<const std::int64_t> rows) {
    const std::vector<std::string> spaces = row_spaces(polynomial);
    const auto rows_of = [&](const std::string& space) {
        const int found = position(spaces, space);
        return found < static_cast<int>(spaces.size()) ? static_cast<double>(rows[at(found)]) : 1.0;
    };
    Work work;
    for (const Path& path : polynomial.paths) {
        double terms = static_cast<double>(reduced_entries(path).size());
        for (const auto& [letter, extent] : path.extents) terms *= static_cast<double>(extent);
        work.multiply_adds += terms * static_cast<double>(std::max<std::size_t>(1, path.factors.size() - 1)) * static_cast<double>(rows[0]);
    }
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        work.bytes += rows_of(polynomial.space_of(operand)) * static_cast<double>(operand.size()) * static_cast<double>(size_of(dtypes[o]));
    }
    for (const Index& index : polynomial.indices) work.bytes += 4.0 * rows_of(index.from);
    return work;
}

/// A pass and where its arrays are among the plan's.
struct PlannedPass {
    Pass pass;
    OrderedPass made;                   ///< which operands and indices
    std::vector<int> spaces = {};       ///< of the plan: the pass's
    std::vector<int> order = {};        ///< indices of the plan that the rows are ordered by
    std::vector<int> order_space = {};  ///< of the plan: where they lead
    std::optional<RowOrder> sort = {};

    /// Bytes of the workspace for the order, before what the pass itself needs.
    std::size_t order_bytes(std::int64_t rows) const { return sort ? RowOrder::bytes(rows) : 0; }
};

struct PolynomialPlan::Data : CallArguments {
    Polynomial polynomial;
    std::unique_ptr<ProgramPlan> products;  ///< runs it all, by matrix products; then there are no passes
    std::string without_products;           ///< why not, where there could be some
    bool deterministic = false;
    const Device* device = nullptr;
    std::vector<PlannedPass> passes;
    std::vector<bool> messages;  ///< per operand: kept in the workspace between two passes
    std::unique_ptr<Memory> error;

    Data(Polynomial given, const PlanOptions& options)
        : CallArguments(given, options.dtypes, options.compute),
          polynomial(std::move(given)),
          deterministic(options.deterministic),
          device(&Device::get(options.device)),
          messages(polynomial.operands.size(), false) {}

    /// Where messages of an output begin in the workspace; for the number of operands: their end.
    std::size_t message_offset(std::size_t o, std::int64_t all_rows) const {
        std::size_t bytes = 0;
        for (std::size_t other = 0; other < o; ++other)
            if (messages[other]) add_workspace(bytes, all_rows, sizes[other], size_of(compute));
        return bytes;
    }
    void add_pass(OrderedPass made, const PlanOptions& options);
    void launch(const PlannedPass& pass, const Call& call, void* workspace, Stream stream) const;
};

void PolynomialPlan::Data::add_pass(OrderedPass made, const PlanOptions& options) {
    GpuProblem problem = gpu_problem(made, dtypes, compute, device->target(), options.deterministic);
    problem.blocks = options.blocks;
    problem.team_warps = options.team_warps;
    problem.consumers = options.consumers;
    std::vector<DType> own;
    for (std::size_t o = 0; o < made.operands.size(); ++o) {
        own.push_back(made.messages[o] ? compute : dtypes[at(made.operands[o])]);
        if (made.messages[o]) messages[at(made.operands[o])] = true;
    }
    PlannedPass& pass =
        passes.emplace_back(PlannedPass{Pass(*device, std::move(problem), std::move(own), compute, options.schedule), std::move(made)});
    for (const std::string& space : pass.pass.spaces()) pass.spaces.push_back(position(spaces, space));
    for (const std::string& index : pass.made.order) {
        pass.order.push_back(polynomial.find_index(index));
        pass.order_space.push_back(index_to[at(pass.order.back())]);
    }
    if (!pass.order.empty()) pass.sort.emplace(*device, pass.order.size());
}

std::optional<Program> matrix_program(const Polynomial& polynomial, const PlanOptions& options) {
    if (!options.schedule.empty()) return std::nullopt;
    std::optional<Program> program = with_matrix_products(polynomial);
    if (program && row_spaces(*program) != row_spaces(polynomial)) program.reset();
    return program;
}

PolynomialPlan::PolynomialPlan(Polynomial polynomial, const PlanOptions& options) {
    validate(polynomial);
    auto data = std::make_unique<Data>(std::move(polynomial), options);
    if (const std::optional<Program> program = matrix_program(data->polynomial, options)) {
        try {
            data->products = std::make_unique<ProgramPlan>(
                *program,
                ProgramOptions{
                    .dtypes = data->dtypes, .compute = data->compute, .device = options.device, .deterministic = options.deterministic});
            data_ = std::move(data);
            return;
        } catch (const KernelMissing& missing) {  // there may be kernels of the polynomial itself, prebuilt or compiled with the library
            data->without_products = std::string("not by matrix products: ") + missing.what() + "\n";
        }
    }
    for (OrderedPass& pass : gpu_passes(data->polynomial, options.deterministic)) data->add_pass(std::move(pass), options);
    data->error = std::make_unique<Memory>(*data->device, alignment);
    const std::uint64_t clear = 0;
    data->device->to_device(data->error->data(), &clear, sizeof clear);
    data_ = std::move(data);
}

PolynomialPlan::~PolynomialPlan() = default;
PolynomialPlan::PolynomialPlan(PolynomialPlan&&) noexcept = default;
PolynomialPlan& PolynomialPlan::operator=(PolynomialPlan&&) noexcept = default;

const Polynomial& PolynomialPlan::polynomial() const { return data_->polynomial; }
const std::vector<std::string>& PolynomialPlan::spaces() const { return data_->spaces; }
const std::vector<DType>& PolynomialPlan::dtypes() const { return data_->dtypes; }
DType PolynomialPlan::compute() const { return data_->compute; }
const Device& PolynomialPlan::device() const { return *data_->device; }
const char* PolynomialPlan::schedule() const {
    if (data_->products) return "matrix";
    if (std::ranges::any_of(data_->passes, [](const PlannedPass& pass) { return pass.pass.kernels().table.has_value(); })) return "table";
    const auto is_rows = [](const PlannedPass& pass) { return pass.pass.kernels().rows.has_value(); };
    if (std::ranges::any_of(data_->passes, is_rows)) return std::ranges::all_of(data_->passes, is_rows) ? "rows" : "rows and general";
    const auto is_stream = [](const PlannedPass& pass) { return !pass.pass.kernels().streams.empty(); };
    if (std::ranges::none_of(data_->passes, is_stream)) return "general";
    return std::ranges::all_of(data_->passes, is_stream) ? "stream" : "stream and general";
}

std::size_t PolynomialPlan::workspace_bytes(std::span<const std::int64_t> rows) const {
    data_->check_rows(rows);
    if (data_->products) return data_->products->workspace_bytes(rows);
    if (!data_->deterministic) return data_->passes.front().pass.workspace_bytes(rows);
    std::size_t bytes = 0;
    std::vector<std::int64_t> own;
    for (const PlannedPass& pass : data_->passes) {  // one after the other
        own.clear();
        for (const int space : pass.spaces) own.push_back(rows[at(space)]);
        std::size_t of_pass = pass.order_bytes(rows[0]);
        add_workspace(of_pass, 1, 1, pass.pass.workspace_bytes(own));
        bytes = std::max(bytes, of_pass);
    }
    add_workspace(bytes, 1, 1, data_->message_offset(data_->messages.size(), rows[0]));
    return bytes;
}

void PolynomialPlan::Data::launch(const PlannedPass& pass, const Call& call, void* workspace, Stream stream) const {
    if (!deterministic) return pass.pass.launch(call, workspace, error->data(), stream);
    // Lists of a thread, so that a launch allocates nothing once they are long enough.
    static thread_local std::vector<Buffer> buffers;
    static thread_local std::vector<IndexBuffer> index_arrays;
    static thread_local std::vector<std::int64_t> rows;
    const std::int64_t all = call.rows[0];
    auto* const own = static_cast<std::byte*>(workspace) + message_offset(messages.size(), all);  // of this pass
    if (pass.sort) {
        index_arrays.clear();
        rows.clear();
        for (const int i : pass.order) index_arrays.push_back(call.indices[at(i)]);
        for (const int space : pass.order_space) rows.push_back(call.rows[at(space)]);
        pass.sort->launch(index_arrays, rows, all, own, error->data(), stream);
    }
    buffers.clear();
    index_arrays.clear();
    rows.clear();
    for (std::size_t o = 0; o < pass.made.operands.size(); ++o) {
        const std::size_t given = at(pass.made.operands[o]);
        if (!pass.made.messages[o]) buffers.push_back(call.buffers[given]);
        else buffers.push_back({static_cast<std::byte*>(workspace) + message_offset(given, all), compute, all, 0});
    }
    for (const int i : pass.made.indices)
        if (i >= 0) index_arrays.push_back(call.indices[at(i)]);
    if (pass.sort) {
        const RowOrder::Result order = RowOrder::result(own, all);
        index_arrays.push_back(order.rows);
        index_arrays.push_back(order.targets);
    }
    for (const int space : pass.spaces) rows.push_back(call.rows[at(space)]);
    pass.pass.launch({.buffers = buffers, .indices = index_arrays, .rows = rows}, own + pass.order_bytes(all), error->data(), stream);
}

void PolynomialPlan::launch(const Call& call, Workspace workspace, Stream stream) const {
    if (data_->products) return data_->products->launch(call, workspace, stream);
    data_->check(call, false);
    check_device_workspace(workspace, workspace_bytes(call.rows));
    const Device::InUse in_use(*data_->device);
    for (const PlannedPass& pass : data_->passes) data_->launch(pass, call, workspace.data, stream);
}

bool PolynomialPlan::index_error() const {
    if (data_->products) return data_->products->index_error();
    std::uint64_t flag = 0;
    data_->device->from_device(&flag, data_->error->data(), sizeof flag);
    if (flag == 0) return false;
    const std::uint64_t clear = 0;
    data_->device->to_device(data_->error->data(), &clear, sizeof clear);
    return true;
}

Work PolynomialPlan::work(std::span<const std::int64_t> rows) const { return gpu_work(data_->polynomial, data_->dtypes, rows); }

std::string PolynomialPlan::explain() const {
    if (data_->products) return data_->products->explain();
    std::string text = "computes in " + std::string(to_text(data_->compute)) + " on " + data_->device->name() + " (" +
                       data_->device->target().name() + ")\n" + data_->without_products;
    if (data_->deterministic) text += explain_passes(data_->passes.size());
    for (const PlannedPass& pass : data_->passes) {
        if (data_->deterministic) text += clebsch::explain(pass.made, data_->compute == DType::float64 ? 8 : 4);
        text += pass.pass.kernels().explain;
        for (std::size_t s = 0; s < pass.pass.modules().size(); ++s)
            text += "kernel " + pass.pass.kernels().stages[s].kernel.name + ": " + std::to_string(pass.pass.modules()[s]->registers()) +
                    " registers, " + std::to_string(pass.pass.modules()[s]->spilled_bytes()) + " bytes spilled\n";
    }
    return text;
}

std::vector<PolynomialPlan::Resources> PolynomialPlan::resources() const {
    std::vector<Resources> list;
    for (const PlannedPass& pass : data_->passes)
        for (std::size_t s = 0; s < pass.pass.modules().size(); ++s)
            list.push_back(
                {pass.pass.kernels().stages[s].kernel.name, pass.pass.modules()[s]->registers(), pass.pass.modules()[s]->spilled_bytes()});
    return list;
}

}  // namespace clebsch::gpu
