#include "run/step_group.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <set>

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

}  // namespace

StepGroup::StepGroup(const StepRequest& request, int space, std::vector<std::unique_ptr<ProgramStep>> steps,
                     const std::vector<bool>& inside, std::int64_t chunk_rows)
    : space_(space), value_count_(request.program->values.size()), steps_(std::move(steps)), dtypes_(request.dtypes) {
    space_name_ = space < 0 ? "" : (*request.spaces)[at(space)];
    std::vector<ValueUse> uses;
    std::set<int> touched;
    std::int64_t widest_output = 0;
    for (const auto& step : steps_) {
        uses.push_back({step->reads(), step->writes()});
        touched.insert(uses.back().reads.begin(), uses.back().reads.end());
        touched.insert(uses.back().writes.begin(), uses.back().writes.end());
        scratch_bytes_ = std::max(scratch_bytes_, step->scratch_bytes());
        const ProgramStep::SortedOutput output = step->sorted_output();
        if (output.numbers > widest_output) {
            widest_output = output.numbers;
            border_chain_ = output.chain;
        }
    }
    std::vector<bool> placed(value_count_, false);
    for (const Value& value : request.program->values) sizes_.push_back(value.size());
    for (const int value : touched) {
        if (space < 0 || request.program->values[at(value)].space != space_name_) continue;
        rows_of_chunk_.push_back(value);
        if (!inside[at(value)]) continue;
        placed[at(value)] = true;
        inside_.push_back(value);
    }
    memory_ = plan_memory(request, uses, placed);
    const std::int64_t row_bytes = space < 0 ? 0 : memory_.peak_bytes[at(space)];
    if (row_bytes == 0) chunk_rows_ = 0;  // nothing is gained: a part at once
    else if (chunk_rows > 0) chunk_rows_ = chunk_rows;
    else chunk_rows_ = std::clamp(chunk_bytes / row_bytes / least_chunk_rows * least_chunk_rows, least_chunk_rows, most_chunk_rows);
}

ValueUse StepGroup::use() const {
    std::set<int> reads, writes;
    for (const auto& step : steps_) {
        const std::vector<int> read = step->reads(), written = step->writes();
        reads.insert(read.begin(), read.end());
        writes.insert(written.begin(), written.end());
    }
    for (const int value : inside_) {
        reads.erase(value);
        writes.erase(value);
    }
    return {{reads.begin(), reads.end()}, {writes.begin(), writes.end()}};
}

double StepGroup::multiply_adds(std::span<const std::int64_t> rows) const {
    double sum = 0;
    for (const auto& step : steps_) sum += step->multiply_adds(rows);
    return sum;
}

void StepGroup::describe_inside(Buffer* values) const {
    for (const int value : inside_) values[value] = {nullptr, dtypes_[at(value)], chunk_rows_, memory_.places[at(value)].row_stride};
}

StepGroup::Layout StepGroup::lay_out(std::span<const std::int64_t> rows, int threads, Arena& arena) const {
    Layout layout;
    PartCosts costs;
    for (const auto& step : steps_) costs.add(step->costs(rows));
    Division& division = layout.division;
    division.rows = space_ < 0 ? 1 : rows[at(space_)];
    division.parts = count_parts(costs, division.rows);
    division.workers = static_cast<int>(std::clamp<std::int64_t>(threads, 1, division.parts));
    division.borders = arena.take<std::int64_t>(division.parts + 1);
    division.scratch = arena.take<std::byte*>(division.workers);
    for (int w = 0; w < division.workers; ++w) {
        std::byte* scratch = arena.take<std::byte>(static_cast<std::int64_t>(scratch_bytes_));
        if (!arena.measuring()) division.scratch[w] = scratch;
    }
    layout.values = arena.take<Buffer>(division.workers * static_cast<std::int64_t>(value_count_));
    if (!inside_.empty())
        layout.memory = arena.take<std::byte>(division.workers * ProgramMemory::padded(chunk_rows_) * memory_.peak_bytes[at(space_)]);
    layout.states = arena.take<std::byte*>(static_cast<std::int64_t>(steps_.size()));
    for (std::size_t s = 0; s < steps_.size(); ++s) {
        std::byte* state = arena.take<std::byte>(static_cast<std::int64_t>(steps_[s]->state_bytes(rows, division)));
        if (!arena.measuring()) layout.states[s] = state;
    }
    return layout;
}

std::size_t StepGroup::workspace_bytes(std::span<const std::int64_t> rows, int threads) const {
    Arena arena;
    lay_out(rows, threads, arena);
    return arena.used();
}

void StepGroup::run_part(const GroupLaunch& launch, const Layout& layout, std::int64_t part, int worker) const {
    const Division& division = launch.division;
    const std::int64_t begin = division.borders[part], end = division.borders[part + 1];
    Buffer* const values = layout.values + static_cast<std::size_t>(worker) * value_count_;
    std::byte* const memory =
        inside_.empty() ? nullptr : layout.memory + worker * ProgramMemory::padded(chunk_rows_) * memory_.peak_bytes[at(space_)];
    for (const int value : inside_) { values[value].data = memory + ProgramMemory::padded(chunk_rows_) * memory_.places[at(value)].offset; }
    for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s]->start_part(layout.states[s], part, worker);
    const std::int64_t step = chunk_rows_ > 0 ? chunk_rows_ : std::max<std::int64_t>(1, end - begin);
    for (std::int64_t first = begin; first < end; first += step) {
        const Chunk chunk{.values = values, .begin = first, .end = std::min(end, first + step), .part = part, .worker = worker};
        for (const int value : rows_of_chunk_) {
            values[value].rows = chunk.end - chunk.begin;
            const Buffer& whole = launch.values[value];
            if (whole.data == nullptr) continue;  // inside, or without numbers
            const std::int64_t stride = whole.row_stride == 0 ? sizes_[at(value)] : whole.row_stride;
            values[value].data = static_cast<std::byte*>(whole.data) + first * stride * static_cast<std::int64_t>(size_of(whole.dtype));
        }
        for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s]->run(launch, layout.states[s], chunk);
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s]->end_part(layout.states[s], part, worker);
}

void StepGroup::launch(const Buffer* values, const IndexBuffer* indices, std::span<const std::int64_t> rows, std::byte* workspace,
                       const ParallelFor& parallel_for, const std::byte* prepared) const {
    Arena arena(workspace);
    const Layout layout = lay_out(rows, parallel_for.run == nullptr ? 1 : parallel_for.threads, arena);
    const GroupLaunch launch{
        .values = values, .indices = indices, .rows = rows.data(), .division = layout.division, .parallel_for = &parallel_for};
    find_borders(launch.division, indices, border_chain_);
    for (int w = 0; w < launch.division.workers; ++w)
        std::uninitialized_copy_n(values, value_count_, layout.values + static_cast<std::size_t>(w) * value_count_);
    for (std::size_t s = 0; s < steps_.size(); ++s) {
        const std::size_t bytes = prepared == nullptr ? 0 : steps_[s]->prepared_bytes();
        steps_[s]->start(launch, layout.states[s], bytes == 0 ? nullptr : prepared);
        prepared += bytes;
    }
    std::atomic<std::int64_t> next{0};
    for_each_task(parallel_for, launch.division.workers, [&](std::int64_t worker) {
        for (std::int64_t part = next.fetch_add(1); part < launch.division.parts; part = next.fetch_add(1))
            run_part(launch, layout, part, static_cast<int>(worker));
    });
    for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s]->finish(launch, layout.states[s]);
}

std::size_t StepGroup::prepared_bytes() const {
    std::size_t bytes = 0;
    for (const auto& step : steps_) bytes += step->prepared_bytes();
    return bytes;
}

void StepGroup::prepare(const Buffer* values, std::byte* prepared) const {
    for (const auto& step : steps_) {
        if (step->prepared_bytes() > 0) step->prepare(values, prepared);
        prepared += step->prepared_bytes();
    }
}

std::string StepGroup::explain() const {
    std::string text = std::to_string(steps_.size()) + (steps_.size() == 1 ? " step over " : " steps over ") +
                       (space_ < 0 ? std::string("one row") : "'" + space_name_ + "'");
    if (chunk_rows_ == 0) return text + "\n";
    std::int64_t numbers = 0;
    for (const int value : inside_) numbers += sizes_[at(value)];
    return text + ", chunks of " + std::to_string(chunk_rows_) + " rows: " + std::to_string(inside_.size()) + " values (" +
           std::to_string(numbers) + " numbers a row) exist for a chunk only, " + std::to_string(memory_.peak_bytes[at(space_)]) +
           " bytes a row at once\n";
}

}  // namespace clebsch
