#include "schedule/gpu_program.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "schedule/program_groups.hpp"
#include "schedule/program_order.hpp"

namespace clebsch {
namespace {

/// Longer tapes take the compiler long, and registers run out.
constexpr std::int64_t most_work = 2048;

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// Whether the coefficients of a path do nothing but multiply component by component, by one number; the number.
std::optional<double> one_number(const Polynomial& polynomial, const Path& path) {
    const Factor& output = path.output();
    const Segment& segment = polynomial.operands[at(output.operand)].segments[at(output.segment)];
    const std::vector<CoefficientEntry> entries = reduced_entries(path);
    if (static_cast<int>(entries.size()) != segment.components) return std::nullopt;
    std::vector<bool> met(static_cast<std::size_t>(segment.components), false);
    for (const CoefficientEntry& entry : entries) {
        const int component = entry.index.back();
        if (met[at(component)] || entry.value != entries.front().value) return std::nullopt;
        met[at(component)] = true;
        for (std::size_t f = 0; f < path.factors.size(); ++f)
            if (entry.index[f] != component) return std::nullopt;
    }
    return entries.front().value;
}

/// A product of operands with a number in front.
struct Product {
    double scale = 0;
    std::vector<int> factors;
    friend bool operator==(const Product&, const Product&) = default;
    auto key() const { return std::tie(factors, scale); }
};

std::optional<Node> of_polynomial(const Program& program, const PolynomialNode& node, std::int64_t& numbers) {
    const Polynomial& polynomial = node.polynomial;
    if (polynomial.operands.empty() || polynomial.rows.empty()) return std::nullopt;
    const Operand& first = polynomial.operands.front();
    for (const Operand& operand : polynomial.operands) {
        if (operand.rows.kind == Addressing::Kind::indexed || operand.segments != first.segments || operand.layout != first.layout)
            return std::nullopt;
        if (operand.role == Role::output && operand.rows.kind != Addressing::Kind::each) return std::nullopt;
    }
    // The same products into every segment of every output.
    std::map<int, std::vector<std::vector<Product>>> products;  // by output, segment
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o)
        if (polynomial.operands[o].role == Role::output) products[static_cast<int>(o)].resize(first.segments.size());
    for (const Path& path : polynomial.paths) {
        const Factor& output = path.output();
        for (const Factor& factor : path.factors)
            if (factor.segment != output.segment || factor.channels != output.channels) return std::nullopt;
        const std::optional<double> scale = one_number(polynomial, path);
        if (!restrictions(path).empty() || !scale) return std::nullopt;
        Product product{*scale, {}};
        for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) product.factors.push_back(path.factors[f].operand);
        std::ranges::sort(product.factors);
        products.at(output.operand)[at(output.segment)].push_back(std::move(product));
    }
    PolynomialNode narrow;
    narrow.arguments = node.arguments;
    narrow.polynomial.rows = polynomial.rows;
    for (const Operand& operand : polynomial.operands)
        narrow.polynomial.operands.push_back({operand.name, {{1, 1, {}}}, Layout::mul_ir, operand.role, operand.rows});
    for (auto& [output, by_segment] : products) {
        const std::vector<Product>* all = nullptr;
        for (std::size_t s = 0; s < by_segment.size(); ++s) {
            if (first.segments[s].size() == 0) continue;
            std::ranges::sort(by_segment[s], {}, &Product::key);
            if (all != nullptr && *all != by_segment[s]) return std::nullopt;
            all = &by_segment[s];
        }
        if (all == nullptr) return std::nullopt;
        for (const Product& product : *all) {
            Path path;
            path.scale = product.scale;
            for (const int factor : product.factors) path.factors.push_back({factor, 0, "", -1});
            path.factors.push_back({output, 0, "", -1});
            narrow.polynomial.paths.push_back(std::move(path));
        }
    }
    for (const int value : node.arguments)
        if (program.values[at(value)].size() != first.size()) return std::nullopt;
    numbers = first.size();
    return narrow;
}

/// The program with values of one number, for tapes that go number by number.
Program narrow_program(const Program& program) {
    Program narrow;
    narrow.indices = program.indices;
    narrow.values = program.values;
    for (Value& value : narrow.values) value.segments = {{1, 1, {}}};
    return narrow;
}

class Order {
 public:
    Order(const Program& program, const std::vector<int>& nodes) : program_(program), ready_(program.values.size(), true) {
        for (const int n : nodes) {
            const Node& node = program.nodes[at(n)];
            if (const auto* function = std::get_if<FunctionNode>(&node);
                function != nullptr && program.values[at(function->input)].size() == 0)
                continue;  // of no numbers
            Member member{.node = n, .inputs = values_of(node, Role::input)};
            if (const std::optional<std::int64_t> work = lanes_work(program, node); work && *work <= most_work) {
                member.width = 1;
                member.work = *work;
            } else if (std::int64_t numbers = 0; number_by_number(program, node, numbers)) {
                member.width = numbers;
            }
            members_.push_back(std::move(member));
            for (const int value : values_of(node, Role::output)) ready_[at(value)] = false;
        }
    }

    std::vector<GpuProgramStep> run() {
        for (std::size_t left = members_.size(); left > 0;) {
            steps_.push_back(next());
            left -= steps_.back().nodes.size();
        }
        find_stored();
        return std::move(steps_);
    }

 private:
    struct Member {
        int node = 0;
        std::vector<int> inputs;
        std::int64_t width = 0, work = 1;
        bool done = false;
    };

    bool can_run(const Member& member) const {
        return !member.done && std::ranges::all_of(member.inputs, [&](int value) { return ready_[at(value)]; });
    }

    /// Everything of the first member's kind that can run by then, tapes first.
    GpuProgramStep next() {
        const Member* first = nullptr;
        for (const Member& member : members_) {
            if (!can_run(member)) continue;
            if (first == nullptr || (first->width == 0 && member.width != 0)) first = &member;
            if (first->width != 0) break;
        }
        if (first == nullptr) fail("internal: nodes of a program wait for one another");
        GpuProgramStep step{.nodes = {}, .stored = {}, .width = first->width};
        std::int64_t work = 0;
        for (bool found = true; found;) {
            found = false;
            for (Member& member : members_) {
                if (member.width != step.width || !can_run(member)) continue;
                if (!step.nodes.empty() && (step.width == 0 || work + member.work > most_work)) continue;
                work += member.work;
                step.nodes.push_back(member.node);
                member.done = true;
                for (const int value : values_of(program_.nodes[at(member.node)], Role::output)) ready_[at(value)] = true;
                found = true;
            }
        }
        return step;
    }

    void find_stored() {
        std::vector<int> step_of(program_.nodes.size(), -1);
        for (std::size_t s = 0; s < steps_.size(); ++s)
            for (const int n : steps_[s].nodes) step_of[at(n)] = static_cast<int>(s);
        std::vector<std::vector<int>> readers(program_.values.size());  // steps; -1: elsewhere
        for (const int value : program_.outputs) readers[at(value)].push_back(-1);
        for (std::size_t n = 0; n < program_.nodes.size(); ++n)
            for (const int value : values_of(program_.nodes[n], Role::input)) readers[at(value)].push_back(step_of[n]);
        for (std::size_t s = 0; s < steps_.size(); ++s) {
            if (steps_[s].width == 0) continue;
            for (const int n : steps_[s].nodes)
                for (const int value : values_of(program_.nodes[at(n)], Role::output))
                    if (std::ranges::any_of(readers[at(value)], [&](int reader) { return reader != static_cast<int>(s); }))
                        steps_[s].stored.push_back(value);
        }
    }

    const Program& program_;
    std::vector<Member> members_;
    std::vector<bool> ready_;
    std::vector<GpuProgramStep> steps_;
};

}  // namespace

std::optional<Node> number_by_number(const Program& program, const Node& node, std::int64_t& numbers) {
    if (const auto* function = std::get_if<FunctionNode>(&node)) {
        numbers = program.values[at(function->input)].size();
        return numbers > 0 ? std::optional<Node>(node) : std::nullopt;
    }
    return of_polynomial(program, std::get<PolynomialNode>(node), numbers);
}

std::vector<GpuProgramStep> gpu_steps(const Program& program, const std::vector<int>& nodes) { return Order(program, nodes).run(); }

namespace {

/// A row's work beyond which a polynomial deserves a kernel made for it.
constexpr double most_work_in_chain = 8192;

bool can_be_chained(const Program& program, const GpuProgramStep& step) {
    if (step.width != 0) return true;
    const Node& node = program.nodes[at(step.nodes[0])];
    const Polynomial& polynomial = std::get<PolynomialNode>(node).polynomial;
    if (polynomial.rows.empty() || work_per_row(program, node) > most_work_in_chain) return false;
    return std::ranges::all_of(polynomial.operands, [](const Operand& operand) {
        return operand.rows.kind == Addressing::Kind::each ||
               (operand.role == Role::input && operand.rows.kind == Addressing::Kind::shared);
    });
}

}  // namespace

std::vector<std::vector<std::size_t>> step_chains(const Program& program, const std::vector<GpuProgramStep>& steps,
                                                  const std::vector<bool>& alone) {
    const auto space = [&](std::size_t s) { return space_of(program, program.nodes[at(steps[s].nodes[0])]); };
    const auto words = [&](const GpuProgramStep& step) {
        std::size_t values = step.stored.size();
        for (const int node : step.nodes) values += values_of(program.nodes[at(node)], Role::input).size();
        if (step.width == 0) values += values_of(program.nodes[at(step.nodes[0])], Role::output).size();
        return 2 * values + 3;
    };
    constexpr std::size_t most_words = 500;  // of a kernel's arguments
    std::vector<std::vector<std::size_t>> chains;
    std::size_t sum = most_words;  // of the chain that is open
    for (std::size_t s = 0; s < steps.size(); ++s) {
        const bool links = !alone[s] && can_be_chained(program, steps[s]);
        if (!links) {
            chains.push_back({s});
            sum = most_words;
        } else if (sum + words(steps[s]) <= most_words && space(chains.back().back()) == space(s)) {
            chains.back().push_back(s);
            sum += words(steps[s]);
        } else {
            chains.push_back({s});
            sum = words(steps[s]);
        }
    }
    return chains;
}

std::int64_t chain_rows(const Program& program, const std::vector<const GpuProgramStep*>& chain) {
    std::int64_t widest = 1;
    for (const GpuProgramStep* step : chain) {
        std::int64_t numbers = step->width;
        if (step->width == 0)
            for (const int value : values_of(program.nodes[at(step->nodes[0])], Role::output)) numbers += program.values[at(value)].size();
        widest = std::max(widest, numbers);
    }
    constexpr std::int64_t numbers_of_block = 256;
    return std::max<std::int64_t>(1, numbers_of_block / widest);
}

LanesCode tape_of(const Program& program, const GpuProgramStep& step) {
    std::vector<const Node*> nodes;
    if (step.width == 1) {
        for (const int n : step.nodes) nodes.push_back(&program.nodes[at(n)]);
        return LanesCode(program, nodes, step.stored);
    }
    const Program narrow = narrow_program(program);
    std::vector<Node> changed;
    for (const int n : step.nodes) {
        std::int64_t numbers = 0;
        changed.push_back(*number_by_number(program, program.nodes[at(n)], numbers));
    }
    for (const Node& node : changed) nodes.push_back(&node);
    return LanesCode(narrow, nodes, step.stored);
}

}  // namespace clebsch
