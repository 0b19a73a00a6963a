#include "schedule/program_groups.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "describe/rewrites.hpp"
#include "schedule/lanes.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// What is known of a node.
struct Fact {
    std::vector<RowUse> uses;
    std::string space;
    int depth = 0;
    double work = 0;         ///< multiply-adds per row
    double numbers = 0;      ///< of its results, per row
    bool possible = false;   ///< can be computed again
    bool elsewhere = false;  ///< a group other than its own, or the caller, uses a result
    bool whole = false;      ///< something uses a result other than row by row
    bool lazy = false;       ///< computed only where something uses it
};

class Tiling {
 public:
    Tiling(const Program& program, const AgainLimits& limits)
        : program_(program),
          limits_(limits),
          producer_(program.values.size(), -1),
          is_argument_(program.values.size(), false),
          elsewhere_(program.values.size(), false) {
        for (const int value : program.inputs) is_argument_[at(value)] = true;
        for (const int value : program.outputs) is_argument_[at(value)] = true;
        for (std::size_t n = 0; n < program.nodes.size(); ++n) {
            Fact fact;
            fact.uses = row_uses(program, program.nodes[n]);
            fact.space = space_of(program, program.nodes[n]);
            fact.work = work_per_row(program, program.nodes[n]);
            for (const RowUse& use : fact.uses)
                if (use.output) producer_[at(use.value)] = static_cast<int>(n);
            facts_.push_back(std::move(fact));
        }
        find_depths();
        find_uses_elsewhere();
        decide();
        find_lazy();
    }

    TiledProgram run() {
        TiledProgram result;
        result.program = without_nodes(program_);
        for (const RowUse& use : kept_uses()) result.kept.push_back(use.value);
        for (const std::vector<int>& members : members_by_group()) {
            const std::set<int> placed = placed_in(members);
            if (placed.empty()) continue;
            TileGroup group;
            group.space = facts_[at(members.front())].space;
            const int depth = facts_[at(members.front())].depth;
            std::map<int, int> copies;  // values of this group that stand for those of another
            for (const int n : placed) {
                Node node = program_.nodes[at(n)];
                const bool own = facts_[at(n)].depth == depth;
                const bool again = !own || facts_[at(n)].lazy;
                for (const RowUse& use : facts_[at(n)].uses) {
                    if (!use.output || !again) continue;
                    const int value = own || !written_.contains(use.value) ? use.value : copy_of(result.program, use.value);
                    copies[use.value] = value;
                    group.again.push_back(value);
                }
                rename(node, facts_[at(n)].uses, copies);
                for (const RowUse& use : facts_[at(n)].uses)
                    if (use.output) written_.insert(use.value);
                group.nodes.push_back(static_cast<int>(result.program.nodes.size()));
                result.program.nodes.push_back(std::move(node));
            }
            result.groups.push_back(std::move(group));
        }
        return result;
    }

 private:
    Fact* producer(int value) { return producer_[at(value)] < 0 ? nullptr : &facts_[at(producer_[at(value)])]; }

    void find_depths() {
        const std::vector<int> depths = node_depths(program_);
        for (std::size_t n = 0; n < facts_.size(); ++n) facts_[n].depth = depths[n];
    }

    bool same_group(const Fact& a, const Fact& b) const { return a.depth == b.depth && a.space == b.space; }

    void find_uses_elsewhere() {
        for (Fact& fact : facts_) {
            for (const RowUse& use : fact.uses) {
                Fact* from = producer(use.value);
                if (from == nullptr) continue;
                if (use.output ? is_argument_[at(use.value)] : !same_group(*from, fact)) from->elsewhere = elsewhere_[at(use.value)] = true;
                if (!use.local) from->whole = true;
            }
        }
    }

    /// Whether the value is in memory for all groups after its own.
    bool kept(int value) const { return elsewhere_[at(value)] && !facts_[at(producer_[at(value)])].lazy; }

    /// Which nodes are computed again instead of being kept.
    void decide() {
        for (std::size_t n = 0; n < facts_.size(); ++n) {
            Fact& fact = facts_[n];
            fact.possible = !fact.whole;
            for (const RowUse& use : fact.uses) {
                if (use.output) {
                    fact.possible = fact.possible && use.local && !is_argument_[at(use.value)];
                    fact.numbers += static_cast<double>(program_.values[at(use.value)].size());
                } else if (const Fact* from = producer(use.value); from != nullptr) {
                    fact.possible = fact.possible && use.local && (kept(use.value) || from->possible);
                }
            }
            if (!fact.possible || !fact.elsewhere) continue;
            if (fact.numbers <= static_cast<double>(limits_.kept_numbers)) continue;
            if (limits_.targets_kept && std::ranges::any_of(program_.indices, [&](const Index& index) { return index.to == fact.space; }))
                continue;
            const double limit = fact.numbers > static_cast<double>(small_row) ? limits_.of_long_rows : limits_.of_short_rows;
            fact.lazy = work_again(static_cast<int>(n)) <= limit * fact.numbers;
        }
    }

    /// Multiply-adds per row to compute the results of a node from what is kept.
    double work_again(int node) {
        double work = 0;
        std::set<int> met;
        std::vector<int> stack = {node};
        while (!stack.empty()) {
            const int n = stack.back();
            stack.pop_back();
            if (!met.insert(n).second) continue;
            work += facts_[at(n)].work;
            for (const RowUse& use : facts_[at(n)].uses)
                if (const Fact* from = use.output ? nullptr : producer(use.value); from != nullptr && !kept(use.value))
                    stack.push_back(producer_[at(use.value)]);
        }
        return work;
    }

    /// A node of no use but to lazy ones is lazy too.
    void find_lazy() {
        std::vector<bool> wanted(facts_.size(), false), used(facts_.size(), false);
        for (std::size_t n = facts_.size(); n-- > 0;) {
            Fact& fact = facts_[n];
            if (!fact.elsewhere) fact.lazy = fact.possible && used[n] && !wanted[n];
            for (const RowUse& use : fact.uses) {
                if (use.output || producer_[at(use.value)] < 0) continue;
                used[at(producer_[at(use.value)])] = true;
                if (!fact.lazy) wanted[at(producer_[at(use.value)])] = true;
            }
        }
    }

    std::vector<std::vector<int>> members_by_group() const {
        std::map<std::pair<int, std::string>, std::size_t> known;
        std::vector<std::vector<int>> result;
        std::vector<int> depths;
        for (std::size_t n = 0; n < facts_.size(); ++n) {
            const auto [place, is_new] = known.try_emplace({facts_[n].depth, facts_[n].space}, result.size());
            if (is_new) {
                result.emplace_back();
                depths.push_back(facts_[n].depth);
            }
            result[place->second].push_back(static_cast<int>(n));
        }
        std::vector<std::size_t> order(result.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::ranges::stable_sort(order, {}, [&](std::size_t i) { return depths[i]; });
        std::vector<std::vector<int>> sorted;
        sorted.reserve(order.size());
        for (const std::size_t i : order) sorted.push_back(std::move(result[i]));
        return sorted;
    }

    /// Nodes that run in the group whose own nodes are `members`, those computed again among them.
    std::set<int> placed_in(const std::vector<int>& members) {
        std::set<int> placed;
        std::vector<int> stack;
        for (const int n : members)
            if (!facts_[at(n)].lazy) stack.push_back(n);
        while (!stack.empty()) {
            const int n = stack.back();
            stack.pop_back();
            if (!placed.insert(n).second) continue;
            for (const RowUse& use : facts_[at(n)].uses) {
                const Fact* from = use.output || !use.local ? nullptr : producer(use.value);
                if (from == nullptr) continue;
                // A result of another group is there when it is kept.
                const bool there = !from->lazy && (same_group(*from, facts_[at(members.front())]) || kept(use.value));
                if (!there) stack.push_back(producer_[at(use.value)]);
            }
        }
        return placed;
    }

    std::vector<RowUse> kept_uses() const {
        std::vector<RowUse> result;
        for (const Fact& fact : facts_)
            for (const RowUse& use : fact.uses)
                if (use.output && kept(use.value) && !is_argument_[at(use.value)]) result.push_back(use);
        return result;
    }

    int copy_of(Program& program, int value) {
        if (names_.empty())
            for (const Value& known : program.values) names_.insert(known.name);
        Value copy = program.values[at(value)];
        const std::string stem = copy.name + "_again";
        copy.name = stem;
        for (int i = 2; !names_.insert(copy.name).second; ++i) copy.name = stem + std::to_string(i);
        program.values.push_back(std::move(copy));
        return static_cast<int>(program.values.size()) - 1;
    }

    static void rename(Node& node, const std::vector<RowUse>& uses, const std::map<int, int>& copies) {
        const auto renamed = [&](const RowUse& use) {
            const auto copy = use.local ? copies.find(use.value) : copies.end();
            return copy == copies.end() ? use.value : copy->second;
        };
        if (auto* function = std::get_if<FunctionNode>(&node)) {
            function->input = renamed(uses[0]);
            function->output = renamed(uses[1]);
            return;
        }
        std::vector<int>& arguments = std::get<PolynomialNode>(node).arguments;
        for (std::size_t i = 0; i < arguments.size(); ++i) arguments[i] = renamed(uses[i]);
    }

    const Program& program_;
    AgainLimits limits_;
    std::vector<Fact> facts_;  ///< of every node
    std::vector<int> producer_;
    std::vector<bool> is_argument_;
    std::vector<bool> elsewhere_;  ///< of every value: a group other than its node's, or the caller, uses it
    std::set<int> written_;
    std::set<std::string> names_;
};

/// As many as reduced_entries has, which are those of the tensor where all factors differ.
std::size_t entries_of(const Path& path) {
    for (std::size_t f = 0; f + 1 < path.factors.size(); ++f)
        for (std::size_t g = f + 1; g + 1 < path.factors.size(); ++g)
            if (path.factors[f].operand == path.factors[g].operand && path.factors[f].segment == path.factors[g].segment)
                return reduced_entries(path).size();
    return path.coefficients.entries().size();
}

}  // namespace

std::vector<RowUse> row_uses(const Program& program, const Node& node) {
    if (const auto* function = std::get_if<FunctionNode>(&node)) {
        const bool local = !program.values[at(function->input)].space.empty();
        return {{function->input, local, false}, {function->output, local, true}};
    }
    const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
    std::vector<RowUse> result;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const Operand& operand = polynomial.operands[i];
        const bool local = operand.rows.kind == Addressing::Kind::each && !polynomial.rows.empty();
        result.push_back({arguments[i], local, operand.role == Role::output});
    }
    return result;
}

std::vector<int> node_depths(const Program& program) {
    struct Source {
        int depth = 0;
        bool local = true;
    };
    std::vector<Source> sources(program.values.size(), Source{-1, true});  // depth -1: an argument
    std::vector<int> depths;
    for (const Node& node : program.nodes) {
        const std::vector<RowUse> uses = row_uses(program, node);
        int depth = 0;
        for (const RowUse& use : uses) {
            const Source& from = sources[at(use.value)];
            if (!use.output && from.depth >= 0) depth = std::max(depth, from.depth + (use.local && from.local ? 0 : 1));
        }
        for (const RowUse& use : uses)
            if (use.output) sources[at(use.value)] = {depth, use.local};
        depths.push_back(depth);
    }
    return depths;
}

double work_per_row(const Program& program, const Node& node) {
    if (const auto* function = std::get_if<FunctionNode>(&node))
        return work_of_function * static_cast<double>(program.values[at(function->input)].size());
    double work = 0;
    for (const Path& path : std::get<PolynomialNode>(node).polynomial.paths) {
        double channels = 1;
        for (const auto& [letter, extent] : path.extents) channels *= static_cast<double>(extent);
        work += channels * static_cast<double>(std::max<std::size_t>(1, entries_of(path)));
    }
    return work;
}

TiledProgram tile_program(const Program& program, bool group, const AgainLimits& limits) {
    if (group) return Tiling(program, limits).run();
    TiledProgram result{program, {}, {}};
    for (std::size_t n = 0; n < program.nodes.size(); ++n)
        result.groups.push_back({space_of(program, program.nodes[n]), {static_cast<int>(n)}, {}});
    return result;
}

}  // namespace clebsch
