#include "schedule/gpu_order.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "describe/elementwise.hpp"
#include "describe/ordered.hpp"

namespace clebsch {
namespace {

constexpr std::int64_t most_channels = 1024;  // of a segment that stream kernels take

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// A name no index has yet.
std::string free_name(const Polynomial& polynomial, std::string name) {
    while (std::ranges::any_of(polynomial.indices, [&](const Index& index) { return index.name == name; })) name += "_";
    return name;
}

/// The polynomial of some outputs: their paths and what these need.
OrderedPass pass_of(const Polynomial& polynomial, const std::vector<int>& outputs) {
    OrderedPass pass;
    std::set<int> operands(outputs.begin(), outputs.end());
    std::vector<const Path*> paths;
    for (const Path& path : polynomial.paths) {
        if (std::ranges::find(outputs, path.output().operand) == outputs.end()) continue;
        paths.push_back(&path);
        for (const Factor& factor : path.factors) operands.insert(factor.operand);
    }
    pass.operands.assign(operands.begin(), operands.end());
    pass.messages.assign(pass.operands.size(), false);
    pass.polynomial.rows = polynomial.rows;
    for (const int o : pass.operands) pass.polynomial.operands.push_back(polynomial.operands[at(o)]);
    for (int i = 0; i < static_cast<int>(polynomial.indices.size()); ++i) {
        const std::string& name = polynomial.indices[at(i)].name;
        if (std::ranges::none_of(pass.polynomial.operands, [&](const Operand& operand) {
                return std::ranges::find(operand.rows.via, name) != operand.rows.via.end();
            }))
            continue;
        pass.indices.push_back(i);
        pass.polynomial.indices.push_back(polynomial.indices[at(i)]);
    }
    for (const Path* path : paths) {
        Path& own = pass.polynomial.paths.emplace_back(*path);
        for (Factor& factor : own.factors)
            factor.operand = static_cast<int>(std::ranges::find(pass.operands, factor.operand) - pass.operands.begin());
    }
    return pass;
}

/// The same over rows ordered by the sums' indices.
void order(OrderedPass& pass, const std::vector<std::string>& by) {
    const Polynomial given = std::move(pass.polynomial);
    pass.polynomial = in_order_of(given, by, free_name(given, "ordered"), free_name(given, "ordered_target"));
    std::vector<int> kept;
    for (std::size_t i = 0; i < given.indices.size(); ++i)
        if (std::ranges::find(pass.polynomial.indices, given.indices[i].name, &Index::name) != pass.polynomial.indices.end())
            kept.push_back(pass.indices[i]);
    kept.insert(kept.end(), {-1, -1});
    pass.indices = std::move(kept);
    pass.order = by;
}

/// Outputs that are reached in the same way.
struct Group {
    Addressing rows;
    std::vector<int> outputs;
    std::int64_t size = 0;  ///< numbers of a row
};

std::vector<Group> groups_of(const Polynomial& polynomial) {
    std::vector<Group> groups;
    for (int o = 0; o < static_cast<int>(polynomial.operands.size()); ++o) {
        const Operand& operand = polynomial.operands[at(o)];
        if (operand.role != Role::output) continue;
        auto known = std::ranges::find(groups, operand.rows, &Group::rows);
        if (known == groups.end()) known = groups.insert(groups.end(), Group{operand.rows, {}, 0});
        known->outputs.push_back(o);
        known->size += operand.size();
    }
    return groups;
}

/// Whether messages, written and read once, are less than half of what the pass in the order of the sums would read of every row.
bool by_messages(const Polynomial& polynomial, const Group& group) {
    const OrderedPass pass = pass_of(polynomial, group.outputs);
    std::int64_t read = 0;
    for (const Operand& operand : pass.polynomial.operands)
        if (operand.role == Role::input && operand.rows.kind != Addressing::Kind::shared && operand.rows.via != group.rows.via)
            read += operand.size();
    return 4 * group.size < read;
}

/// Adds up messages: numbers whatever they mean.
OrderedPass sums_of_messages(const Polynomial& polynomial, const Group& group) {
    OrderedPass pass;
    pass.polynomial.rows = polynomial.rows;
    for (const std::string& name : group.rows.via)
        if (std::ranges::none_of(pass.polynomial.indices, [&](const Index& index) { return index.name == name; })) {
            pass.indices.push_back(polynomial.find_index(name));
            pass.polynomial.indices.push_back(polynomial.indices[at(pass.indices.back())]);
        }
    for (const int o : group.outputs) {
        const Operand& output = polynomial.operands[at(o)];
        std::vector<Segment> segments;
        for (std::int64_t left = output.size(); left > 0; left -= segments.back().multiplicity)
            segments.push_back({std::min(left, most_channels), 1, {}});
        const int message = static_cast<int>(pass.operands.size());
        for (const bool is_message : {true, false}) {
            pass.polynomial.operands.push_back({.name = output.name + (is_message ? ".messages" : ""),
                                                .segments = segments,
                                                .layout = Layout::ir_mul,
                                                .role = is_message ? Role::input : Role::output,
                                                .rows = is_message ? each_row() : output.rows});
            pass.operands.push_back(o);
            pass.messages.push_back(is_message);
        }
        add_elementwise(pass.polynomial, 1, {message}, message + 1, segments);
    }
    order(pass, group.rows.via);
    return pass;
}

}  // namespace

std::vector<OrderedPass> ordered_passes(const Polynomial& polynomial) {
    const auto is_sorted = [&](const Group& group) {
        return group.rows.kind == Addressing::Kind::indexed && polynomial.is_sorted(polynomial.operands[at(group.outputs.front())]);
    };
    std::vector<Group> transposed, summed;  // passes of their own; by messages
    std::vector<Group> sorted, shared;
    std::vector<int> first;  // outputs of the pass over rows as they come: of each row, messages, and the largest sorted sums
    for (Group& group : groups_of(polynomial)) {
        if (group.rows.kind == Addressing::Kind::each) first.insert(first.end(), group.outputs.begin(), group.outputs.end());
        else if (group.rows.kind == Addressing::Kind::shared) shared.push_back(std::move(group));
        else if (is_sorted(group)) sorted.push_back(std::move(group));
        else (by_messages(polynomial, group) ? summed : transposed).push_back(std::move(group));
    }
    for (const Group& group : summed) first.insert(first.end(), group.outputs.begin(), group.outputs.end());
    std::ranges::stable_sort(sorted, std::greater<>{}, &Group::size);
    if (!sorted.empty()) {
        first.insert(first.end(), sorted[0].outputs.begin(), sorted[0].outputs.end());
        sorted.erase(sorted.begin());
    }
    std::vector<OrderedPass> passes;
    if (!first.empty()) {
        std::ranges::sort(first);
        OrderedPass& pass = passes.emplace_back(pass_of(polynomial, first));
        for (std::size_t o = 0; o < pass.operands.size(); ++o)
            pass.messages[o] = std::ranges::any_of(
                summed, [&](const Group& group) { return std::ranges::find(group.outputs, pass.operands[o]) != group.outputs.end(); });
    }
    for (const std::vector<Group>* list : {&sorted, &shared})
        for (const Group& group : *list) passes.push_back(pass_of(polynomial, group.outputs));
    for (const Group& group : transposed) {
        passes.push_back(pass_of(polynomial, group.outputs));
        order(passes.back(), group.rows.via);
    }
    for (const Group& group : summed) passes.push_back(sums_of_messages(polynomial, group));
    return passes;
}

std::vector<OrderedPass> gpu_passes(const Polynomial& polynomial, bool ordered) {
    if (ordered) return ordered_passes(polynomial);
    OrderedPass all{.polynomial = polynomial, .operands = {}, .messages = {}, .indices = {}, .order = {}};
    all.operands.resize(polynomial.operands.size());
    all.messages.assign(polynomial.operands.size(), false);
    std::iota(all.operands.begin(), all.operands.end(), 0);
    all.indices.resize(polynomial.indices.size());
    std::iota(all.indices.begin(), all.indices.end(), 0);
    return {std::move(all)};
}

std::string explain_passes(std::size_t count) {
    return "deterministic: every sum has one order; " + std::to_string(count) + (count == 1 ? " pass" : " passes") + " over the rows\n";
}

std::string explain(const OrderedPass& pass, std::size_t number_bytes) {
    std::string outputs, order, messages;
    std::size_t sums = 0, kept = 0;
    for (std::size_t o = 0; o < pass.operands.size(); ++o) {
        const Operand& operand = pass.polynomial.operands[o];
        const auto bytes = static_cast<std::size_t>(operand.size()) * number_bytes;
        if (operand.role != Role::output) continue;
        outputs += (outputs.empty() ? "'" : ", '") + operand.name + (pass.messages[o] ? "' (messages)" : "'");
        if (pass.messages[o]) kept += bytes;
        else if (operand.rows.kind != Addressing::Kind::each) sums += bytes;
    }
    for (const std::string& index : pass.order) order += (order.empty() ? "'" : ", '") + index + "'";
    std::string text = "pass for " + outputs + ": ";
    if (order.empty()) text += "rows as they come";
    else text += "rows in the order of " + order + ", found in every launch in 40 bytes of workspace a row";
    if (kept > 0) text += "; messages, " + std::to_string(kept) + " bytes of workspace a row";
    if (sums > 0) text += "; parts of sums, " + std::to_string(2 * sums) + " bytes for every chunk of rows";
    return text + "\n";
}

}  // namespace clebsch
