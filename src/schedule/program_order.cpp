#include "schedule/program_order.hpp"

#include <algorithm>
#include <optional>

#include "schedule/lanes.hpp"

namespace clebsch {
namespace {

/// Longer tapes take long to make, and their slots leave the first-level cache.
constexpr std::int64_t most_work = 16384;

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// Calls `f` with the values a node reads or writes, in the order of its operands.
template <class F>
void for_values(const Node& node, Role role, F f) {
    if (const auto* function = std::get_if<FunctionNode>(&node)) return f(role == Role::input ? function->input : function->output);
    const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (polynomial.operands[i].role == role) f(arguments[i]);
}

class Order {
 public:
    Order(const Program& program, std::span<const int> nodes, bool fuse) : program_(program), ready_(program.values.size(), true) {
        for (const int n : nodes) {
            const Node& node = program.nodes[at(n)];
            members_.push_back({n, fuse ? lanes_work(program, node) : std::nullopt, values_of(node, Role::input)});
            for_values(node, Role::output, [&](int value) { ready_[at(value)] = false; });
        }
    }

    std::vector<NodeGroup> run() {
        for (std::size_t left = members_.size(); left > 0;) {
            NodeGroup group = next_group();
            left -= group.nodes.size();
            groups_.push_back(std::move(group));
        }
        find_stored();
        return std::move(groups_);
    }

 private:
    struct Member {
        int node = 0;
        std::optional<std::int64_t> work;  ///< of nodes that suit a tape
        std::vector<int> inputs;
        bool done = false;
    };

    bool can_run(const Member& member) const {
        return !member.done && std::ranges::all_of(member.inputs, [&](int value) { return ready_[at(value)]; });
    }

    void take(NodeGroup& group, Member& member) {
        group.nodes.push_back(member.node);
        member.done = true;
        for_values(program_.nodes[at(member.node)], Role::output, [&](int value) { ready_[at(value)] = true; });
    }

    NodeGroup next_group() {
        NodeGroup group;
        std::size_t first = members_.size(), first_suited = first;
        for (std::size_t m = 0; m < members_.size(); ++m) {
            if (!can_run(members_[m])) continue;
            first = std::min(first, m);
            if (members_[m].work) first_suited = std::min(first_suited, m);
        }
        if (first_suited == members_.size()) {
            take(group, members_[first]);
            return group;
        }
        const std::string space = space_of(program_, program_.nodes[at(members_[first_suited].node)]);
        std::int64_t work = 0;
        for (bool found = true; found;) {
            found = false;
            for (std::size_t m = first_suited; m < members_.size(); ++m) {
                Member& member = members_[m];
                if (!member.work || !can_run(member) || space_of(program_, program_.nodes[at(member.node)]) != space) continue;
                if (!group.nodes.empty() && work + *member.work > most_work) continue;
                work += *member.work;
                take(group, member);
                found = true;
            }
        }
        group.lanes = group.nodes.size() > 1 || std::holds_alternative<PolynomialNode>(program_.nodes[at(group.nodes[0])]);
        return group;
    }

    void find_stored() {
        std::vector<int> group_of(program_.nodes.size(), -1);
        for (std::size_t g = 0; g < groups_.size(); ++g)
            for (const int n : groups_[g].nodes) group_of[at(n)] = static_cast<int>(g);
        std::vector<int> writer(program_.values.size(), -1);  // groups, -1: elsewhere
        for (std::size_t g = 0; g < groups_.size(); ++g)
            for (const int n : groups_[g].nodes)
                for_values(program_.nodes[at(n)], Role::output, [&](int value) { writer[at(value)] = static_cast<int>(g); });
        std::vector<bool> read_elsewhere(program_.values.size(), false);
        for (const int value : program_.outputs) read_elsewhere[at(value)] = true;
        for (std::size_t n = 0; n < program_.nodes.size(); ++n)
            for_values(program_.nodes[n], Role::input, [&](int value) {
                if (writer[at(value)] != group_of[n]) read_elsewhere[at(value)] = true;
            });
        for (NodeGroup& group : groups_) {
            if (!group.lanes) continue;
            for (const int n : group.nodes)
                for_values(program_.nodes[at(n)], Role::output, [&](int value) {
                    if (read_elsewhere[at(value)]) group.stored.push_back(value);
                });
        }
    }

    const Program& program_;
    std::vector<Member> members_;
    std::vector<bool> ready_;
    std::vector<NodeGroup> groups_;
};

}  // namespace

std::vector<int> values_of(const Node& node, Role role) {
    std::vector<int> result;
    for_values(node, role, [&](int value) { result.push_back(value); });
    return result;
}

std::vector<NodeGroup> order_nodes(const Program& program, std::span<const int> nodes, bool fuse) {
    return Order(program, nodes, fuse).run();
}

}  // namespace clebsch
