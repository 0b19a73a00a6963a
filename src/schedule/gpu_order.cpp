#include "schedule/gpu_order.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace clebsch {
namespace {

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
    Polynomial& polynomial = pass.polynomial;
    const Index row{free_name(polynomial, "ordered"), polynomial.rows, polynomial.rows, false};
    const Index target{free_name(polynomial, "ordered_target"), polynomial.rows,
                       polynomial.indices[at(polynomial.find_index(by.back()))].to, true};
    for (Operand& operand : polynomial.operands) {
        std::vector<std::string>& via = operand.rows.via;
        if (operand.rows.kind == Addressing::Kind::each) operand.rows = row_of(row.name);
        else if (operand.rows.kind == Addressing::Kind::indexed && via.size() >= by.size() && std::equal(by.begin(), by.end(), via.begin()))
            via.erase(via.begin() + 1, via.begin() + static_cast<std::ptrdiff_t>(by.size())), via.front() = target.name;
        else if (operand.rows.kind == Addressing::Kind::indexed) via.insert(via.begin(), row.name);
    }
    polynomial.indices.push_back(row);
    polynomial.indices.push_back(target);
    // What only the sums' indices led to needs them no more.
    for (std::size_t i = pass.indices.size(); i-- > 0;)
        if (std::ranges::none_of(polynomial.operands, [&](const Operand& operand) {
                return std::ranges::find(operand.rows.via, polynomial.indices[i].name) != operand.rows.via.end();
            })) {
            polynomial.indices.erase(polynomial.indices.begin() + static_cast<std::ptrdiff_t>(i));
            pass.indices.erase(pass.indices.begin() + static_cast<std::ptrdiff_t>(i));
        }
    pass.indices.insert(pass.indices.end(), {-1, -1});
    pass.order = by;
}

}  // namespace

std::vector<OrderedPass> ordered_passes(const Polynomial& polynomial) {
    struct Group {
        Addressing rows;
        std::vector<int> outputs;
        std::int64_t size = 0;
    };
    std::vector<Group> groups;
    for (int o = 0; o < static_cast<int>(polynomial.operands.size()); ++o) {
        const Operand& operand = polynomial.operands[at(o)];
        if (operand.role != Role::output) continue;
        auto known = std::ranges::find(groups, operand.rows, &Group::rows);
        if (known == groups.end()) known = groups.insert(groups.end(), Group{operand.rows, {}, 0});
        known->outputs.push_back(o);
        known->size += operand.size();
    }
    // Outputs of each row go with the largest sums whose rows are in order already.
    const auto each = std::ranges::find(groups, each_row(), &Group::rows);
    if (each != groups.end()) {
        Group* with = nullptr;
        for (Group& group : groups)
            if (group.rows.kind == Addressing::Kind::indexed && polynomial.is_sorted(polynomial.operands[at(group.outputs.front())]) &&
                (with == nullptr || group.size > with->size))
                with = &group;
        if (with != nullptr) {
            with->outputs.insert(with->outputs.end(), each->outputs.begin(), each->outputs.end());
            std::ranges::sort(with->outputs);
            groups.erase(each);
        }
    }
    std::vector<OrderedPass> passes;
    for (const Group& group : groups) {
        passes.push_back(pass_of(polynomial, group.outputs));
        const bool indexed = group.rows.kind == Addressing::Kind::indexed;
        const auto through = [&](int o) { return polynomial.operands[at(o)].rows == group.rows; };
        if (indexed && !polynomial.is_sorted(polynomial.operands[at(*std::ranges::find_if(group.outputs, through))]))
            order(passes.back(), group.rows.via);
    }
    return passes;
}

std::vector<OrderedPass> gpu_passes(const Polynomial& polynomial, bool ordered) {
    if (ordered) return ordered_passes(polynomial);
    OrderedPass all{.polynomial = polynomial, .operands = {}, .indices = {}, .order = {}};
    all.operands.resize(polynomial.operands.size());
    std::iota(all.operands.begin(), all.operands.end(), 0);
    all.indices.resize(polynomial.indices.size());
    std::iota(all.indices.begin(), all.indices.end(), 0);
    return {std::move(all)};
}

std::string explain_passes(std::size_t count) {
    return "deterministic: every sum has one order; " + std::to_string(count) + (count == 1 ? " pass" : " passes") + " over the rows\n";
}

std::string explain(const OrderedPass& pass, std::size_t number_bytes) {
    std::string outputs, order;
    std::int64_t sums = 0;
    for (const Operand& operand : pass.polynomial.operands) {
        if (operand.role != Role::output) continue;
        outputs += (outputs.empty() ? "'" : ", '") + operand.name + "'";
        if (operand.rows.kind != Addressing::Kind::each) sums += operand.size();
    }
    for (const std::string& index : pass.order) order += (order.empty() ? "'" : ", '") + index + "'";
    std::string text = "pass for " + outputs + ": ";
    if (order.empty()) text += "rows as they come";
    else text += "rows in the order of " + order + ", found in every launch in 40 bytes of workspace a row";
    if (sums > 0)
        text += "; parts of sums, " + std::to_string(2 * static_cast<std::size_t>(sums) * number_bytes) + " bytes for every chunk of rows";
    return text + "\n";
}

}  // namespace clebsch
