#include "run/gpu/program_plan.hpp"

#include <algorithm>
#include <functional>

#include "base/error.hpp"
#include "run/gpu/kernels.hpp"
#include "run/gpu/plan.hpp"
#include "run/gpu/program_schedule.hpp"
#include "run/gpu/program_step.hpp"
#include "run/program_arguments.hpp"
#include "run/program_memory.hpp"

namespace clebsch::gpu {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

using Maker = std::function<std::unique_ptr<ProgramStep>()>;

}  // namespace

struct ProgramPlan::Data : ProgramArguments {
    using ProgramArguments::ProgramArguments;
    Program program;  ///< what runs
    const Device* device = nullptr;
    std::vector<int> argument_values;  ///< positions in program.values
    std::vector<DType> value_dtypes;
    std::vector<std::unique_ptr<ProgramStep>> steps;
    ProgramMemory memory;

    std::size_t scratch_bytes(std::span<const std::int64_t> rows) const {
        std::size_t bytes = 0;
        for (const auto& step : steps) bytes = std::max(bytes, step->scratch_bytes(rows.data()));
        return bytes;
    }
    static constexpr std::size_t alignment = 256;
    std::size_t intermediate_bytes(std::span<const std::int64_t> rows) const { return round_up(memory.bytes(rows), alignment); }

    void place(const Call& call, std::byte* workspace, std::vector<Buffer>& values) const {
        std::vector<std::size_t> regions(memory.peak_bytes.size());
        memory.regions(call.rows, regions.data());
        values.assign(program.values.size(), Buffer{});
        for (std::size_t v = 0; v < values.size(); ++v) {
            const ProgramMemory::Place& place = memory.places[v];
            if (!place.own) continue;
            const std::int64_t rows = place.space < 0 ? 1 : call.rows[at(place.space)];
            const std::int64_t before = place.space < 0 ? place.offset : ProgramMemory::padded(rows) * place.offset;
            const std::size_t region = regions[place.space < 0 ? spaces.size() : at(place.space)];
            values[v] = {workspace + region + before, value_dtypes[v], rows, place.row_stride};
        }
        for (std::size_t i = 0; i < argument_values.size(); ++i) values[at(argument_values[i])] = call.buffers[i];
    }
};

ProgramPlan::ProgramPlan(const Program& program, const ProgramOptions& options) {
    validate(program);
    auto data = std::make_unique<Data>(program, options.dtypes, options.compute);
    data->device = &Device::get(options.device);
    ScheduledProgram scheduled = schedule_program(program, data->dtypes, data->compute, options.compute_again);
    data->program = std::move(scheduled.program);
    data->argument_values = std::move(scheduled.arguments);
    ProgramStepRequest request{.program = &data->program,
                               .spaces = &data->spaces,
                               .dtypes = std::move(scheduled.dtypes),
                               .compute = data->compute,
                               .device = data->device,
                               .deterministic = options.deterministic};
    std::vector<Maker> makers;
    for (const auto& [from, to] : scheduled.conversions_before)
        makers.push_back([&request, from = from, to = to] { return make_conversion_step(request, from, to); });
    for (const ScheduledStep& step : scheduled.steps) {
        makers.push_back([&request, &data, &step] {
            if (step.links.size() > 1) return make_chain_step(request, step.links);
            if (step.links[0].width != 0) return make_tape_step(request, step.links[0]);
            const auto& node = std::get<PolynomialNode>(data->program.nodes[at(step.links[0].nodes[0])]);
            return step.matrix ? make_matrix_step(request, node, *step.matrix) : make_polynomial_step(request, node);
        });
    }
    for (const auto& [from, to] : scheduled.conversions_after)
        makers.push_back([&request, from = from, to = to] { return make_conversion_step(request, from, to); });
    data->steps.resize(makers.size());
    side_by_side(makers.size(), [&](std::size_t i) { data->steps[i] = makers[i](); });

    std::vector<bool> placed(data->program.values.size(), true);
    for (const int value : data->argument_values) placed[at(value)] = false;
    std::vector<ValueUse> uses;
    for (const auto& step : data->steps) uses.push_back({step->reads(), step->writes()});
    StepRequest memory_request{
        .program = &data->program, .spaces = &data->spaces, .dtypes = request.dtypes, .compute = data->compute, .isa = {}, .family = {}};
    data->memory = plan_memory(memory_request, uses, placed);
    data->value_dtypes = std::move(request.dtypes);
    data_ = std::move(data);
}

ProgramPlan::~ProgramPlan() = default;
ProgramPlan::ProgramPlan(ProgramPlan&&) noexcept = default;
ProgramPlan& ProgramPlan::operator=(ProgramPlan&&) noexcept = default;

const Program& ProgramPlan::program() const { return data_->given; }
const std::vector<std::string>& ProgramPlan::spaces() const { return data_->spaces; }
const std::vector<DType>& ProgramPlan::dtypes() const { return data_->dtypes; }
DType ProgramPlan::compute() const { return data_->compute; }
const Device& ProgramPlan::device() const { return *data_->device; }
std::size_t ProgramPlan::steps() const { return data_->steps.size(); }

std::size_t ProgramPlan::workspace_bytes(std::span<const std::int64_t> rows) const {
    data_->check_rows(rows);
    std::size_t sum = 0;
    if (__builtin_add_overflow(data_->intermediate_bytes(rows), data_->scratch_bytes(rows), &sum) || sum > (std::size_t{1} << 63))
        fail("the workspace of the program exceeds 2^63 bytes for this number of rows");
    return sum;
}

template <class Around>
void ProgramPlan::launch(const Call& call, Workspace workspace, Stream stream, Around around) const {
    const Data& data = *data_;
    data.check(call, false);
    const std::size_t needed = workspace_bytes(call.rows);
    check_device_workspace(workspace, needed);
    auto* const memory = static_cast<std::byte*>(workspace.data);
    const std::size_t own = data.intermediate_bytes(call.rows);
    std::vector<Buffer> values;
    data.place(call, memory, values);
    const Device::InUse in_use(*data.device);
    const ProgramLaunch launch{.values = values.data(),
                               .indices = call.indices.data(),
                               .rows = call.rows.data(),
                               .scratch = {memory + own, needed - own},
                               .stream = stream};
    for (const auto& step : data.steps) around(*step, launch);
}

void ProgramPlan::launch(const Call& call, Workspace workspace, Stream stream) const {
    launch(call, workspace, stream, [](const ProgramStep& step, const ProgramLaunch& on) { step.launch(on); });
}

namespace {

/// What a step reads or writes.
struct Access {
    std::uintptr_t begin = 0, end = 0;
    bool writes = false;
};

Access access(const Buffer& buffer, std::int64_t numbers, bool writes) {
    const std::int64_t stride = buffer.row_stride != 0 ? buffer.row_stride : numbers;
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer.data);
    const std::int64_t count = buffer.rows == 0 ? 0 : (buffer.rows - 1) * stride + numbers;
    return {begin, begin + static_cast<std::uintptr_t>(count) * size_of(buffer.dtype), writes};
}

bool conflict(const std::vector<Access>& one, const std::vector<Access>& other) {
    for (const Access& a : one)
        for (const Access& b : other)
            if ((a.writes || b.writes) && a.begin < b.end && b.begin < a.end) return true;
    return false;
}

}  // namespace

void ProgramPlan::record(std::span<const Recorded> launches, Stream stream) {
    if (launches.empty()) return;
    const Device& device = launches.front().plan->device();
    const std::vector<RecordedNode> before = device.latest_recorded(stream);
    std::vector<std::vector<Access>> accesses;
    std::vector<std::vector<RecordedNode>> ends;
    std::vector<std::vector<bool>> behind;  // of every step: the steps it comes after
    std::vector<bool> last;                 // of every step: nothing waits for it yet
    const auto record_step = [&](const Data& data, const ProgramStep& step, const ProgramLaunch& on) {
        std::vector<Access>& own = accesses.emplace_back();
        for (const bool writes : {false, true})
            for (const int value : writes ? step.writes() : step.reads())
                own.push_back(access(on.values[value], data.program.values[at(value)].size(), writes));
        if (const std::size_t bytes = step.scratch_bytes(on.rows); bytes > 0) {
            const auto begin = reinterpret_cast<std::uintptr_t>(on.scratch.data);
            own.push_back({begin, begin + bytes, true});
        }
        const std::size_t s = accesses.size() - 1;
        std::vector<bool>& after = behind.emplace_back(s, false);
        std::vector<RecordedNode> nodes;
        for (std::size_t other = s; other-- > 0;) {
            if (after[other] || !conflict(own, accesses[other])) continue;
            after[other] = true;
            last[other] = false;
            for (std::size_t earlier = 0; earlier < other; ++earlier) after[earlier] = after[earlier] || behind[other][earlier];
            nodes.insert(nodes.end(), ends[other].begin(), ends[other].end());
        }
        std::ranges::sort(nodes);
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        device.record_after(nodes.empty() ? before : nodes, stream);
        step.launch(on);
        ends.push_back(device.latest_recorded(stream));
        last.push_back(true);
    };
    for (const auto& [plan, call, workspace] : launches)
        plan->launch(call, workspace, stream,
                     [&, data = plan->data_.get()](const ProgramStep& step, const ProgramLaunch& on) { record_step(*data, step, on); });
    std::vector<RecordedNode> nodes;
    for (std::size_t s = 0; s < last.size(); ++s)
        if (last[s]) nodes.insert(nodes.end(), ends[s].begin(), ends[s].end());
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    device.record_after(nodes.empty() ? before : nodes, stream);
}

std::vector<ProgramPlan::StepTime> ProgramPlan::time_steps(const Call& call, Workspace workspace, Stream stream) const {
    const Device::Timer timer(*data_->device);
    std::vector<StepTime> times;
    launch(call, workspace, stream, [&](const ProgramStep& step, const ProgramLaunch& on) {
        timer.start(stream);
        step.launch(on);
        const double milliseconds = timer.stop(stream);
        const std::string text = step.explain();
        times.push_back({text.substr(0, text.find('\n')), milliseconds});
    });
    return times;
}

bool ProgramPlan::index_error() const {
    bool error = false;
    for (const auto& step : data_->steps) error = step->index_error() || error;
    return error;
}

Work ProgramPlan::work(std::span<const std::int64_t> rows) const {
    data_->check_rows(rows);
    Work work;
    for (const auto& step : data_->steps) work.multiply_adds += step->multiply_adds(rows.data());
    work.bytes = data_->bytes(rows);
    return work;
}

std::string ProgramPlan::explain() const {
    const Data& data = *data_;
    std::string text = "program: " + std::to_string(data.steps.size()) + " steps, arithmetic in " + to_text(data.compute) + " on " +
                       data.device->name() + " (" + data.device->target().name() + ")\n";
    for (std::size_t s = 0; s <= data.spaces.size(); ++s) {
        if (data.memory.total_bytes[s] == 0) continue;
        text += "intermediates per row of " + (s < data.spaces.size() ? "'" + data.spaces[s] + "'" : "shared values") + ": " +
                std::to_string(data.memory.peak_bytes[s]) + " bytes at once, " + std::to_string(data.memory.total_bytes[s]) + " in all\n";
    }
    for (std::size_t s = 0; s < data.steps.size(); ++s) {
        std::string step = data.steps[s]->explain();
        if (!step.empty() && step.back() == '\n') step.pop_back();
        for (std::size_t i = step.find('\n'); i != std::string::npos; i = step.find('\n', i + 1)) step.insert(i + 1, "    ");
        text += "step " + std::to_string(s) + ": " + step + "\n";
    }
    return text;
}

}  // namespace clebsch::gpu
