#include "run/gpu/program_plan.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "describe/harmonics_chain.hpp"
#include "run/gpu/program_step.hpp"
#include "run/program_arguments.hpp"
#include "run/program_memory.hpp"
#include "schedule/program_groups.hpp"

namespace clebsch::gpu {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

using Maker = std::function<std::unique_ptr<ProgramStep>()>;

/// Makers compile: they run in threads side by side.
std::vector<std::unique_ptr<ProgramStep>> make_all(const std::vector<Maker>& makers) {
    std::vector<std::unique_ptr<ProgramStep>> steps(makers.size());
    std::vector<std::exception_ptr> errors(makers.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < makers.size(); i = next++) {
            try {
                steps[i] = makers[i]();
            } catch (...) { errors[i] = std::current_exception(); }
        }
    };
    constexpr std::size_t most_threads = 16;
    const std::size_t count =
        std::min<std::size_t>({makers.size(), std::max<std::size_t>(1, std::thread::hardware_concurrency()), most_threads});
    std::vector<std::thread> threads;
    for (std::size_t t = 1; t < count; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors)
        if (error) std::rethrow_exception(error);
    return steps;
}

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
    AgainLimits limits = keep_little;
    if (!options.compute_again) limits = {0, 0};
    TiledProgram tiled = tile_program(simplified(with_harmonic_chains(program)), true, limits);
    data->program = std::move(tiled.program);
    for (const std::vector<int>* values : {&data->program.inputs, &data->program.outputs})
        data->argument_values.insert(data->argument_values.end(), values->begin(), values->end());
    ProgramStepRequest request{.program = &data->program,
                               .spaces = &data->spaces,
                               .dtypes = std::vector<DType>(data->program.values.size(), data->compute),
                               .compute = data->compute,
                               .device = data->device};
    for (std::size_t i = 0; i < data->argument_values.size(); ++i) request.dtypes[at(data->argument_values[i])] = data->dtypes[i];

    // What runs as what; matrix products want their arrays in the compute type.
    std::vector<GpuProgramStep> schedule;
    for (const TileGroup& tile : tiled.groups)
        for (GpuProgramStep& step : gpu_steps(data->program, tile.nodes)) schedule.push_back(std::move(step));
    std::vector<std::optional<MatrixSchedule>> matrices(schedule.size());
    std::vector<bool> needed(data->program.values.size(), false);
    for (std::size_t s = 0; s < schedule.size(); ++s) {
        if (schedule[s].width != 0) continue;
        const auto& node = std::get<PolynomialNode>(data->program.nodes[at(schedule[s].nodes[0])]);
        matrices[s] = schedule_matrix(node.polynomial);
        if (!matrices[s]) continue;
        for (const MatrixJob& job : matrices[s]->jobs) needed[at(node.arguments[static_cast<std::size_t>(job.output)])] = true;
        for (const MatrixTerm& term : matrices[s]->terms)
            for (const std::int64_t operand : {term.input, term.weight})
                needed[at(node.arguments[static_cast<std::size_t>(operand)])] = true;
    }
    const auto copies = add_copies(data->program, needed, request.dtypes, data->compute);
    for (GpuProgramStep& step : schedule)
        for (int& value : step.stored)
            for (const auto& [argument, copy] : copies)
                if (value == argument) value = copy;

    std::vector<Maker> makers;
    const auto add_conversions = [&](bool inputs) {
        for (const auto& [argument, copy] : copies) {
            const bool is_input = std::ranges::find(data->program.inputs, argument) != data->program.inputs.end();
            if (is_input != inputs) continue;
            makers.push_back([&request, from = inputs ? argument : copy, to = inputs ? copy : argument] {
                return make_conversion_step(request, from, to);
            });
        }
    };
    add_conversions(true);
    for (std::size_t s = 0; s < schedule.size(); ++s) {
        makers.push_back([&request, &data, &step = schedule[s], &matrix = matrices[s]] {
            if (step.width != 0) return make_tape_step(request, step);
            const auto& node = std::get<PolynomialNode>(data->program.nodes[at(step.nodes[0])]);
            return matrix ? make_matrix_step(request, node, *matrix) : make_polynomial_step(request, node);
        });
    }
    add_conversions(false);
    data->steps = make_all(makers);

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
    if (needed > 0 && (workspace.data == nullptr || workspace.bytes < needed))
        fail("workspace: expected at least " + std::to_string(needed) + " bytes of device memory, got " +
             (workspace.data == nullptr ? "a null pointer" : std::to_string(workspace.bytes)));
    if (reinterpret_cast<std::uintptr_t>(workspace.data) % Data::alignment != 0)
        fail("workspace: the address is not a multiple of " + std::to_string(Data::alignment) + " bytes");
    auto* const memory = static_cast<std::byte*>(workspace.data);
    const std::size_t own = data.intermediate_bytes(call.rows);
    std::vector<Buffer> values;
    data.place(call, memory, values);
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
