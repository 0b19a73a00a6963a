#include "schedule/partial_sums.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "describe/elementwise.hpp"
#include "describe/rewrites.hpp"
#include "schedule/program_groups.hpp"

namespace clebsch {
namespace {

constexpr std::int64_t least_gain = 2;  ///< numbers no longer kept, over numbers of the sum

std::size_t at(int position) { return static_cast<std::size_t>(position); }

class PartialSums {
 public:
    explicit PartialSums(const Program& program) : result_(without_nodes(program)), depths_(node_depths(program)) {
        for (const Value& value : program.values) names_.insert(value.name);
        producer_.assign(program.values.size(), -1);
        for (std::size_t n = 0; n < program.nodes.size(); ++n) {
            for (const RowUse& use : row_uses(program, program.nodes[n])) {
                if (use.output) producer_[at(use.value)] = static_cast<int>(n);
                else readers_[use.value].push_back(static_cast<int>(n));
            }
        }
        for (std::size_t n = 0; n < program.nodes.size(); ++n) add(program.nodes[n], static_cast<int>(n));
    }

    Program run() { return std::move(result_); }

 private:
    void add(const Node& node, int n) {
        const auto* polynomial = std::get_if<PolynomialNode>(&node);
        const std::vector<RowUse> uses = row_uses(result_, node);
        const auto outputs = std::ranges::count_if(uses, &RowUse::output);
        const auto output = std::ranges::find_if(uses, &RowUse::output);
        if (polynomial == nullptr || outputs != 1 || !output->local) return result_.nodes.push_back(node);

        std::vector<int> depths;
        for (const Path& path : polynomial->polynomial.paths) depths.push_back(depth_of(path, uses));
        if (std::ranges::adjacent_find(depths, std::ranges::not_equal_to()) == depths.end()) return result_.nodes.push_back(node);
        std::map<int, std::vector<Path>> by_depth;
        for (std::size_t p = 0; p < depths.size(); ++p) by_depth[depths[p]].push_back(polynomial->polynomial.paths[p]);
        std::vector<Path> late = by_depth.rbegin()->second;
        std::vector<ElementwiseTerm> terms;
        for (auto group = by_depth.begin(); group != std::prev(by_depth.end()); ++group) {
            if (numbers_freed(group->second, polynomial->polynomial.paths, uses, n) <
                least_gain * result_.values[at(output->value)].size()) {
                late.insert(late.end(), group->second.begin(), group->second.end());
                continue;
            }
            terms.push_back({1.0, {add_part(*polynomial, group->second, output->value)}});
        }
        if (terms.empty()) return result_.nodes.push_back(node);
        terms.push_back({1.0, {add_part(*polynomial, late, output->value)}});
        result_.nodes.emplace_back(elementwise_node(result_.values, terms, output->value));
    }

    /// When the last of the factors is known to a row.
    int depth_of(const Path& path, const std::vector<RowUse>& uses) const {
        int depth = 0;
        for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
            const RowUse& use = uses[at(path.factors[f].operand)];
            if (producer_[at(use.value)] >= 0) depth = std::max(depth, depths_[at(producer_[at(use.value)])] + (use.local ? 0 : 1));
        }
        return depth;
    }

    /// Numbers per row of values that nothing but `paths` of this node needs.
    std::int64_t numbers_freed(const std::vector<Path>& paths, const std::vector<Path>& all, const std::vector<RowUse>& uses, int n) const {
        std::int64_t numbers = 0;
        for (std::size_t o = 0; o < uses.size(); ++o) {
            const RowUse& use = uses[o];
            if (use.output || !use.local || producer_[at(use.value)] < 0) continue;
            const auto reads = [&](const Path& path) {
                return std::any_of(path.factors.begin(), std::prev(path.factors.end()),
                                   [&](const Factor& factor) { return uses[at(factor.operand)].value == use.value; });
            };
            if (std::ranges::any_of(uses.begin(), uses.begin() + static_cast<std::ptrdiff_t>(o),
                                    [&](const RowUse& before) { return before.value == use.value; }))
                continue;
            const bool only_here = std::ranges::all_of(readers_.at(use.value), [&](int reader) { return reader == n; }) &&
                                   std::ranges::find(result_.outputs, use.value) == result_.outputs.end();
            if (only_here && std::ranges::count_if(all, reads) == std::ranges::count_if(paths, reads) && std::ranges::any_of(paths, reads))
                numbers += result_.values[at(use.value)].size();
        }
        return numbers;
    }

    int add_part(const PolynomialNode& node, const std::vector<Path>& paths, int output) {
        Value value = result_.values[at(output)];
        const std::string stem = value.name + "_part";
        value.name = stem;
        for (int i = 2; !names_.insert(value.name).second; ++i) value.name = stem + std::to_string(i);
        result_.values.push_back(std::move(value));
        const int part = static_cast<int>(result_.values.size()) - 1;
        Polynomial polynomial = node.polynomial;
        polynomial.paths = paths;
        OperandSelection selection = drop_unused(polynomial);
        PolynomialNode added{std::move(selection.polynomial), {}};
        for (const int operand : selection.kept) {
            const int argument = node.arguments[at(operand)];
            added.arguments.push_back(argument == output ? part : argument);
        }
        result_.nodes.emplace_back(std::move(added));
        return part;
    }

    Program result_;
    std::vector<int> depths_;    ///< of the nodes given
    std::vector<int> producer_;  ///< node of every value given
    std::map<int, std::vector<int>> readers_;
    std::set<std::string> names_;
};

}  // namespace

Program with_partial_sums(const Program& program) { return PartialSums(program).run(); }

}  // namespace clebsch
