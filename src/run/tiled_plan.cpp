#include "run/tiled_plan.hpp"

#include <algorithm>
#include <functional>
#include <new>

#include "base/error.hpp"
#include "run/program_arguments.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::string named(const std::string& name) { return "'" + name + "'"; }

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

using Steps = std::vector<std::unique_ptr<ProgramStep>>;

/// Of every tile. What takes time, plans of polynomials and tapes, is made on several threads, one plan for nodes that are alike.
std::vector<Steps> make_steps(const StepRequest& request, const std::vector<std::vector<NodeGroup>>& tiles) {
    const auto node_at = [&](int n) -> const Node& { return request.program->nodes[at(n)]; };
    std::vector<Steps> steps(tiles.size());
    struct PolynomialPlace {
        std::unique_ptr<ProgramStep>& step;
        const PolynomialNode& node;
        std::size_t plan;
    };
    std::vector<PolynomialPlace> polynomials;
    std::vector<const PolynomialNode*> distinct;
    std::vector<std::function<void()>> jobs;
    for (std::size_t t = 0; t < tiles.size(); ++t) {
        steps[t].resize(tiles[t].size());
        for (std::size_t g = 0; g < tiles[t].size(); ++g) {
            const NodeGroup& group = tiles[t][g];
            const Node& first = node_at(group.nodes[0]);
            if (group.lanes) {
                jobs.emplace_back([&request, &group, &step = steps[t][g], &node_at] {
                    std::vector<const Node*> nodes;
                    for (const int n : group.nodes) nodes.push_back(&node_at(n));
                    step = make_lanes_step(request, nodes, group.stored);
                });
            } else if (const auto* node = std::get_if<PolynomialNode>(&first)) {
                const auto known =
                    std::ranges::find_if(distinct, [&](const PolynomialNode* other) { return request.same_plan(*other, *node); });
                polynomials.push_back({steps[t][g], *node, static_cast<std::size_t>(known - distinct.begin())});
                if (known == distinct.end()) distinct.push_back(node);
            } else {
                steps[t][g] = make_function_step(request, std::get<FunctionNode>(first));
            }
        }
    }
    std::vector<std::shared_ptr<const PolynomialPlan>> plans(distinct.size());
    for (std::size_t p = 0; p < plans.size(); ++p) jobs.emplace_back([&, p] { plans[p] = plan_node(request, *distinct[p]); });
    run_jobs(jobs, request.threads);
    for (const PolynomialPlace& polynomial : polynomials)
        polynomial.step = make_polynomial_step(request, polynomial.node, plans[polynomial.plan]);
    return steps;
}

}  // namespace

TiledPlan::TiledPlan(TiledProgram tiled, const StepRequest& given, bool fuse, std::int64_t chunk_rows)
    : division_(std::move(tiled)), program_(division_.program), spaces_(*given.spaces) {
    StepRequest request = given;
    request.program = &program_;
    request.dtypes.assign(program_.values.size(), given.compute);
    argument_values_ = program_.inputs;
    argument_values_.insert(argument_values_.end(), program_.outputs.begin(), program_.outputs.end());
    for (std::size_t i = 0; i < argument_values_.size(); ++i) request.dtypes[at(argument_values_[i])] = given.dtypes[i];

    std::vector<std::vector<NodeGroup>> tiles;
    for (const TileGroup& tile : division_.groups) tiles.push_back(order_nodes(program_, tile.nodes, fuse));
    const Copies copies = add_copies(program_, wants_compute_type(program_, tiles), request.dtypes, given.compute);
    for (std::vector<NodeGroup>& tile : tiles)
        for (NodeGroup& group : tile)
            for (int& value : group.stored)
                for (const auto& [argument, copy] : copies)
                    if (value == argument) value = copy;
    make_groups(request, tiles, copies, chunk_rows);
    explain_values();
    value_dtypes_ = request.dtypes;
}

void TiledPlan::make_groups(const StepRequest& request, const std::vector<std::vector<NodeGroup>>& tiles, const Copies& copies,
                            std::int64_t chunk_rows) {
    std::vector<int> group_spaces;
    std::vector<Steps> steps;
    const auto add_conversion = [&](int from, int to) {
        group_spaces.push_back(request.space_of(program_.values[at(from)].space));
        steps.emplace_back();
        steps.back().push_back(make_conversion_step(request, from, to));
        group_texts_.emplace_back();
    };
    const auto is_input = [&](int value) { return std::ranges::find(program_.inputs, value) != program_.inputs.end(); };
    for (const auto& [argument, copy] : copies)
        if (is_input(argument)) add_conversion(argument, copy);
    std::vector<Steps> steps_of_tiles = make_steps(request, tiles);
    for (std::size_t t = 0; t < tiles.size(); ++t) {
        group_spaces.push_back(request.space_of(division_.groups[t].space));
        steps.push_back(std::move(steps_of_tiles[t]));
        std::string again;
        for (const int value : division_.groups[t].again) again += (again.empty() ? "" : ", ") + program_.values[at(value)].name;
        group_texts_.push_back(again.empty() ? "" : "    computed here and not kept: " + again + "\n");
    }
    for (const auto& [argument, copy] : copies)
        if (!is_input(argument)) add_conversion(copy, argument);

    // Inside a group is what no other one touches.
    constexpr int nowhere = -1, several = -2;
    std::vector<int> home(program_.values.size(), nowhere);
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
    for (const int value : argument_values_) home[at(value)] = several;
    std::vector<bool> placed(program_.values.size(), false);
    std::vector<ValueUse> uses;
    for (std::size_t g = 0; g < steps.size(); ++g) {
        std::vector<bool> inside(program_.values.size(), false);
        for (std::size_t v = 0; v < inside.size(); ++v)
            inside[v] =
                home[v] == static_cast<int>(g) && group_spaces[g] >= 0 && request.space_of(program_.values[v].space) == group_spaces[g];
        groups_.emplace_back(request, group_spaces[g], std::move(steps[g]), inside, chunk_rows);
        uses.push_back(groups_.back().use());
        for (std::size_t v = 0; v < inside.size(); ++v)
            if (home[v] == several || (home[v] == static_cast<int>(g) && !inside[v])) placed[v] = true;
    }
    for (const int value : argument_values_) placed[at(value)] = false;
    memory_ = plan_memory(request, uses, placed);
}

void TiledPlan::explain_values() {
    std::vector<std::string> lists(spaces_.size() + 1);
    for (const int value : division_.kept) {
        const Value& kept = program_.values[at(value)];
        const std::size_t space =
            kept.space.empty() ? spaces_.size() : at(static_cast<int>(std::ranges::find(spaces_, kept.space) - spaces_.begin()));
        lists[space] += (lists[space].empty() ? "" : ", ") + kept.name + " (" + std::to_string(kept.size()) + ")";
    }
    for (std::size_t s = 0; s < lists.size(); ++s)
        if (!lists[s].empty())
            kept_text_ += "kept for other groups, numbers per row of " + (s < spaces_.size() ? named(spaces_[s]) : "shared values") + ": " +
                          lists[s] + "\n";
}

void TiledPlan::run(const Call& call, const Workspace& workspace, const ParallelFor& parallel_for, const std::byte* prepared) const {
    // Tables, then the regions of intermediates, then what the running step has for itself.
    const auto address = reinterpret_cast<std::uintptr_t>(workspace.data);
    std::byte* const begin = static_cast<std::byte*>(workspace.data) + (round_up(address, 64) - address);
    auto* const values = reinterpret_cast<Buffer*>(begin);
    auto* const regions = reinterpret_cast<std::size_t*>(begin + round_up(program_.values.size() * sizeof(Buffer), 64));
    std::byte* const intermediates = begin + table_bytes();
    memory_.regions(call.rows, regions);
    for (std::size_t v = 0; v < program_.values.size(); ++v) {
        const ProgramMemory::Place& place = memory_.places[v];
        Buffer buffer;
        if (place.own) {
            const std::int64_t rows = place.space < 0 ? 1 : call.rows[at(place.space)];
            const std::int64_t before = place.space < 0 ? place.offset : ProgramMemory::padded(rows) * place.offset;
            const std::size_t region = regions[place.space < 0 ? spaces_.size() : at(place.space)];
            buffer = {intermediates + region + before, value_dtypes_[v], rows, place.row_stride};
        }
        new (values + v) Buffer(buffer);
    }
    for (std::size_t i = 0; i < argument_values_.size(); ++i) values[argument_values_[i]] = call.buffers[i];
    for (const StepGroup& group : groups_) group.describe_inside(values);

    std::byte* const own = intermediates + round_up(memory_.bytes(call.rows), 64);
    const std::byte* made = prepared;
    for (const StepGroup& group : groups_) {
        group.launch(values, call.indices.data(), call.rows, own, parallel_for, made);
        if (made != nullptr) made += group.prepared_bytes();
    }
}

std::size_t TiledPlan::workspace_bytes(std::span<const std::int64_t> rows, int threads) const {
    std::size_t step_bytes = 0;
    for (const StepGroup& group : groups_) step_bytes = std::max(step_bytes, group.workspace_bytes(rows, threads));
    std::size_t sum = 64 + table_bytes();
    if (__builtin_add_overflow(sum, memory_.bytes(rows), &sum) || __builtin_add_overflow(sum, step_bytes, &sum) ||
        sum > (std::size_t{1} << 63))
        fail("the workspace of the program exceeds 2^63 bytes for this number of rows");
    return sum;
}

std::size_t TiledPlan::prepared_bytes() const {
    std::size_t bytes = 0;
    for (const StepGroup& group : groups_) bytes += group.prepared_bytes();
    return bytes;
}

void TiledPlan::prepare(std::span<const Buffer> arguments, std::byte* prepared) const {
    std::vector<Buffer> values(program_.values.size());
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) values[at(argument_values_[i])] = arguments[i];
    for (const StepGroup& group : groups_) {
        group.prepare(values.data(), prepared);
        prepared += group.prepared_bytes();
    }
}

double TiledPlan::multiply_adds(std::span<const std::int64_t> rows) const {
    double sum = 0;
    for (const StepGroup& group : groups_) sum += group.multiply_adds(rows);
    return sum;
}

std::size_t TiledPlan::steps() const {
    std::size_t steps = 0;
    for (const StepGroup& group : groups_) steps += group.steps().size();
    return steps;
}

std::string TiledPlan::explain() const {
    std::string text;
    for (std::size_t s = 0; s <= spaces_.size(); ++s) {
        if (memory_.total_bytes[s] == 0) continue;
        text += "intermediates per row of " + (s < spaces_.size() ? named(spaces_[s]) : "shared values") + ": " +
                std::to_string(memory_.peak_bytes[s]) + " bytes at once, " + std::to_string(memory_.total_bytes[s]) + " in all\n";
    }
    text += kept_text_;
    for (std::size_t g = 0, s = 0; g < groups_.size(); ++g) {
        text += "group " + std::to_string(g) + ": " + groups_[g].explain() + group_texts_[g];
        for (const auto& part : groups_[g].steps()) {
            std::string step = part->explain();
            if (!step.empty() && step.back() == '\n') step.pop_back();
            for (std::size_t i = step.find('\n'); i != std::string::npos; i = step.find('\n', i + 1)) step.insert(i + 1, "    ");
            text += "step " + std::to_string(s++) + ": " + step + "\n";
        }
    }
    return text;
}

}  // namespace clebsch
