#include "schedule/lanes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "schedule/lanes_expressions.hpp"

namespace clebsch {
namespace {

using Expression = LanesExpressions::Expression;
using Kind = LanesExpressions::Kind;
using Term = LanesExpressions::Term;

constexpr std::int64_t widest_function = 32;  ///< numbers per row
constexpr std::int64_t most_shared_numbers = 64;
constexpr int chunk = 16;  ///< numbers of a row loaded or stored by one instruction

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// An instruction on expressions, before slots are given out.
struct Instruction {
    LanesOp op = LanesOp::end;
    std::vector<int> results, arguments;  ///< expressions
    int array = -1;                       ///< load, broadcast, store: the value
    std::int64_t position = 0;
    int function = -1;
    bool has_constant = false;
    int linear = 0, scaled = 0, plain = 0;  ///< combine
    std::vector<double> constants;
};

/// Puts expressions in an order in which everything is computed before it is used, a value's products side by side.
class Emitter {
 public:
    Emitter(const Program& program, const LanesExpressions& expressions, std::vector<FunctionCode>& functions)
        : program_(program), expressions_(expressions), functions_(functions), done_(expressions.all().size(), false) {}

    std::vector<Instruction> prologue, body;

    void need(int e) {
        if (done_[at(e)]) return;
        const Expression& expression = expressions_.all()[at(e)];
        switch (expression.kind) {
            case Kind::load:
                return load(e);
            case Kind::product:
                need(expression.a);
                need(expression.b);
                break;
            case Kind::function:
                need(expression.a);
                break;
            case Kind::sum:
                for (const Term& term : expression.terms)
                    for (const int factor : term.factors) need(factor);
                break;
        }
        if (done_[at(e)]) return;
        done_[at(e)] = true;
        body.push_back(instruction(e));
    }

    /// What the sums among `roots` are made of first, so that products follow one another; then the roots.
    void need_all(std::span<const int> roots) {
        for (const int e : roots) {
            const Expression& expression = expressions_.all()[at(e)];
            if (done_[at(e)] || expression.kind != Kind::sum) continue;
            for (const Term& term : expression.terms)
                for (const int factor : term.factors) need(factor);
        }
        for (const int e : roots) need(e);
    }

    void store(int value, std::int64_t position, std::span<const int> numbers) {
        Instruction result;
        result.op = LanesOp::store;
        result.array = value;
        result.position = position;
        result.arguments.assign(numbers.begin(), numbers.end());
        body.push_back(std::move(result));
    }

    /// Expressions in use, so that loads take only what is needed.
    std::set<std::pair<int, std::int64_t>> wanted;  // value, position
    std::map<std::pair<int, std::int64_t>, int> load_of;

 private:
    /// Loads what is wanted of the chunk that e lies in.
    void load(int e) {
        const Expression& expression = expressions_.all()[at(e)];
        const bool shared = program_.values[at(expression.value)].space.empty();
        const std::int64_t end = (expression.position / chunk + 1) * chunk;
        Instruction result;
        result.op = shared ? LanesOp::broadcast : LanesOp::load;
        result.array = expression.value;
        result.position = expression.position / chunk * chunk;
        while (!wanted.contains({expression.value, result.position})) ++result.position;
        for (std::int64_t p = result.position; p < end; ++p) {
            if (!wanted.contains({expression.value, p})) {
                // A run ends here; e is in this one or in a later one.
                if (expression.position < p) break;
                result.results.clear();
                result.position = p + 1;
                continue;
            }
            const int loaded = load_of.at({expression.value, p});
            result.results.push_back(loaded);
        }
        for (const int loaded : result.results) done_[at(loaded)] = true;
        (shared ? prologue : body).push_back(std::move(result));
    }

    Instruction instruction(int e) {
        const Expression& expression = expressions_.all()[at(e)];
        Instruction result;
        result.results = {e};
        if (expression.kind == Kind::product) {
            result.op = LanesOp::products;
            result.arguments = {expression.a, expression.b};
            return result;
        }
        if (expression.kind == Kind::function) {
            result.op = LanesOp::function;
            result.arguments = {expression.a};
            result.function = static_cast<int>(functions_.size());
            functions_.push_back(code_of(expression.function));
            return result;
        }
        result.op = LanesOp::combine;
        result.has_constant = expression.constant != 0;
        if (result.has_constant) result.constants.push_back(expression.constant);
        std::vector<const Term*> scaled, plain;
        for (const Term& term : expression.terms) {
            if (term.factors.size() == 2) {
                (term.coefficient == 1 ? plain : scaled).push_back(&term);
                continue;
            }
            ++result.linear;
            result.arguments.push_back(term.factors[0]);
            result.constants.push_back(term.coefficient);
        }
        for (const Term* term : scaled) {
            result.arguments.insert(result.arguments.end(), term->factors.begin(), term->factors.end());
            result.constants.push_back(term->coefficient);
        }
        for (const Term* term : plain) result.arguments.insert(result.arguments.end(), term->factors.begin(), term->factors.end());
        result.scaled = static_cast<int>(scaled.size());
        result.plain = static_cast<int>(plain.size());
        return result;
    }

    const Program& program_;
    const LanesExpressions& expressions_;
    std::vector<FunctionCode>& functions_;
    std::vector<bool> done_;
};

/// Gives every expression a slot from its first to its last use; the lowest free one first, so that the scratch stays small.
class Slots {
 public:
    int of(int e) const { return slot_.at(e); }
    int count() const { return count_; }

    void take(int e) {
        int slot = count_;
        if (!free_.empty()) {
            slot = *free_.begin();
            free_.erase(free_.begin());
        } else {
            ++count_;
        }
        slot_[e] = slot;
    }
    void release(int e) { free_.insert(slot_.at(e)); }

 private:
    std::map<int, int> slot_;
    std::set<int> free_;
    int count_ = 0;
};

}  // namespace

std::string space_of(const Program& program, const Node& node) {
    if (const auto* function = std::get_if<FunctionNode>(&node)) return program.values[at(function->input)].space;
    return std::get<PolynomialNode>(node).polynomial.rows;
}

std::optional<std::int64_t> lanes_work(const Program& program, const Node& node) {
    if (space_of(program, node).empty()) return std::nullopt;
    if (const auto* function = std::get_if<FunctionNode>(&node)) {
        const std::int64_t numbers = program.values[at(function->input)].size();
        return numbers <= widest_function ? std::optional(numbers) : std::nullopt;
    }
    const Polynomial& polynomial = std::get<PolynomialNode>(node).polynomial;
    std::int64_t shared = 0;
    for (const Operand& operand : polynomial.operands)
        if (operand.rows.kind == Addressing::Kind::shared) shared += operand.size();
    const LanesSize size = lanes_size(polynomial);
    return size.possible && shared <= most_shared_numbers ? std::optional(size.terms) : std::nullopt;
}

LanesCode::LanesCode(const Program& program, std::span<const Node* const> nodes, const std::vector<int>& stored) : stored_(stored) {
    LanesExpressions expressions;
    std::vector<int> written;  // in the order of nodes
    for (const Node* node : nodes) {
        expressions.add(program, *node);
        if (const auto* function = std::get_if<FunctionNode>(node)) {
            written.push_back(function->output);
        } else {
            const auto& [polynomial, arguments] = std::get<PolynomialNode>(*node);
            for (std::size_t i = 0; i < arguments.size(); ++i)
                if (polynomial.operands[i].role == Role::output) written.push_back(arguments[i]);
        }
    }
    std::vector<int> roots;
    const auto is_stored = [&](int value) { return std::ranges::find(stored, value) != stored.end(); };
    for (const int value : written)
        if (is_stored(value))
            roots.insert(roots.end(), expressions.of_value(program, value).begin(), expressions.of_value(program, value).end());
    expressions.reduce(roots);

    // Which expressions are needed at all.
    std::set<int> needed;
    std::vector<int> stack = roots;
    while (!stack.empty()) {
        const int e = stack.back();
        stack.pop_back();
        if (!needed.insert(e).second) continue;
        const Expression& expression = expressions.all()[at(e)];
        for (const int other : {expression.a, expression.b})
            if (other >= 0) stack.push_back(other);
        for (const Term& term : expression.terms) stack.insert(stack.end(), term.factors.begin(), term.factors.end());
    }

    Emitter emitter(program, expressions, functions_);
    for (const int e : needed) {
        const Expression& expression = expressions.all()[at(e)];
        if (expression.kind != Kind::load) continue;
        emitter.wanted.insert({expression.value, expression.position});
        emitter.load_of[{expression.value, expression.position}] = e;
    }
    for (const int value : written) {
        std::vector<int> numbers = expressions.of_value(program, value);
        if (!is_stored(value)) {
            // Links of a chain come before what follows from them, but only as far as something needs them.
            std::erase_if(numbers, [&](int e) { return !needed.contains(e); });
            emitter.need_all(numbers);
            continue;
        }
        for (std::size_t begin = 0; begin < numbers.size(); begin += chunk) {
            const std::span<const int> part =
                std::span<const int>(numbers).subspan(begin, std::min<std::size_t>(chunk, numbers.size() - begin));
            emitter.need_all(part);
            emitter.store(value, static_cast<std::int64_t>(begin), part);
        }
    }

    // Slots: the prologue's stay, others are free after their last use.
    std::map<int, std::size_t> last_use;
    for (std::size_t i = 0; i < emitter.body.size(); ++i) {
        for (const int e : emitter.body[i].results) last_use[e] = i;
        for (const int e : emitter.body[i].arguments) last_use[e] = i;
    }
    Slots slots;
    std::set<int> permanent;
    const auto array_number = [&](int value) {
        const auto known = std::ranges::find(arrays_, value);
        if (known == arrays_.end()) {
            arrays_.push_back(value);
            return static_cast<std::int32_t>(arrays_.size() - 1);
        }
        return static_cast<std::int32_t>(known - arrays_.begin());
    };
    const auto encode_rows = [&](std::vector<std::int32_t>& code, const Instruction& instruction, const std::vector<int>& numbers) {
        code.insert(code.end(), {static_cast<std::int32_t>(instruction.op), array_number(instruction.array),
                                 static_cast<std::int32_t>(instruction.position), static_cast<std::int32_t>(numbers.size())});
        for (const int e : numbers) code.push_back(slots.of(e));
    };
    for (const Instruction& instruction : emitter.prologue) {
        for (const int e : instruction.results) {
            slots.take(e);
            permanent.insert(e);
        }
        encode_rows(prologue_, instruction, instruction.results);
    }
    prologue_.push_back(static_cast<std::int32_t>(LanesOp::end));
    std::size_t products_at = 0;  // where the count of the running products instruction is
    for (std::size_t i = 0; i < emitter.body.size(); ++i) {
        const Instruction& instruction = emitter.body[i];
        std::vector<std::int32_t> sources;
        for (const int e : instruction.arguments) sources.push_back(slots.of(e));
        for (const int e : std::set<int>(instruction.arguments.begin(), instruction.arguments.end()))
            if (last_use.at(e) == i && !permanent.contains(e)) slots.release(e);
        for (const int e : instruction.results) slots.take(e);
        if (instruction.op != LanesOp::products) products_at = 0;
        switch (instruction.op) {
            case LanesOp::load:
                encode_rows(body_, instruction, instruction.results);
                loads_ += static_cast<int>(instruction.results.size());
                break;
            case LanesOp::store:
                body_.insert(body_.end(), {static_cast<std::int32_t>(instruction.op), array_number(instruction.array),
                                           static_cast<std::int32_t>(instruction.position), static_cast<std::int32_t>(sources.size())});
                body_.insert(body_.end(), sources.begin(), sources.end());
                stores_ += static_cast<int>(sources.size());
                break;
            case LanesOp::products:
                if (products_at == 0) {
                    body_.insert(body_.end(), {static_cast<std::int32_t>(instruction.op), 0});
                    products_at = body_.size() - 1;
                }
                ++body_[products_at];
                body_.insert(body_.end(), {slots.of(instruction.results[0]), sources[0], sources[1]});
                estimate_.multiply_adds += 1;
                break;
            case LanesOp::combine:
                body_.insert(body_.end(), {static_cast<std::int32_t>(instruction.op), slots.of(instruction.results[0]),
                                           instruction.has_constant ? 1 : 0, instruction.linear, instruction.scaled, instruction.plain});
                body_.insert(body_.end(), sources.begin(), sources.end());
                estimate_.multiply_adds += instruction.linear + 2 * instruction.scaled + instruction.plain;
                for (const double constant : instruction.constants) {
                    constants_double_.push_back(constant);
                    constants_float_.push_back(static_cast<float>(constant));
                }
                break;
            case LanesOp::function:
                body_.insert(body_.end(), {static_cast<std::int32_t>(instruction.op), instruction.function,
                                           slots.of(instruction.results[0]), sources[0]});
                break;
            case LanesOp::broadcast:
            case LanesOp::end:
                break;
        }
        if (products_at == 0 || body_[products_at] == 1) ++instructions_;
        for (const int e : instruction.results)
            if (last_use.at(e) == i) slots.release(e);  // nothing uses it: a number loaded beside others
    }
    body_.push_back(static_cast<std::int32_t>(LanesOp::end));
    slots_ = slots.count();
    for (const int value : stored) array_number(value);  // values of no numbers too
    estimate_.bytes = 4.0 * (loads_ + stores_);
}

LanesTape LanesCode::tape() const {
    return {prologue_.data(), body_.data(), constants_float_.data(), constants_double_.data(), functions_.data()};
}

std::string LanesCode::explain() const {
    return "lanes: one row per vector lane, " + std::to_string(instructions_) + " instructions, " +
           std::to_string(static_cast<long>(estimate_.multiply_adds)) + " multiply-adds and " + std::to_string(functions_.size()) +
           " functions per row, " + std::to_string(loads_) + " numbers in, " + std::to_string(stores_) + " out, " + std::to_string(slots_) +
           " slots";
}

}  // namespace clebsch
