#include "schedule/lanes_expressions.hpp"

#include <algorithm>
#include <unordered_map>

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// Calls f(values of the letters) for every combination that the path's restrictions allow.
template <class F>
void each_combination(const Path& path, F f) {
    const std::vector<ChannelGroup> pairs = restrictions(path);
    std::vector<std::int64_t> value(26, 0);
    const std::size_t letters = path.extents.size();
    for (const auto& [letter, extent] : path.extents)
        if (extent == 0) return;
    while (true) {
        const auto of = [&](char letter) { return value[static_cast<std::size_t>(letter - 'a')]; };
        if (std::ranges::all_of(pairs, [&](const ChannelGroup& pair) { return of(pair.first) < of(pair.second); })) f(value);
        std::size_t k = 0;
        for (; k < letters; ++k) {
            std::int64_t& v = value[static_cast<std::size_t>(path.extents[k].first - 'a')];
            if (++v < path.extents[k].second) break;
            v = 0;
        }
        if (k == letters) return;
    }
}

std::int64_t channel_of(const std::vector<ChannelGroup>& groups, const Path& path, const std::vector<std::int64_t>& value) {
    std::int64_t channel = 0;
    for (const ChannelGroup& group : groups) {
        const std::int64_t n = path.extent(group.first), u = value[static_cast<std::size_t>(group.first - 'a')];
        if (group.restricted()) {
            const std::int64_t v = value[static_cast<std::size_t>(group.second - 'a')];
            channel = channel * (n * (n - 1) / 2) + u * n - u * (u + 1) / 2 + v - u - 1;
        } else {
            channel = channel * n + u;
        }
    }
    return channel;
}

std::int64_t position_in_row(const Operand& operand, int segment, std::int64_t channel, std::int64_t component) {
    const Segment& s = operand.segments[at(segment)];
    return operand.offset(segment) +
           (operand.layout == Layout::mul_ir ? channel * s.components + component : component * s.multiplicity + channel);
}

}  // namespace

LanesSize lanes_size(const Polynomial& polynomial) {
    LanesSize size{true, 0};
    for (const Operand& operand : polynomial.operands) {
        const bool output = operand.role == Role::output;
        if (operand.rows.kind == Addressing::Kind::indexed || (output && operand.rows.kind == Addressing::Kind::shared))
            size.possible = false;
        if (operand.size() > 512) size.possible = false;
    }
    if (!size.possible) return size;
    for (const Path& path : polynomial.paths) {
        std::int64_t combinations = 1;
        for (const auto& [letter, extent] : path.extents)
            if (__builtin_mul_overflow(combinations, extent, &combinations) || combinations > 16) return {false, 0};
        size.terms += combinations * static_cast<std::int64_t>(reduced_entries(path).size());
        if (size.terms > 8192) return {false, size.terms};
    }
    return size;
}

int LanesExpressions::load(int value, std::int64_t position) {
    const auto [known, is_new] = loads_.try_emplace({value, position}, static_cast<int>(expressions_.size()));
    if (is_new) {
        Expression expression;
        expression.value = value;
        expression.position = position;
        expressions_.push_back(std::move(expression));
    }
    return known->second;
}

int LanesExpressions::product(int a, int b) {
    if (a > b) std::swap(a, b);
    const auto [known, is_new] = products_.try_emplace({a, b}, static_cast<int>(expressions_.size()));
    if (is_new) {
        Expression expression;
        expression.kind = Kind::product;
        expression.a = a;
        expression.b = b;
        expressions_.push_back(std::move(expression));
    }
    return known->second;
}

int LanesExpressions::function(const Function& function, int a) {
    const auto [known, is_new] =
        functions_.try_emplace({static_cast<int>(function.kind), function.parameter, a}, static_cast<int>(expressions_.size()));
    if (is_new) {
        Expression expression;
        expression.kind = Kind::function;
        expression.function = function;
        expression.a = a;
        expressions_.push_back(std::move(expression));
    }
    return known->second;
}

int LanesExpressions::sum(double constant, std::vector<Term> terms) {
    std::ranges::sort(terms, {}, &Term::factors);
    std::vector<Term> merged;
    for (Term& term : terms) {
        if (!merged.empty() && merged.back().factors == term.factors) merged.back().coefficient += term.coefficient;
        else merged.push_back(std::move(term));
    }
    std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
    if (constant == 0 && merged.size() == 1 && merged[0].coefficient == 1 && merged[0].factors.size() == 1) return merged[0].factors[0];
    const auto [known, is_new] = sums_.try_emplace({constant, merged}, static_cast<int>(expressions_.size()));
    if (is_new) {
        Expression expression;
        expression.kind = Kind::sum;
        expression.constant = constant;
        expression.terms = std::move(merged);
        expressions_.push_back(std::move(expression));
    }
    return known->second;
}

const std::vector<int>& LanesExpressions::of_value(const Program& program, int value) {
    const auto known = values_.find(value);
    if (known != values_.end()) return known->second;
    std::vector<int> numbers;
    for (std::int64_t i = 0; i < program.values[at(value)].size(); ++i) numbers.push_back(load(value, i));
    return values_.emplace(value, std::move(numbers)).first->second;
}

void LanesExpressions::add(const Program& program, const Node& node) {
    if (const auto* unary = std::get_if<FunctionNode>(&node)) {
        std::vector<int> results;
        for (const int x : of_value(program, unary->input)) results.push_back(function(unary->function, x));
        values_[unary->output] = std::move(results);
        written_[unary->output] = true;
        return;
    }
    const Polynomial& polynomial = std::get<PolynomialNode>(node).polynomial;
    const std::vector<int>& arguments = std::get<PolynomialNode>(node).arguments;
    struct Sum {
        double constant = 0;
        std::vector<Term> terms;
    };
    std::map<int, std::vector<Sum>> results;  // by operand
    for (std::size_t o = 0; o < arguments.size(); ++o)
        if (polynomial.operands[o].role == Role::output)
            results[static_cast<int>(o)].resize(static_cast<std::size_t>(polynomial.operands[o].size()));
    for (const Path& path : polynomial.paths) {
        const std::vector<CoefficientEntry> entries = reduced_entries(path);
        std::vector<std::vector<ChannelGroup>> groups;
        std::vector<const std::vector<int>*> numbers;
        for (const Factor& factor : path.factors) groups.push_back(parse_channels(factor.channels));
        for (std::size_t f = 0; f + 1 < path.factors.size(); ++f)
            numbers.push_back(&of_value(program, arguments[at(path.factors[f].operand)]));
        each_combination(path, [&](const std::vector<std::int64_t>& letters) {
            std::vector<std::int64_t> channels;
            channels.reserve(groups.size());
            for (const auto& group : groups) channels.push_back(channel_of(group, path, letters));
            for (const CoefficientEntry& entry : entries) {
                const auto place = [&](std::size_t f) {
                    const Factor& factor = path.factors[f];
                    return static_cast<std::size_t>(
                        position_in_row(polynomial.operands[at(factor.operand)], factor.segment, channels[f], entry.index[f]));
                };
                const std::size_t output = path.factors.size() - 1;
                Sum& sum = results.at(path.factors[output].operand)[place(output)];
                Term term{entry.value, {}};
                for (std::size_t f = 0; f < output; ++f) term.factors.push_back((*numbers[f])[place(f)]);
                std::ranges::sort(term.factors);
                if (term.factors.empty()) sum.constant += entry.value;
                else sum.terms.push_back(std::move(term));
            }
        });
    }
    for (auto& [operand, sums] : results) {
        std::vector<int> numbers;
        for (Sum& s : sums) numbers.push_back(sum(s.constant, std::move(s.terms)));
        values_[arguments[at(operand)]] = std::move(numbers);
        written_[arguments[at(operand)]] = true;
    }
}

void LanesExpressions::reduce(const std::vector<int>& roots) {
    std::vector<bool> seen(expressions_.size(), false);
    std::vector<int> stack = roots, sums;
    while (!stack.empty()) {
        const int e = stack.back();
        stack.pop_back();
        if (seen[at(e)]) continue;
        seen[at(e)] = true;
        const Expression& expression = expressions_[at(e)];
        if (expression.a >= 0) stack.push_back(expression.a);
        if (expression.kind != Kind::sum) continue;
        sums.push_back(e);
        for (const Term& term : expression.terms) stack.insert(stack.end(), term.factors.begin(), term.factors.end());
    }
    std::ranges::sort(sums);
    split_long_terms(sums);
    share_products(sums);
}

/// Takes the pair of factors that is most frequent among all terms out of every long term, until none has more than two.
void LanesExpressions::split_long_terms(const std::vector<int>& sums) {
    const auto key = [](int a, int b) { return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b); };
    while (true) {
        std::unordered_map<std::uint64_t, int> count;
        bool any = false;
        for (const int s : sums) {
            for (const Term& term : expressions_[at(s)].terms) {
                any = any || term.factors.size() > 2;
                for (std::size_t i = 0; i < term.factors.size(); ++i)
                    for (std::size_t k = i + 1; k < term.factors.size(); ++k) ++count[key(term.factors[i], term.factors[k])];
            }
        }
        if (!any) return;
        for (const int s : sums) {
            for (std::size_t t = 0; t < expressions_[at(s)].terms.size(); ++t) {
                std::vector<int> factors = expressions_[at(s)].terms[t].factors;
                if (factors.size() <= 2) continue;
                std::size_t first = 0, second = 1;
                int best = -1;
                for (std::size_t i = 0; i < factors.size(); ++i)
                    for (std::size_t k = i + 1; k < factors.size(); ++k)
                        if (const int n = count.at(key(factors[i], factors[k])); n > best) best = n, first = i, second = k;
                const int pair = product(factors[first], factors[second]);  // moves expressions_
                factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(second));
                factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(first));
                factors.insert(std::ranges::upper_bound(factors, pair), pair);
                expressions_[at(s)].terms[t].factors = std::move(factors);
            }
        }
    }
}

void LanesExpressions::share_products(const std::vector<int>& sums) {
    std::map<std::pair<int, int>, int> uses;
    for (const int s : sums)
        for (const Term& term : expressions_[at(s)].terms)
            if (term.factors.size() == 2) ++uses[{term.factors[0], term.factors[1]}];
    for (const int s : sums) {
        std::vector<Term> terms = expressions_[at(s)].terms;
        // Either products are computed once for all sums (each costs this sum 1.75 / uses), or terms are grouped by a common factor (2 a
        // group).
        std::vector<Term> pairs, rest;
        for (Term& term : terms) (term.factors.size() == 2 ? pairs : rest).push_back(std::move(term));
        double sharing = 0;
        for (const Term& term : pairs) sharing += 1.75 / uses.at({term.factors[0], term.factors[1]});
        std::vector<std::pair<int, std::vector<Term>>> groups;
        std::vector<Term> left = pairs;
        while (!left.empty()) {
            std::map<int, int> frequency;
            for (const Term& term : left)
                for (const int f : {term.factors[0], term.factors[1]}) ++frequency[f];
            const int common = std::ranges::max_element(frequency, {}, [](const auto& item) { return item.second; })->first;
            std::vector<Term> group;
            for (const Term& term : left)
                if (term.factors[0] == common || term.factors[1] == common) group.push_back(term);
            std::erase_if(left, [&](const Term& term) { return term.factors[0] == common || term.factors[1] == common; });
            groups.emplace_back(common, std::move(group));
        }
        double grouping = 0;
        for (const auto& [common, group] : groups) grouping += group.size() > 1 ? 2.0 : 1.0;
        if (grouping < sharing) {
            for (auto& [common, group] : groups) {
                if (group.size() == 1) {
                    rest.push_back(std::move(group[0]));
                    continue;
                }
                std::vector<Term> inner;
                for (const Term& term : group)
                    inner.push_back({term.coefficient, {term.factors[0] == common ? term.factors[1] : term.factors[0]}});
                std::vector<int> factors = {common, sum(0, std::move(inner))};
                std::ranges::sort(factors);
                rest.push_back({1.0, std::move(factors)});
            }
        } else {
            for (Term& term : pairs) {
                if (uses.at({term.factors[0], term.factors[1]}) > 1) term.factors = {product(term.factors[0], term.factors[1])};
                rest.push_back(std::move(term));
            }
        }
        expressions_[at(s)].terms = std::move(rest);
    }
}

}  // namespace clebsch
