// Channel-wise polynomials as straight-line work: monomials, sums of them, products of both. The terms of equal factors (say x x w -> out)
// form a matrix: its rows are the monomials of some operands with the output they go to, its columns the monomials of the others. A row's
// sum over columns is computed once however many rows are multiples of it, then multiplied by the row's monomial and added to the output.
// Which operands make rows and which columns is chosen by counting.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/error.hpp"
#include "run/kernels/terms.hpp"
#include "schedule/kernel.hpp"

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

/// One number per row (and channel): a component of a segment.
struct Variable {
    int operand = 0, segment = 0, component = 0;
    bool per_channel = true;

    friend auto operator<=>(const Variable&, const Variable&) = default;
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
    std::vector<Variable> variables, outputs;
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
    std::map<Variable, int> inputs_, outputs_;

    int find(std::map<Variable, int>& known, std::vector<Variable>& variables, const Factor& factor, int component) const {
        const Variable variable{factor.operand, factor.segment, component, problem_.channels == 1 || !factor.channels.empty()};
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
        for (const Variable& variable : problem.variables) {
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

    // What the packed form is made of.
    struct ProductTerm {
        int a = 0, b = -1;
        double coefficient = 1;
        int scalar = -1;
    };
    const std::vector<ProductTerm>& terms() const { return terms_; }
    const std::vector<TermsStep>& scalar_steps() const { return scalar_steps_; }
    const std::vector<TermsStep>& steps() const { return steps_; }
    const std::vector<std::vector<ProductTerm>>& outputs() const { return outputs_; }
    int tile_inputs() const { return tile_inputs_; }
    int scalar_inputs() const { return scalar_inputs_; }

 private:
    const Problem& problem_;
    Catalogue catalogue_;
    int tile_inputs_ = 0, scalar_inputs_ = 0;
    std::vector<Value> inputs_;
    std::vector<TermsStep> steps_, scalar_steps_;
    std::vector<ProductTerm> terms_;
    std::vector<std::vector<ProductTerm>> outputs_;
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
        std::vector<ProductTerm> terms;
        bool scalars = true;
        for (const auto& [column, coefficient] : row.columns) {
            const Value value = monomial(column);
            scalars = scalars && value.tile < 0 && value.scalar >= 0;
            terms.push_back({.a = value.tile, .coefficient = coefficient, .scalar = value.scalar});
        }
        Value result;
        const int first = static_cast<int>(terms_.size()), end = first + static_cast<int>(terms.size());
        for (ProductTerm& term : terms) {
            if (scalars) term = {.a = term.scalar, .coefficient = term.coefficient};
            else term.a = std::max(term.a, 0);  // slot 0 is one in every channel
            terms_.push_back(term);
        }
        if (scalars) result.scalar = step(scalar_steps_, scalar_inputs_, {.first = first, .second = end});
        else result.tile = step(steps_, tile_inputs_ + 1, {.first = first, .second = end});
        return sums_[key_of(row)] = result;
    }

    void add_to_output(int output, Value a, Value b, double coefficient) {
        ProductTerm term{.a = a.tile, .b = b.tile, .coefficient = coefficient, .scalar = scalar_product(a.scalar, b.scalar)};
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
                const Variable& variable = problem_.variables[static_cast<std::size_t>(number)];
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

/// Owns the arrays a TermsGroup points to.
struct PackedGroup {
    std::vector<TermsPlace> inputs, scalar_inputs;
    std::vector<TermsStep> scalar_steps, steps;
    std::vector<TermsOutput> outputs;
    std::vector<TermsTerm> terms;
    std::vector<double> values;
    std::vector<TermsScaled> scaled;
    std::int64_t channels = 0;

    TermsGroup view() const {
        TermsGroup group;
        group.channels = channels;
        group.inputs = static_cast<int>(inputs.size());
        group.scalar_inputs = static_cast<int>(scalar_inputs.size());
        group.scalar_steps = static_cast<int>(scalar_steps.size());
        group.steps = static_cast<int>(steps.size());
        group.outputs = static_cast<int>(outputs.size());
        group.terms = static_cast<int>(terms.size());
        group.scaled = static_cast<int>(scaled.size());
        group.slots = 1 + group.inputs + group.steps;
        group.scalar_slots = group.scalar_inputs + group.scalar_steps;
        group.sums = static_cast<int>(std::ranges::count(outputs, false, &TermsOutput::per_channel));
        group.input = inputs.data();
        group.scalar_input = scalar_inputs.data();
        group.scalar_step = scalar_steps.data();
        group.step = steps.data();
        group.output = outputs.data();
        group.term = terms.data();
        group.value = values.data();
        group.scale = scaled.data();
        return group;
    }
};

TermsPlace place_of(const Polynomial& polynomial, const Variable& variable) {
    const Operand& operand = polynomial.operands[static_cast<std::size_t>(variable.operand)];
    const std::int64_t channels = operand.segments[static_cast<std::size_t>(variable.segment)].multiplicity;
    return {variable.operand, operand.offset(variable.segment) + variable.component * channels};
}

PackedGroup pack(const Polynomial& polynomial, const Problem& problem, const OverwriteMap& overwritten) {
    Emitter emitter(problem);
    for (const auto& [key, terms] : problem.classes) emitter.add_class(terms);
    PackedGroup packed;
    packed.channels = problem.channels;
    for (const Variable& variable : problem.variables)
        (variable.per_channel ? packed.inputs : packed.scalar_inputs).push_back(place_of(polynomial, variable));
    packed.scalar_steps = emitter.scalar_steps();
    packed.steps = emitter.steps();
    const auto append = [&](const Emitter::ProductTerm& term) {
        if (term.scalar >= 0) packed.scaled.push_back({static_cast<int>(packed.terms.size()), term.scalar});
        packed.terms.push_back({term.a, std::max(term.b, 0)});
        packed.values.push_back(term.coefficient);
    };
    for (const Emitter::ProductTerm& term : emitter.terms()) append(term);
    const auto finish = [&](const Variable& variable, std::vector<Emitter::ProductTerm> terms) {
        const auto kind = [](const Emitter::ProductTerm& term) {
            return term.b < 0 ? 0 : term.coefficient == 1 && term.scalar < 0 ? 1 : 2;
        };
        std::ranges::stable_sort(terms, {}, kind);
        const int first = static_cast<int>(packed.terms.size());
        const auto up_to = [&](int k) {
            return first + static_cast<int>(std::ranges::count_if(terms, [&](const auto& term) { return kind(term) <= k; }));
        };
        const auto o = static_cast<std::size_t>(variable.operand);
        const bool overwrite = o < overwritten.size() && overwritten[o][static_cast<std::size_t>(variable.segment)];
        packed.outputs.push_back({place_of(polynomial, variable), variable.per_channel, overwrite, first, up_to(0), up_to(1), up_to(2)});
        for (const Emitter::ProductTerm& term : terms) append(term);
    };
    for (std::size_t i = 0; i < problem.outputs.size(); ++i) finish(problem.outputs[i], emitter.outputs()[i]);
    // Components of overwritten segments that no term reaches are stored too, as zero.
    for (std::size_t o = 0; o < overwritten.size(); ++o)
        for (std::size_t s = 0; s < overwritten[o].size(); ++s) {
            if (!overwritten[o][s]) continue;
            const auto here = [&](const Variable& v) { return v.operand == static_cast<int>(o) && v.segment == static_cast<int>(s); };
            const auto any = std::ranges::find_if(problem.outputs, here);
            if (any == problem.outputs.end()) continue;  // another group's
            for (int c = 0; c < polynomial.operands[o].segments[s].components; ++c) {
                const Variable variable{static_cast<int>(o), static_cast<int>(s), c, any->per_channel};
                if (std::ranges::find(problem.outputs, variable) == problem.outputs.end()) finish(variable, {});
            }
        }
    return packed;
}

class TermsKernel final : public Kernel {
 public:
    TermsKernel(const KernelRequest& request, const std::vector<Problem>& problems) : isa_(request.isa) {
        find_overwritten(*request.polynomial, problems);
        for (const Problem& problem : problems) {
            paths_.insert(paths_.end(), problem.paths.begin(), problem.paths.end());
            if (problem.channels > 0) packed_.push_back(pack(*request.polynomial, problem, overwritten_));
        }
        std::ranges::sort(paths_);
        for (const PackedGroup& group : packed_) {
            views_.push_back(group.view());
            double work = static_cast<double>(group.terms.size());
            for (const TermsStep& step : group.steps) work += step.product ? 1 : 0;
            estimate_.multiply_adds += work * static_cast<double>(group.channels);
        }
    }

    std::string name() const override { return "terms"; }
    std::string explain() const override {
        std::string text = "channel by channel, " + to_text(isa_);
        for (const PackedGroup& group : packed_) {
            const auto products = std::ranges::count_if(group.steps, [](const TermsStep& step) { return step.product; });
            text += "; " + std::to_string(group.channels) + (group.channels == 1 ? " channel: " : " channels: ") +
                    std::to_string(products) + " products, " + std::to_string(static_cast<std::int64_t>(group.steps.size()) - products) +
                    " shared sums, " + std::to_string(group.terms.size()) + " terms, " + std::to_string(group.scalar_steps.size()) +
                    " scalar steps";
        }
        return text;
    }
    std::vector<int> paths() const override { return paths_; }
    Estimate estimate() const override { return estimate_; }
    OverwriteMap overwritten() const override { return overwritten_; }
    std::size_t scratch_bytes(std::size_t element_size, int) const override {
        std::size_t bytes = 0;
        for (const TermsGroup& group : views_) bytes = std::max(bytes, terms_scratch_bytes(group, element_size));
        return bytes;
    }
    void run(const Block<float>& block) const override { run_as(block); }
    void run(const Block<double>& block) const override { run_as(block); }

 private:
    InstructionSet isa_;
    std::vector<int> paths_;
    Estimate estimate_;
    OverwriteMap overwritten_;
    std::vector<PackedGroup> packed_;
    std::vector<TermsGroup> views_;

    template <class T>
    void run_as(const Block<T>& block) const {
        using Function = void (*)(const TermsGroup&, const Block<T>&);
        const Function function = CLEBSCH_SELECT(Function, isa_, run_terms);
        for (const TermsGroup& group : views_) function(group, block);
    }

    /// Segments of `each` outputs that only one group, and no other kernel, writes.
    void find_overwritten(const Polynomial& polynomial, const std::vector<Problem>& problems) {
        for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
            const Operand& operand = polynomial.operands[o];
            overwritten_.emplace_back(operand.segments.size(), false);
            if (operand.role != Role::output || operand.rows.kind != Addressing::Kind::each) continue;
            for (std::size_t s = 0; s < operand.segments.size(); ++s) {
                const auto writes = [&](int p) {
                    const Factor& output = polynomial.paths[static_cast<std::size_t>(p)].output();
                    return output.operand == static_cast<int>(o) && output.segment == static_cast<int>(s);
                };
                std::ptrdiff_t all = 0, most = 0;
                for (std::size_t p = 0; p < polynomial.paths.size(); ++p) all += writes(static_cast<int>(p));
                for (const Problem& problem : problems) {
                    const auto here = [&](const Variable& v) {
                        return v.operand == static_cast<int>(o) && v.segment == static_cast<int>(s);
                    };
                    if (problem.channels > 0 && std::ranges::any_of(problem.outputs, here))
                        most = std::max(most, std::ranges::count_if(problem.paths, writes));
                }
                overwritten_[o][s] = all > 0 && most == all;
            }
        }
    }
};

}  // namespace

std::size_t terms_scratch_bytes(const TermsGroup& group, std::size_t element_size) {
    constexpr std::size_t line = 64, widest_vector = 64, widest_tile = 8;
    const auto rounded = [](std::size_t bytes) { return (bytes + line - 1) / line * line; };
    const auto count = [](int n) { return static_cast<std::size_t>(n); };
    return rounded(count(group.slots) * sizeof(void*)) + rounded(count(group.scalar_slots) * element_size) +
           rounded(count(group.terms) * element_size) + count(group.sums) * widest_vector +
           (count(group.inputs) + 4) * widest_tile * widest_vector +
           std::max(static_cast<std::size_t>(terms_tile_budget), count(group.steps + 1) * 2 * widest_vector) + line;
}

std::unique_ptr<Kernel> make_terms_kernel(const KernelRequest& request, std::vector<int>& taken) {
    std::map<std::int64_t, ProblemBuilder> builders;  // by channels
    for (const int p : request.paths) {
        const Path& path = request.polynomial->paths[static_cast<std::size_t>(p)];
        const std::optional<char> letter = channel_letter(path);
        if (!letter) continue;
        const std::int64_t channels = *letter == 0 ? 1 : path.extent(*letter);
        builders.try_emplace(channels, *request.polynomial, channels).first->second.add(p);
        taken.push_back(p);
    }
    if (taken.empty()) return nullptr;
    std::vector<Problem> problems;
    problems.reserve(builders.size());
    for (auto& [channels, builder] : builders) problems.push_back(builder.take());
    return std::make_unique<TermsKernel>(request, problems);
}

}  // namespace clebsch
