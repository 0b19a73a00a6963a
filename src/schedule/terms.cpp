// Channel-wise polynomials as straight-line work: monomials, sums of them, products of both. The terms of equal factors (say x x w -> out)
// form a matrix: its rows are the monomials of some operands with the output they go to, its columns the monomials of the others. A row's
// sum over columns is computed once however many rows are multiples of it, then multiplied by the row's monomial and added to the output.
// Which operands make rows and which columns is chosen by counting.
#include "schedule/terms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace clebsch {
namespace {

using Numbers = std::vector<int>;

struct NumbersHash {
    std::size_t operator()(const Numbers& numbers) const {
        std::size_t hash = numbers.size();
        for (const int n : numbers) hash = (hash ^ static_cast<std::size_t>(n)) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
        return hash;
    }
};

/// coefficient times a product of variables, added to an output variable.
struct Term {
    Numbers variables;  ///< sorted
    int output = 0;
    double coefficient = 0;
};

/// Terms whose factors come from the same operands.
struct TermClass {
    Numbers operands;  ///< one per factor, sorted
    std::vector<Term> terms;
};

/// The polynomial's paths over one number of channels.
struct Problem {
    std::int64_t channels = 0;
    std::vector<TermsVariable> variables, outputs;
    std::map<std::pair<Numbers, int>, TermClass> classes;  ///< by operands and output operand
    std::vector<int> paths;
    double broad = 1;  ///< work of a step per channel in units of a step on scalars
};

/// The one letter of a path, 0 if it has none; nullopt if the path is not channel-wise.
std::optional<char> channel_letter(const Path& path) {
    if (path.extents.size() > 1) return std::nullopt;
    for (const Factor& factor : path.factors)
        if (factor.channels.size() > 1) return std::nullopt;
    return path.extents.empty() ? char{0} : path.extents.front().first;
}

class ProblemBuilder {
 public:
    ProblemBuilder(const Polynomial& polynomial, std::int64_t channels) : polynomial_(polynomial) { problem_.channels = channels; }

    void add(int number) {
        const Path& path = polynomial_.paths[static_cast<std::size_t>(number)];
        problem_.paths.push_back(number);
        Numbers operands;
        for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) operands.push_back(path.factors[f].operand);
        std::ranges::sort(operands);
        TermClass& to = problem_.classes[{operands, path.output().operand}];
        to.operands = operands;
        for (const CoefficientEntry& entry : reduced_entries(path)) {
            Term term;
            for (std::size_t f = 0; f + 1 < path.factors.size(); ++f)
                term.variables.push_back(find(inputs_, problem_.variables, path.factors[f], entry.index[f]));
            std::ranges::sort(term.variables);
            term.output = find(outputs_, problem_.outputs, path.output(), entry.index.back());
            term.coefficient = entry.value;
            to.terms.push_back(std::move(term));
        }
    }

    Problem take() {
        for (auto& [key, one] : problem_.classes) {
            std::ranges::sort(
                one.terms, [](const Term& a, const Term& b) { return std::tie(a.output, a.variables) < std::tie(b.output, b.variables); });
            std::vector<Term> merged;
            for (Term& term : one.terms) {
                if (!merged.empty() && merged.back().output == term.output && merged.back().variables == term.variables)
                    merged.back().coefficient += term.coefficient;
                else merged.push_back(std::move(term));
            }
            // Antisymmetric coefficients of equal factors cancel altogether.
            std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
            one.terms = std::move(merged);
        }
        problem_.broad = std::max(1.0, static_cast<double>(problem_.channels) / 8);
        return std::move(problem_);
    }

 private:
    const Polynomial& polynomial_;
    Problem problem_;
    std::map<TermsVariable, int> inputs_, outputs_;

    int find(std::map<TermsVariable, int>& known, std::vector<TermsVariable>& variables, const Factor& factor, int component) const {
        const TermsVariable variable{factor.operand, factor.segment, component, problem_.channels == 1 || !factor.channels.empty()};
        const auto [place, added] = known.try_emplace(variable, static_cast<int>(variables.size()));
        if (added) variables.push_back(variable);
        return place->second;
    }
};

/// Numbers distinct lists of numbers.
class Catalogue {
 public:
    int number(const Numbers& list) {
        const auto [place, added] = numbers_.try_emplace(list, static_cast<int>(lists_.size()));
        if (added) lists_.push_back(list);
        return place->second;
    }
    const Numbers& list(int number) const { return lists_[static_cast<std::size_t>(number)]; }

 private:
    std::unordered_map<Numbers, int, NumbersHash> numbers_;
    std::vector<Numbers> lists_;
};

/// One row of a class's matrix: output += monomial * ratio * (sum over columns), the sum scaled so that its first coefficient is 1.
struct MatrixRow {
    int output = 0;
    int monomial = 0;  ///< in the catalogue
    double ratio = 1;
    std::vector<std::pair<int, double>> columns;  ///< (monomial, coefficient), sorted
};

/// `in_rows`: bit o: the class's o-th distinct operand belongs to the rows' monomials.
std::vector<MatrixRow> rows_of(const Problem& problem, const TermClass& terms, std::uint32_t in_rows, Catalogue& catalogue) {
    Numbers distinct = terms.operands;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    const auto in_row = [&](int variable) {
        const int operand = problem.variables[static_cast<std::size_t>(variable)].operand;
        return (in_rows >> (std::ranges::lower_bound(distinct, operand) - distinct.begin()) & 1U) != 0;
    };
    std::map<std::pair<int, int>, MatrixRow> rows;
    Numbers row, column;
    for (const Term& term : terms.terms) {
        row.clear();
        column.clear();
        for (const int variable : term.variables) (in_row(variable) ? row : column).push_back(variable);
        const int monomial = catalogue.number(row);
        MatrixRow& to = rows[{term.output, monomial}];
        to.output = term.output;
        to.monomial = monomial;
        to.columns.emplace_back(catalogue.number(column), term.coefficient);
    }
    std::vector<MatrixRow> result;
    for (auto& [key, one] : rows) {
        std::ranges::sort(one.columns);
        one.ratio = one.columns.front().second;
        for (auto& [monomial, coefficient] : one.columns) coefficient /= one.ratio;
        result.push_back(std::move(one));
    }
    return result;
}

/// A row's columns as a key that multiples of one another share: coefficients to 46 bits.
Numbers key_of(const MatrixRow& row) {
    Numbers key;
    for (const auto& [monomial, coefficient] : row.columns) {
        int exponent = 0;
        const auto mantissa = static_cast<std::int64_t>(std::llround(std::frexp(coefficient, &exponent) * 0x1p46));
        key.insert(key.end(), {monomial, exponent, static_cast<int>(mantissa >> 23), static_cast<int>(mantissa & 0x7fffff)});
    }
    return key;
}

/// Where a value is: a slot of tiles and a scalar slot; -1 stands for one.
struct Value {
    int tile = -1, scalar = -1;
};

/// Distinct operands among which rows are chosen; beyond that the polynomial is summed as it is.
constexpr std::size_t most_split = 6;
/// Ways to split are compared on this many terms, those of the first outputs: what suits them suits the others, and the count of a
/// symmetric contraction of high correlation is in the millions.
constexpr std::size_t most_compared = 20'000;

/// Turns matrices into steps. Slots of scalars and tiles beyond the inputs are the steps' results, in order.
class Emitter {
 public:
    explicit Emitter(const Problem& problem) : problem_(problem) {
        for (const TermsVariable& variable : problem.variables) {
            Value value;
            if (variable.per_channel) value.tile = 1 + tile_inputs_++;
            else value.scalar = scalar_inputs_++;
            inputs_.push_back(value);
        }
        outputs_.resize(problem.outputs.size());
    }

    void add_class(const TermClass& terms) {
        if (terms.terms.empty()) return;
        const std::vector<MatrixRow> rows = rows_of(problem_, terms, choose_rows(terms), catalogue_);
        std::unordered_map<Numbers, int, NumbersHash> uses;  // a sum used once and not multiplied needs no place of its own
        for (const MatrixRow& row : rows) ++uses[key_of(row)];
        for (const MatrixRow& row : rows) {
            const bool bare = catalogue_.list(row.monomial).empty();
            if (row.columns.size() == 1 || (bare && uses[key_of(row)] == 1)) {
                for (const auto& [column, coefficient] : row.columns)
                    add_to_output(row.output, monomial(row.monomial), monomial(column), row.ratio * coefficient);
            } else {
                add_to_output(row.output, monomial(row.monomial), sum(row), row.ratio);
            }
        }
    }

    TermsProgram take() {
        return {.channels = problem_.channels,
                .inputs = problem_.variables,
                .outputs = problem_.outputs,
                .scalar_steps = std::move(scalar_steps_),
                .steps = std::move(steps_),
                .terms = std::move(terms_),
                .sums = std::move(outputs_),
                .paths = problem_.paths};
    }

 private:
    const Problem& problem_;
    Catalogue catalogue_;
    int tile_inputs_ = 0, scalar_inputs_ = 0;
    std::vector<Value> inputs_;
    std::vector<TermsStep> steps_, scalar_steps_;
    std::vector<TermsProduct> terms_;
    std::vector<std::vector<TermsProduct>> outputs_;
    std::map<std::pair<int, int>, int> products_, scalar_products_;
    std::unordered_map<Numbers, Value, NumbersHash> sums_;

    int step(std::vector<TermsStep>& steps, int inputs, TermsStep step) const {
        step.destination = inputs + static_cast<int>(steps.size());
        steps.push_back(step);
        return step.destination;
    }
    int tile_product(int a, int b) {
        if (a < 0 || b < 0) return std::max(a, b);
        const auto [place, added] = products_.try_emplace(std::minmax(a, b), 0);
        if (added) place->second = step(steps_, tile_inputs_ + 1, {.product = true, .first = a, .second = b});
        return place->second;
    }
    int scalar_product(int a, int b) {
        if (a < 0 || b < 0) return std::max(a, b);
        const auto [place, added] = scalar_products_.try_emplace(std::minmax(a, b), 0);
        if (added) place->second = step(scalar_steps_, scalar_inputs_, {.product = true, .first = a, .second = b});
        return place->second;
    }

    Value monomial(int number) {
        Value value;
        for (const int variable : catalogue_.list(number)) {
            const Value factor = inputs_[static_cast<std::size_t>(variable)];
            value.tile = tile_product(value.tile, factor.tile);
            value.scalar = scalar_product(value.scalar, factor.scalar);
        }
        return value;
    }

    Value sum(const MatrixRow& row) {
        const auto [place, added] = sums_.try_emplace(key_of(row));
        if (!added) return place->second;
        std::vector<TermsProduct> terms;
        bool scalars = true;
        for (const auto& [column, coefficient] : row.columns) {
            const Value value = monomial(column);
            scalars = scalars && value.tile < 0 && value.scalar >= 0;
            terms.push_back({.a = value.tile, .coefficient = coefficient, .scalar = value.scalar});
        }
        Value result;
        const int first = static_cast<int>(terms_.size()), end = first + static_cast<int>(terms.size());
        for (TermsProduct& term : terms) {
            if (scalars) term = {.a = term.scalar, .coefficient = term.coefficient};
            else term.a = std::max(term.a, 0);  // slot 0 is one in every channel
            terms_.push_back(term);
        }
        if (scalars) result.scalar = step(scalar_steps_, scalar_inputs_, {.first = first, .second = end});
        else result.tile = step(steps_, tile_inputs_ + 1, {.first = first, .second = end});
        return sums_[key_of(row)] = result;
    }

    void add_to_output(int output, Value a, Value b, double coefficient) {
        TermsProduct term{.a = a.tile, .b = b.tile, .coefficient = coefficient, .scalar = scalar_product(a.scalar, b.scalar)};
        if (term.a < 0) std::swap(term.a, term.b);
        term.a = std::max(term.a, 0);
        outputs_[static_cast<std::size_t>(output)].push_back(term);
    }

    /// A class's terms as hashes, so that many ways to split them can be compared quickly.
    struct HashedTerm {
        std::array<std::uint64_t, most_split> part{};  ///< of the variables of each distinct operand
        std::array<std::uint8_t, most_split> tiles{}, scalars{};
        int output = 0;
        double coefficient = 0;
    };

    static std::uint64_t mixed(std::uint64_t hash) {
        hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15ULL;
        return (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9ULL;
    }

    std::vector<HashedTerm> hashed(const TermClass& terms, const Numbers& distinct) const {
        std::vector<HashedTerm> result;
        for (const Term& term : terms.terms) {  // sorted by output
            if (result.size() >= most_compared && term.output != result.back().output) break;
            HashedTerm& to = result.emplace_back();
            to.output = term.output;
            to.coefficient = term.coefficient;
            for (const int number : term.variables) {
                const TermsVariable& variable = problem_.variables[static_cast<std::size_t>(number)];
                const auto o = static_cast<std::size_t>(std::ranges::lower_bound(distinct, variable.operand) - distinct.begin());
                to.part[o] = mixed(to.part[o] + static_cast<std::uint64_t>(number) + 1);
                ++(variable.per_channel ? to.tiles : to.scalars)[o];
            }
        }
        return result;
    }

    /// Work per row of the polynomial, in steps on scalars, if the operands in `in_rows` make the rows.
    double work(const std::vector<HashedTerm>& terms, std::uint32_t in_rows, std::size_t operands) const {
        struct Entry {
            std::uint64_t row = 0, column = 0;
            double coefficient = 0;
            bool scalar = false;
        };
        std::vector<Entry> entries;
        std::vector<std::pair<std::uint64_t, double>> once;  // things computed once: (hash, work)
        entries.reserve(terms.size());
        for (const HashedTerm& term : terms) {
            Entry entry{.coefficient = term.coefficient};
            int row_tiles = 0, row_scalars = 0, column_tiles = 0, column_scalars = 0;
            for (std::size_t o = 0; o < operands; ++o) {
                const bool row = (in_rows >> o & 1U) != 0;
                (row ? entry.row : entry.column) += term.part[o];
                (row ? row_tiles : column_tiles) += term.tiles[o];
                (row ? row_scalars : column_scalars) += term.scalars[o];
            }
            // One product each: the product of all factors but one is mostly another monomial.
            const auto product = [&](int tiles, int scalars) { return (tiles > 1 ? problem_.broad : 0) + (scalars > 1 ? 1 : 0); };
            once.emplace_back(mixed(entry.row + 1), product(row_tiles, row_scalars));
            once.emplace_back(mixed(entry.column + 1), product(column_tiles, column_scalars));
            entry.scalar = column_tiles == 0 && column_scalars > 0;
            entry.row = mixed(entry.row + 2) + static_cast<std::uint64_t>(term.output);
            entries.push_back(entry);
        }
        std::ranges::sort(entries, [](const Entry& a, const Entry& b) { return std::tie(a.row, a.column) < std::tie(b.row, b.column); });
        double total = 0;
        for (std::size_t first = 0; first < entries.size();) {
            std::size_t end = first;
            std::uint64_t sum = 0;
            bool scalar = true;
            for (; end < entries.size() && entries[end].row == entries[first].row; ++end) {
                const auto ratio = static_cast<float>(entries[end].coefficient / entries[first].coefficient);
                sum += mixed(mixed(entries[end].column + 3) + static_cast<std::uint64_t>(std::llround(ratio * 0x1p16F)));
                scalar = scalar && entries[end].scalar;
            }
            if (in_rows == 0) {
                total += static_cast<double>(end - first) * problem_.broad;
            } else {
                total += 1.5 * problem_.broad;
                if (end - first > 1) once.emplace_back(sum, static_cast<double>(end - first) * (scalar ? 1 : problem_.broad));
            }
            first = end;
        }
        std::ranges::sort(once);
        for (std::size_t i = 0; i < once.size(); ++i)
            if (i == 0 || once[i].first != once[i - 1].first) total += once[i].second;
        return total;
    }

    std::uint32_t choose_rows(const TermClass& terms) const {
        Numbers distinct = terms.operands;
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        if (distinct.size() < 2 || distinct.size() > most_split) return 0;
        const std::vector<HashedTerm> hashes = hashed(terms, distinct);
        const std::uint32_t all = (1U << distinct.size()) - 1;
        std::uint32_t best = 0;
        double least = INFINITY;
        for (std::uint32_t mask = 0; mask < all; ++mask) {  // all of them in rows would leave nothing to sum over
            const double cost = work(hashes, mask, distinct.size());
            if (cost < least) {
                least = cost;
                best = mask;
            }
        }
        return best;
    }
};

}  // namespace

std::vector<TermsProgram> schedule_terms(const Polynomial& polynomial, const std::vector<int>& candidates) {
    std::map<std::int64_t, ProblemBuilder> builders;  // by channels
    for (const int p : candidates) {
        const Path& path = polynomial.paths[static_cast<std::size_t>(p)];
        const std::optional<char> letter = channel_letter(path);
        if (!letter) continue;
        const std::int64_t channels = *letter == 0 ? 1 : path.extent(*letter);
        builders.try_emplace(channels, polynomial, channels).first->second.add(p);
    }
    std::vector<TermsProgram> programs;
    for (auto& [channels, builder] : builders) {
        const Problem problem = builder.take();
        Emitter emitter(problem);
        if (channels > 0)
            for (const auto& [key, terms] : problem.classes) emitter.add_class(terms);
        programs.push_back(emitter.take());
    }
    return programs;
}

}  // namespace clebsch
