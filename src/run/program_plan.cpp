#include "run/program_plan.hpp"

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "describe/harmonics_chain.hpp"
#include "run/program_arguments.hpp"
#include "run/program_memory.hpp"
#include "run/program_step.hpp"
#include "run/realigned.hpp"
#include "run/step_group.hpp"
#include "schedule/partial_sums.hpp"
#include "schedule/program_groups.hpp"
#include "schedule/program_order.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::string named(const std::string& name) { return "'" + name + "'"; }

}  // namespace

std::vector<std::string> row_spaces(const Program& program) {
    std::vector<std::string> spaces;
    const auto meet = [&](const std::string& space) {
        if (!space.empty() && std::ranges::find(spaces, space) == spaces.end()) spaces.push_back(space);
    };
    for (const Index& index : program.indices) {
        meet(index.from);
        meet(index.to);
    }
    for (const Value& value : program.values) meet(value.space);
    for (const Node& node : program.nodes)
        if (const auto* polynomial = std::get_if<PolynomialNode>(&node)) meet(polynomial->polynomial.rows);
    return spaces;
}

struct ProgramPlan::Data : ProgramArguments {
    using ProgramArguments::ProgramArguments;
    Program program;  ///< what runs: simplified, with copies of arrays of other types
    InstructionSet isa{};
    std::vector<int> argument_values;  ///< positions in program.values
    std::vector<StepGroup> groups;
    std::vector<std::string> group_texts;  ///< for explain: what is computed again
    std::string kept_text;
    ProgramMemory memory;
    std::vector<DType> value_dtypes;

    std::size_t table_bytes() const {
        return round_up(program.values.size() * sizeof(Buffer), 64) + round_up(memory.peak_bytes.size() * sizeof(std::size_t), 64);
    }

    std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const {
        check_rows(rows);
        std::size_t step_bytes = 0;
        for (const StepGroup& group : groups) step_bytes = std::max(step_bytes, group.workspace_bytes(rows, threads));
        std::size_t sum = 64 + table_bytes();
        if (__builtin_add_overflow(sum, memory.bytes(rows), &sum) || __builtin_add_overflow(sum, step_bytes, &sum) ||
            sum > (std::size_t{1} << 63))
            fail("the workspace of the program exceeds 2^63 bytes for this number of rows");
        return sum;
    }

    /// A launch whose call and workspace have been checked.
    void run(const Call& call, const Workspace& workspace, const ParallelFor& parallel_for, const void* prepared) const {
        // Tables, then the regions of intermediates, then what the running step has for itself.
        auto* const begin = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(workspace.data), 64));
        auto* const values = reinterpret_cast<Buffer*>(begin);
        auto* const regions = reinterpret_cast<std::size_t*>(begin + round_up(program.values.size() * sizeof(Buffer), 64));
        std::byte* const intermediates = begin + table_bytes();
        memory.regions(call.rows, regions);
        for (std::size_t v = 0; v < program.values.size(); ++v) {
            const ProgramMemory::Place& place = memory.places[v];
            Buffer buffer;
            if (place.own) {
                const std::int64_t rows = place.space < 0 ? 1 : call.rows[at(place.space)];
                const std::int64_t before = place.space < 0 ? place.offset : ProgramMemory::padded(rows) * place.offset;
                const std::size_t region = regions[place.space < 0 ? spaces.size() : at(place.space)];
                buffer = {intermediates + region + before, value_dtypes[v], rows, place.row_stride};
            }
            new (values + v) Buffer(buffer);
        }
        for (std::size_t i = 0; i < argument_values.size(); ++i) values[argument_values[i]] = call.buffers[i];
        for (const StepGroup& group : groups) group.describe_inside(values);

        std::byte* const own = intermediates + round_up(memory.bytes(call.rows), 64);
        const auto* made = static_cast<const std::byte*>(prepared);
        for (const StepGroup& group : groups) {
            group.launch(values, call.indices.data(), call.rows, own, parallel_for, made);
            if (made != nullptr) made += group.prepared_bytes();
        }
    }

    /// Steps of all groups, conversions of arguments before and after them, and where values lie.
    void make_groups(const StepRequest& request, const TiledProgram& tiled, const std::vector<std::vector<NodeGroup>>& tiles,
                     const std::vector<std::pair<int, int>>& copies, std::int64_t chunk_rows);
    void explain_values(const TiledProgram& tiled);
};

namespace {

/// Functions and tapes want arrays of the compute type.
std::vector<bool> wants_compute_type(const Program& program, const std::vector<std::vector<NodeGroup>>& tiles) {
    std::vector<bool> needed(program.values.size(), false);
    for (const std::vector<NodeGroup>& tile : tiles) {
        for (const NodeGroup& group : tile) {
            for (const int n : group.nodes) {
                const Node& node = program.nodes[at(n)];
                if (const auto* function = std::get_if<FunctionNode>(&node)) {
                    needed[at(function->input)] = needed[at(function->output)] = true;
                } else if (group.lanes) {
                    for (const int value : std::get<PolynomialNode>(node).arguments) needed[at(value)] = true;
                }
            }
        }
    }
    return needed;
}

}  // namespace

void ProgramPlan::Data::make_groups(const StepRequest& request, const TiledProgram& tiled, const std::vector<std::vector<NodeGroup>>& tiles,
                                    const std::vector<std::pair<int, int>>& copies, std::int64_t chunk_rows) {
    std::vector<int> group_spaces;
    std::vector<std::vector<std::unique_ptr<ProgramStep>>> steps;
    const auto add_conversion = [&](int from, int to) {
        group_spaces.push_back(request.space_of(program.values[at(from)].space));
        steps.emplace_back();
        steps.back().push_back(make_conversion_step(request, from, to));
        group_texts.emplace_back();
    };
    const auto is_input = [&](int value) { return std::ranges::find(program.inputs, value) != program.inputs.end(); };
    for (const auto& [argument, copy] : copies)
        if (is_input(argument)) add_conversion(argument, copy);
    for (std::size_t t = 0; t < tiles.size(); ++t) {
        group_spaces.push_back(request.space_of(tiled.groups[t].space));
        steps.emplace_back();
        for (const NodeGroup& group : tiles[t]) {
            const Node& first = program.nodes[at(group.nodes[0])];
            if (group.lanes) {
                std::vector<const Node*> nodes;
                for (const int n : group.nodes) nodes.push_back(&program.nodes[at(n)]);
                steps.back().push_back(make_lanes_step(request, nodes, group.stored));
            } else if (const auto* polynomial = std::get_if<PolynomialNode>(&first)) {
                steps.back().push_back(make_polynomial_step(request, *polynomial));
            } else {
                steps.back().push_back(make_function_step(request, std::get<FunctionNode>(first)));
            }
        }
        std::string again;
        for (const int value : tiled.groups[t].again) again += (again.empty() ? "" : ", ") + program.values[at(value)].name;
        group_texts.push_back(again.empty() ? "" : "    computed here and not kept: " + again + "\n");
    }
    for (const auto& [argument, copy] : copies)
        if (!is_input(argument)) add_conversion(copy, argument);

    // Inside a group is what no other one touches.
    constexpr int nowhere = -1, several = -2;
    std::vector<int> home(program.values.size(), nowhere);
    for (std::size_t g = 0; g < steps.size(); ++g) {
        const auto meet = [&](const std::vector<int>& values) {
            for (const int value : values)
                home[at(value)] = home[at(value)] == nowhere || home[at(value)] == static_cast<int>(g) ? static_cast<int>(g) : several;
        };
        for (const auto& step : steps[g]) {
            meet(step->reads());
            meet(step->writes());
        }
    }
    for (const int value : argument_values) home[at(value)] = several;
    std::vector<bool> placed(program.values.size(), false);
    std::vector<ValueUse> uses;
    for (std::size_t g = 0; g < steps.size(); ++g) {
        std::vector<bool> inside(program.values.size(), false);
        for (std::size_t v = 0; v < inside.size(); ++v)
            inside[v] =
                home[v] == static_cast<int>(g) && group_spaces[g] >= 0 && request.space_of(program.values[v].space) == group_spaces[g];
        groups.emplace_back(request, group_spaces[g], std::move(steps[g]), inside, chunk_rows);
        uses.push_back(groups.back().use());
        for (std::size_t v = 0; v < inside.size(); ++v)
            if (home[v] == several || (home[v] == static_cast<int>(g) && !inside[v])) placed[v] = true;
    }
    for (const int value : argument_values) placed[at(value)] = false;
    memory = plan_memory(request, uses, placed);
}

void ProgramPlan::Data::explain_values(const TiledProgram& tiled) {
    std::vector<std::string> lists(spaces.size() + 1);
    for (const int value : tiled.kept) {
        const Value& kept = program.values[at(value)];
        const std::size_t space =
            kept.space.empty() ? spaces.size() : at(static_cast<int>(std::ranges::find(spaces, kept.space) - spaces.begin()));
        lists[space] += (lists[space].empty() ? "" : ", ") + kept.name + " (" + std::to_string(kept.size()) + ")";
    }
    for (std::size_t s = 0; s < lists.size(); ++s)
        if (!lists[s].empty())
            kept_text += "kept for other groups, numbers per row of " + (s < spaces.size() ? named(spaces[s]) : "shared values") + ": " +
                         lists[s] + "\n";
}

ProgramPlan::ProgramPlan(const Program& program, const ProgramOptions& options) {
    validate(program);
    auto data = std::make_unique<Data>(program, options.dtypes, options.compute);
    data->program = simplified(with_harmonic_chains(program));
    data->isa = options.instruction_set.value_or(default_instruction_set());
    require_available(data->isa);

    const bool fuse = options.fuse && options.family.empty();
    TiledProgram tiled = tile_program(fuse ? with_partial_sums(data->program) : data->program, fuse);
    data->program = std::move(tiled.program);
    StepRequest request{.program = &data->program,
                        .spaces = &data->spaces,
                        .dtypes = {},
                        .compute = data->compute,
                        .isa = data->isa,
                        .family = options.family};
    request.dtypes.assign(data->program.values.size(), data->compute);
    for (const std::vector<int>* values : {&data->program.inputs, &data->program.outputs})
        data->argument_values.insert(data->argument_values.end(), values->begin(), values->end());
    for (std::size_t i = 0; i < data->argument_values.size(); ++i) request.dtypes[at(data->argument_values[i])] = data->dtypes[i];

    std::vector<std::vector<NodeGroup>> tiles;
    for (const TileGroup& tile : tiled.groups) tiles.push_back(order_nodes(data->program, tile.nodes, fuse));
    const auto copies = add_copies(data->program, wants_compute_type(data->program, tiles), request.dtypes, data->compute);
    for (std::vector<NodeGroup>& tile : tiles)
        for (NodeGroup& group : tile)
            for (int& value : group.stored)
                for (const auto& [argument, copy] : copies)
                    if (value == argument) value = copy;
    data->make_groups(request, tiled, tiles, copies, options.chunk_rows);
    data->explain_values(tiled);
    data->value_dtypes = request.dtypes;
    data_ = std::move(data);
}

ProgramPlan::~ProgramPlan() = default;
ProgramPlan::ProgramPlan(ProgramPlan&&) noexcept = default;
ProgramPlan& ProgramPlan::operator=(ProgramPlan&&) noexcept = default;

const Program& ProgramPlan::program() const { return data_->given; }
const std::vector<std::string>& ProgramPlan::spaces() const { return data_->spaces; }
const std::vector<DType>& ProgramPlan::dtypes() const { return data_->dtypes; }
DType ProgramPlan::compute() const { return data_->compute; }

std::size_t ProgramPlan::workspace_bytes(std::span<const std::int64_t> rows, int threads) const {
    return data_->workspace_bytes(rows, threads);
}

std::size_t ProgramPlan::prepared_bytes() const {
    std::size_t bytes = 0;
    for (const StepGroup& group : data_->groups) bytes += group.prepared_bytes();
    return bytes;
}

void ProgramPlan::prepare(std::span<const Buffer> buffers, void* prepared, std::size_t bytes) const {
    const Data& data = *data_;
    if (buffers.size() != data.arguments.size())
        fail("prepare: expected " + std::to_string(data.arguments.size()) + " buffers, got " + std::to_string(buffers.size()));
    if (prepared_bytes() == 0) return;
    if (prepared == nullptr || reinterpret_cast<std::uintptr_t>(prepared) % 64 != 0 || bytes < prepared_bytes())
        fail("prepare: expected " + std::to_string(prepared_bytes()) + " bytes at an address that is a multiple of 64, got " +
             (prepared == nullptr ? "a null pointer" : std::to_string(bytes)));
    std::vector<Buffer> values(data.program.values.size());
    for (std::size_t i = 0; i < data.given.inputs.size(); ++i) {
        if (data.argument_spaces[i] < 0) {
            check_buffer(data.arguments[i], buffers[i], data.dtypes[i], 1);
            if (reinterpret_cast<std::uintptr_t>(buffers[i].data) % size_of(data.dtypes[i]) != 0)
                fail("prepare: operand " + named(data.arguments[i].name) + ": the address is not a multiple of the size of its numbers");
        }
        values[at(data.argument_values[i])] = buffers[i];
    }
    auto* to = static_cast<std::byte*>(prepared);
    for (const StepGroup& group : data.groups) {
        group.prepare(values.data(), to);
        to += group.prepared_bytes();
    }
}

void ProgramPlan::launch(const Call& call, Workspace workspace, const ParallelFor& parallel_for, const void* prepared) const {
    const Data& data = *data_;
    data.check(call, !call.indices_checked);
    const std::size_t needed = data.workspace_bytes(call.rows, parallel_for.threads);
    if (workspace.data == nullptr || workspace.bytes < needed)
        fail("workspace: expected " + std::to_string(needed) + " bytes, got " +
             (workspace.data == nullptr ? "a null pointer" : std::to_string(workspace.bytes)));

    launch_aligned(data.arguments, call, [&](const Call& aligned) { data.run(aligned, workspace, parallel_for, prepared); });
}

Work ProgramPlan::work(std::span<const std::int64_t> rows) const {
    const Data& data = *data_;
    data.check_rows(rows);
    Work work;
    for (const StepGroup& group : data.groups) work.multiply_adds += group.multiply_adds(rows);
    work.bytes = data.bytes(rows);
    return work;
}

std::string ProgramPlan::explain() const {
    const Data& data = *data_;
    std::size_t steps = 0;
    for (const StepGroup& group : data.groups) steps += group.steps().size();
    std::string text = "program: " + std::to_string(steps) + " steps in " + std::to_string(data.groups.size()) + " groups, arithmetic in " +
                       to_text(data.compute) + ", " + to_text(data.isa) + "\n";
    for (std::size_t s = 0; s <= data.spaces.size(); ++s) {
        if (data.memory.total_bytes[s] == 0) continue;
        text += "intermediates per row of " + (s < data.spaces.size() ? named(data.spaces[s]) : "shared values") + ": " +
                std::to_string(data.memory.peak_bytes[s]) + " bytes at once, " + std::to_string(data.memory.total_bytes[s]) + " in all\n";
    }
    text += data.kept_text;
    for (std::size_t g = 0, s = 0; g < data.groups.size(); ++g) {
        text += "group " + std::to_string(g) + ": " + data.groups[g].explain() + data.group_texts[g];
        for (const auto& part : data.groups[g].steps()) {
            std::string step = part->explain();
            if (!step.empty() && step.back() == '\n') step.pop_back();
            for (std::size_t i = step.find('\n'); i != std::string::npos; i = step.find('\n', i + 1)) step.insert(i + 1, "    ");
            text += "step " + std::to_string(s++) + ": " + step + "\n";
        }
    }
    return text;
}

}  // namespace clebsch
