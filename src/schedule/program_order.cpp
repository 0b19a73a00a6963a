#include "schedule/program_order.hpp"

#include <algorithm>
#include <optional>

#include "schedule/lanes.hpp"

namespace clebsch {
namespace {

/// Longer tapes take long to make, and their slots leave the first-level cache.
constexpr std::int64_t most_work = 16384;

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::vector<int> values_of(const Node& node, Role role) {
    if (const auto* function = std::get_if<FunctionNode>(&node)) return {role == Role::input ? function->input : function->output};
    const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
    std::vector<int> result;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (polynomial.operands[i].role == role) result.push_back(arguments[i]);
    return result;
}

class Order {
 public:
    Order(const Program& program, bool fuse) : program_(program), ready_(program.values.size(), false), done_(program.nodes.size(), false) {
        for (const int input : program.inputs) ready_[at(input)] = true;
        for (const Node& node : program.nodes) work_.push_back(fuse ? lanes_work(program, node) : std::nullopt);
    }

    std::vector<NodeGroup> run() {
        for (std::size_t left = program_.nodes.size(); left > 0;) {
            NodeGroup group = next_group();
            left -= group.nodes.size();
            groups_.push_back(std::move(group));
        }
        for (NodeGroup& group : groups_)
            if (group.lanes) group.stored = needed_outside(group);
        return std::move(groups_);
    }

 private:
    bool can_run(std::size_t node) const {
        if (done_[node]) return false;
        const std::vector<int> inputs = values_of(program_.nodes[node], Role::input);
        return std::ranges::all_of(inputs, [&](int value) { return ready_[at(value)]; });
    }

    void take(NodeGroup& group, std::size_t node) {
        group.nodes.push_back(static_cast<int>(node));
        done_[node] = true;
        for (const int value : values_of(program_.nodes[node], Role::output)) ready_[at(value)] = true;
    }

    NodeGroup next_group() {
        NodeGroup group;
        std::size_t first = program_.nodes.size(), first_suited = first;
        for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
            if (!can_run(n)) continue;
            first = std::min(first, n);
            if (work_[n]) first_suited = std::min(first_suited, n);
        }
        if (first_suited == program_.nodes.size()) {
            take(group, first);
            return group;
        }
        const std::string space = space_of(program_, program_.nodes[first_suited]);
        std::int64_t work = 0;
        for (bool found = true; found;) {
            found = false;
            for (std::size_t n = first_suited; n < program_.nodes.size(); ++n) {
                if (!work_[n] || !can_run(n) || space_of(program_, program_.nodes[n]) != space) continue;
                if (!group.nodes.empty() && work + *work_[n] > most_work) continue;
                work += *work_[n];
                take(group, n);
                found = true;
            }
        }
        group.lanes = group.nodes.size() > 1 || std::holds_alternative<PolynomialNode>(program_.nodes[at(group.nodes[0])]);
        return group;
    }

    std::vector<int> needed_outside(const NodeGroup& group) const {
        std::vector<int> result;
        for (const int n : group.nodes) {
            for (const int value : values_of(program_.nodes[at(n)], Role::output)) {
                bool needed = std::ranges::find(program_.outputs, value) != program_.outputs.end();
                for (std::size_t other = 0; other < program_.nodes.size() && !needed; ++other) {
                    if (std::ranges::find(group.nodes, static_cast<int>(other)) != group.nodes.end()) continue;
                    const std::vector<int> inputs = values_of(program_.nodes[other], Role::input);
                    needed = std::ranges::find(inputs, value) != inputs.end();
                }
                if (needed) result.push_back(value);
            }
        }
        return result;
    }

    const Program& program_;
    std::vector<std::optional<std::int64_t>> work_;  ///< of nodes that suit a tape
    std::vector<bool> ready_, done_;
    std::vector<NodeGroup> groups_;
};

}  // namespace

std::vector<NodeGroup> order_nodes(const Program& program, bool fuse) { return Order(program, fuse).run(); }

}  // namespace clebsch
