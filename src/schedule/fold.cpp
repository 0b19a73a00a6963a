#include "schedule/fold.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"

namespace clebsch {
namespace {

std::pair<int, std::int64_t> key_of(const FoldRows& rows) { return {rows.operand, rows.offset}; }
using FactorKey = std::vector<std::pair<int, std::int64_t>>;

FactorKey key_of(const FoldFactor& factor) {
    FactorKey key;
    for (int n = 0; n < factor.weights; ++n) key.push_back(key_of(factor.weight[n]));
    return key;
}

/// A path seen by this family. `in` is multiplied by the matrix whose rows belong to `side`: the output, or the operand of a dot product;
/// for a channel-free output both are sides of a reduction.
struct Shape {
    std::int64_t channels = 0;
    int in = -1, side = -1;  ///< factor numbers
    bool dot = false, reduce = false;
    std::vector<int> weights;  ///< factor numbers
};

const Segment& segment_of(const Polynomial& polynomial, const Factor& factor) {
    return polynomial.operands[static_cast<std::size_t>(factor.operand)].segments[static_cast<std::size_t>(factor.segment)];
}

using Uses = std::map<std::pair<int, int>, int>;  // paths a segment of an operand is in

Uses uses_of(const Polynomial& polynomial) {
    Uses uses;
    for (const Path& path : polynomial.paths)
        for (const Factor& factor : path.factors) ++uses[{factor.operand, factor.segment}];
    return uses;
}

std::optional<Shape> shape_of(const Polynomial& polynomial, const Path& path, const Uses& uses) {
    Shape shape;
    const int last = static_cast<int>(path.factors.size()) - 1;
    std::string letter;
    std::vector<int> wide, narrow;  // input factors with channels: with several components, with one
    for (int f = 0; f <= last; ++f) {
        const Factor& factor = path.factors[static_cast<std::size_t>(f)];
        if (factor.channels.empty()) continue;
        if (factor.channels.size() != 1 || (!letter.empty() && factor.channels != letter)) return std::nullopt;
        letter = factor.channels;
        if (f < last) (segment_of(polynomial, factor).components > 1 ? wide : narrow).push_back(f);
    }
    if (path.extents.size() != 1 || letter.empty()) return std::nullopt;
    shape.channels = path.extents[0].second;
    if (shape.channels < 1) return std::nullopt;
    const Factor& output = path.output();
    const bool channel_free = output.channels.empty();
    const bool wide_output = !channel_free && segment_of(polynomial, output).components > 1;
    if (wide.size() > (wide_output ? 1U : 2U) || wide.size() + narrow.size() < (channel_free ? 2U : 1U)) return std::nullopt;
    // What is not needed as `in` or `side` is a weight. Among narrow factors those with an axis come first: they are features by their
    // description; then those of few paths, which is how the derivatives of one path come to multiply the same factor.
    std::ranges::stable_sort(narrow, {}, [&](int f) {
        const Factor& factor = path.factors[static_cast<std::size_t>(f)];
        return std::pair{factor.axis < 0, uses.at({factor.operand, factor.segment})};
    });
    std::vector<int> order = wide;
    order.insert(order.end(), narrow.begin(), narrow.end());
    shape.reduce = channel_free;
    shape.dot = !channel_free && wide.size() == 2;
    shape.in = order[0];
    shape.side = shape.reduce || shape.dot ? order[1] : last;
    shape.weights.assign(order.begin() + (shape.reduce || shape.dot ? 2 : 1), order.end());
    if (shape.weights.size() > fold_weights) return std::nullopt;
    return shape;
}

class Scheduler {
 public:
    explicit Scheduler(const Polynomial& polynomial) : polynomial_(polynomial), uses_(uses_of(polynomial)) {}

    FoldProgram schedule(const std::vector<int>& paths) {
        program_.paths = paths;
        count_outputs(paths);
        for (const int p : paths) {
            const Path& path = polynomial_.paths[static_cast<std::size_t>(p)];
            const std::optional<Shape> shape = shape_of(polynomial_, path, uses_);
            if (!shape) fail("schedule_fold: path " + std::to_string(p) + " is not one of this family");
            if (shape->reduce) add_reduction(p, path, *shape);
            else products_.push_back({p, &path, *shape});
        }
        add_products();
        blend_products();
        blend_reductions();
        settle_scales();
        order_steps();
        mark_overwrites();
        return std::move(program_);
    }

 private:
    struct Product {
        int index;
        const Path* path;
        Shape shape;
    };
    struct OrientedMatrix {
        int matrix = 0;
        double scale = 1;  ///< of the path's entries relative to the matrix
    };

    FoldRows rows_of(const Factor& factor) const {
        return {factor.operand, polynomial_.operands[static_cast<std::size_t>(factor.operand)].offset(factor.segment)};
    }
    int components_of(const Factor& factor) const { return segment_of(polynomial_, factor).components; }

    int number(const Factor& factor, int component) {
        const FoldRows rows = rows_of(factor);
        const auto [at, is_new] =
            number_of_.try_emplace({rows.operand, rows.offset + component}, static_cast<int>(program_.numbers.size()));
        if (is_new) program_.numbers.push_back({rows.operand, rows.offset + component, false});
        return at->second;
    }
    int output_number(const Factor& factor, int component) {
        const FoldRows rows = rows_of(factor);
        const auto [at, is_new] =
            output_of_.try_emplace({rows.operand, rows.offset + component}, static_cast<int>(program_.outputs.size()));
        if (is_new) program_.outputs.push_back({rows.operand, rows.offset + component, false});
        return at->second;
    }

    /// The path's coefficients over (component of factor k, component of factor i, channel-free numbers), merged and sorted.
    std::vector<FoldEntry> entries_of(const Path& path, int k, int i) {
        std::vector<FoldEntry> entries;
        const std::size_t last = path.factors.size() - 1;
        for (const CoefficientEntry& entry : reduced_entries(path)) {
            FoldEntry& added = entries.emplace_back();
            added.k = entry.index[static_cast<std::size_t>(k)];
            added.i = entry.index[static_cast<std::size_t>(i)];
            added.value = entry.value;
            for (std::size_t f = 0; f <= last; ++f) {
                if (!path.factors[f].channels.empty()) continue;
                if (f == last) added.target = output_number(path.factors[f], entry.index[f]);
                else added.numbers.push_back(number(path.factors[f], entry.index[f]));
            }
            std::ranges::sort(added.numbers);
        }
        sort_entries(entries);
        std::vector<FoldEntry> merged;
        for (FoldEntry& entry : entries) {
            if (!merged.empty() && place_of(merged.back()) == place_of(entry)) merged.back().value += entry.value;
            else merged.push_back(std::move(entry));
        }
        std::erase_if(merged, [](const FoldEntry& entry) { return entry.value == 0; });
        return merged;
    }
    static std::tuple<int, int, const std::vector<int>&, int> place_of(const FoldEntry& entry) {
        return {entry.k, entry.i, entry.numbers, entry.target};
    }
    static void sort_entries(std::vector<FoldEntry>& entries) {
        std::ranges::stable_sort(entries, {}, [](const FoldEntry& entry) { return place_of(entry); });
    }

    /// Whether the entries are the same for every (k, k) and none lies elsewhere.
    static bool is_diagonal(const std::vector<FoldEntry>& entries, int rows, int columns) {
        if (rows != columns || rows < 2 || entries.empty()) return false;
        std::vector<std::vector<std::tuple<std::vector<int>, int, double>>> at(static_cast<std::size_t>(rows));
        for (const FoldEntry& entry : entries) {
            if (entry.k != entry.i) return false;
            at[static_cast<std::size_t>(entry.k)].emplace_back(entry.numbers, entry.target, entry.value);
        }
        return std::ranges::all_of(at, [&](const auto& terms) { return terms == at[0]; });
    }

    /// Entries up to a common factor: rounded far below float64's needs, far above its noise.
    static std::vector<std::tuple<int, int, std::vector<int>, int, std::int64_t>> shape_key(const std::vector<FoldEntry>& entries) {
        std::vector<std::tuple<int, int, std::vector<int>, int, std::int64_t>> key;
        key.reserve(entries.size());
        for (const FoldEntry& entry : entries)
            key.emplace_back(entry.k, entry.i, entry.numbers, entry.target, std::llround(std::ldexp(entry.value / entries[0].value, 46)));
        return key;
    }

    OrientedMatrix matrix_of(const Path& path, int k, int i) {
        const std::vector<FoldEntry> entries = entries_of(path, k, i);
        const int outputs = components_of(path.factors[static_cast<std::size_t>(k)]),
                  inputs = components_of(path.factors[static_cast<std::size_t>(i)]);
        const auto [at, is_new] = matrix_at_.try_emplace({outputs, inputs, shape_key(entries)}, static_cast<int>(program_.matrices.size()));
        if (is_new) program_.matrices.push_back({outputs, inputs, entries, is_diagonal(entries, outputs, inputs)});
        const FoldMatrixPlan& matrix = program_.matrices[static_cast<std::size_t>(at->second)];
        return {at->second, entries.empty() ? 1.0 : entries[0].value / matrix.entries[0].value};
    }

    FoldFactor factor_of(const Path& path, const Shape& shape, double scale) const {
        std::vector<FoldRows> weights;
        for (const int f : shape.weights) weights.push_back(rows_of(path.factors[static_cast<std::size_t>(f)]));
        std::ranges::sort(weights, {}, [](const FoldRows& rows) { return key_of(rows); });
        FoldFactor factor;
        for (const FoldRows& rows : weights) factor.weight[factor.weights++] = rows;
        factor.scale = scale;
        return factor;
    }

    void add_products() {
        // Plain products first: a dot product then takes the side whose matrix is already multiplied, and shares it.
        for (const Product& product : products_)
            if (!product.shape.dot) add_product(product, product.shape.side, product.shape.in);
        for (const Product& product : products_) {
            if (!product.shape.dot) continue;
            const Path& path = *product.path;
            const auto multiplied = [&](int k, int i) {
                const auto key = std::tuple{components_of(path.factors[static_cast<std::size_t>(k)]),
                                            components_of(path.factors[static_cast<std::size_t>(i)]), shape_key(entries_of(path, k, i))};
                const auto matrix = matrix_at_.find(key);
                return matrix != matrix_at_.end() &&
                       multiply_at_.contains(
                           {matrix->second, key_of(rows_of(path.factors[static_cast<std::size_t>(i)])), product.shape.channels});
            };
            if (!multiplied(product.shape.side, product.shape.in) && multiplied(product.shape.in, product.shape.side))
                add_product(product, product.shape.in, product.shape.side);
            else add_product(product, product.shape.side, product.shape.in);
        }
    }

    void add_product(const Product& product, int k, int i) {
        const Path& path = *product.path;
        const OrientedMatrix oriented = matrix_of(path, k, i);
        const FoldRows in = rows_of(path.factors[static_cast<std::size_t>(i)]);
        const auto [at, is_new] =
            multiply_at_.try_emplace({oriented.matrix, key_of(in), product.shape.channels}, static_cast<int>(program_.multiplies.size()));
        if (is_new) program_.multiplies.push_back({oriented.matrix, 0, product.shape.channels, in, {}, {}});
        FoldMultiplyPlan& multiply = program_.multiplies[static_cast<std::size_t>(at->second)];
        multiply.paths.push_back(product.index);
        FoldSink sink;
        sink.dot = product.shape.dot;
        sink.factor = factor_of(path, product.shape, oriented.scale);
        sink.out = rows_of(path.output());
        if (sink.dot) sink.with = rows_of(path.factors[static_cast<std::size_t>(k)]);
        multiply.sinks.push_back(sink);
    }

    void add_reduction(int index, const Path& path, const Shape& shape) {
        FoldReducePlan reduce;
        const int left = shape.side, right = shape.in;
        reduce.left_components = components_of(path.factors[static_cast<std::size_t>(left)]);
        reduce.right_components = components_of(path.factors[static_cast<std::size_t>(right)]);
        reduce.channels = shape.channels;
        reduce.left = rows_of(path.factors[static_cast<std::size_t>(left)]);
        reduce.right = rows_of(path.factors[static_cast<std::size_t>(right)]);
        reduce.factor = factor_of(path, shape, 1.0);
        reduce.entries = entries_of(path, left, right);
        reduce.diagonal = is_diagonal(reduce.entries, reduce.left_components, reduce.right_components);
        reduce.paths = {index};
        program_.reduces.push_back(std::move(reduce));
    }

    /// The rows sum over terms, as an operand; the same terms give the same operand.
    FoldRows blend_of(std::vector<FoldBlendTerm> terms, int components, std::int64_t channels) {
        std::ranges::sort(terms, {}, [](const FoldBlendTerm& term) {
            return std::tuple{key_of(term.row), key_of(term.factor), term.factor.scale};
        });
        std::vector<std::tuple<std::pair<int, std::int64_t>, FactorKey, double>> key;
        key.reserve(terms.size());
        for (const FoldBlendTerm& term : terms) key.emplace_back(key_of(term.row), key_of(term.factor), term.factor.scale);
        const auto [at, is_new] = blend_at_.try_emplace(key, static_cast<int>(program_.blends.size()));
        if (is_new) program_.blends.push_back({components, channels, std::move(terms)});
        return {static_cast<int>(polynomial_.operands.size()) + at->second, 0};
    }

    /// Multiplications by one matrix that end in the same rows become one, of the sum of what they multiply. To make the sum takes as much
    /// as to multiply by a matrix of one row.
    void blend_products() {
        std::map<std::tuple<int, std::pair<int, std::int64_t>, std::int64_t>, std::vector<std::size_t>> groups;
        for (std::size_t m = 0; m < program_.multiplies.size(); ++m) {
            const FoldMultiplyPlan& multiply = program_.multiplies[m];
            if (multiply.sinks.size() == 1 && !multiply.sinks[0].dot)
                groups[{multiply.matrix, key_of(multiply.sinks[0].out), multiply.channels}].push_back(m);
        }
        std::vector<bool> gone(program_.multiplies.size(), false);
        for (const auto& [key, members] : groups) {
            if (members.size() < 2 || program_.matrices[static_cast<std::size_t>(std::get<0>(key))].outputs == 1) continue;
            FoldMultiplyPlan& kept = program_.multiplies[members[0]];
            std::vector<FoldBlendTerm> terms;
            for (const std::size_t m : members) {
                terms.push_back({program_.multiplies[m].sinks[0].factor, program_.multiplies[m].in});
                if (m == members[0]) continue;
                kept.paths.insert(kept.paths.end(), program_.multiplies[m].paths.begin(), program_.multiplies[m].paths.end());
                gone[m] = true;
            }
            kept.in = blend_of(std::move(terms), program_.matrices[static_cast<std::size_t>(kept.matrix)].inputs, kept.channels);
            kept.sinks[0].factor = FoldFactor{};
        }
        std::vector<FoldMultiplyPlan> left;
        for (std::size_t m = 0; m < gone.size(); ++m)
            if (!gone[m]) left.push_back(std::move(program_.multiplies[m]));
        program_.multiplies = std::move(left);
    }

    static FoldReducePlan transposed(FoldReducePlan reduce) {
        std::swap(reduce.left, reduce.right);
        std::swap(reduce.left_components, reduce.right_components);
        for (FoldEntry& entry : reduce.entries) std::swap(entry.k, entry.i);
        sort_entries(reduce.entries);
        return reduce;
    }

    /// Reductions that end in the same sums by the same coefficients become one where they share a side.
    void blend_reductions() {
        std::vector<FoldReducePlan>& reduces = program_.reduces;
        const auto alike = [](const FoldReducePlan& a, const FoldReducePlan& b) {
            return a.channels == b.channels && a.left_components == b.left_components && a.right_components == b.right_components &&
                   key_of(a.left) == key_of(b.left) && a.entries == b.entries;
        };
        for (std::size_t a = 0; a < reduces.size(); ++a) {
            for (int side = 0; side < 2; ++side, reduces[a] = transposed(std::move(reduces[a]))) {
                std::vector<FoldBlendTerm> terms{{reduces[a].factor, reduces[a].right}};
                for (std::size_t b = reduces.size(); --b > a;) {
                    const auto shared = key_of(reduces[a].left);
                    if (reduces[a].entries.size() != reduces[b].entries.size() ||
                        (key_of(reduces[b].left) != shared && key_of(reduces[b].right) != shared))
                        continue;
                    const FoldReducePlan turned = transposed(reduces[b]);
                    const bool same = alike(reduces[a], reduces[b]);
                    if (!same && !alike(reduces[a], turned)) continue;
                    terms.push_back({reduces[b].factor, same ? reduces[b].right : turned.right});
                    reduces[a].paths.insert(reduces[a].paths.end(), turned.paths.begin(), turned.paths.end());
                    reduces.erase(reduces.begin() + static_cast<std::ptrdiff_t>(b));
                }
                if (terms.size() < 2) continue;
                reduces[a].right = blend_of(std::move(terms), reduces[a].right_components, reduces[a].channels);
                reduces[a].factor = FoldFactor{};
            }
        }
    }

    /// Scales go into the entries of matrices, which are few, instead of into channels. Multiplications whose sinks agree on one get a
    /// matrix with it; where sinks of one multiplication differ, they keep theirs.
    void settle_scales() {
        std::map<std::pair<int, double>, int> scaled;
        std::vector<bool> taken(program_.matrices.size(), false);
        for (FoldMultiplyPlan& multiply : program_.multiplies) {
            const double scale = multiply.sinks[0].factor.scale;
            const bool agree = std::ranges::all_of(multiply.sinks, [&](const FoldSink& sink) { return sink.factor.scale == scale; });
            const auto [at, is_new] = scaled.try_emplace({multiply.matrix, agree ? scale : 1.0}, multiply.matrix);
            if (is_new && taken[static_cast<std::size_t>(multiply.matrix)]) {
                at->second = static_cast<int>(program_.matrices.size());
                program_.matrices.push_back(program_.matrices[static_cast<std::size_t>(multiply.matrix)]);
            }
            taken[static_cast<std::size_t>(multiply.matrix)] = true;
            multiply.matrix = at->second;
            if (agree)
                for (FoldSink& sink : multiply.sinks) sink.factor.scale = 1;
        }
        for (const auto& [key, matrix] : scaled)
            for (FoldEntry& entry : program_.matrices[static_cast<std::size_t>(matrix)].entries) entry.value *= key.second;
    }

    void count_outputs(const std::vector<int>& paths) {
        for (const Path& path : polynomial_.paths) ++writers_[key_of(rows_of(path.output()))];
        for (const int p : paths) --writers_[key_of(rows_of(polynomial_.paths[static_cast<std::size_t>(p)].output()))];
    }
    bool only_here(const FoldRows& rows) const {
        return writers_.at(key_of(rows)) == 0 &&
               polynomial_.operands[static_cast<std::size_t>(rows.operand)].rows.kind == Addressing::Kind::each;
    }
    /// Outputs with rows of their own that only this kernel writes: the first step stores, further ones add. Reductions store all at the
    /// end of a block, so rows that steps of both kinds write (a segment with one channel) are added to by all.
    void mark_overwrites() {
        std::set<std::pair<int, std::int64_t>> with_channels, without, written;
        for (const int p : program_.paths) {
            const Factor& output = polynomial_.paths[static_cast<std::size_t>(p)].output();
            (output.channels.empty() ? without : with_channels).insert(key_of(rows_of(output)));
        }
        const auto mark = [&](int multiply) {
            for (FoldSink& sink : program_.multiplies[static_cast<std::size_t>(multiply)].sinks)
                sink.overwrite = only_here(sink.out) && !without.contains(key_of(sink.out)) && written.insert(key_of(sink.out)).second;
        };
        for (const FoldStep& step : program_.steps) {
            if (step.kind == FoldStepKind::multiply) mark(step.index);
            if (step.kind == FoldStepKind::sums) std::ranges::for_each(program_.sums[static_cast<std::size_t>(step.index)], mark);
        }
        mark_begins();
        for (const int p : program_.paths) {
            const Path& path = polynomial_.paths[static_cast<std::size_t>(p)];
            const FoldRows rows = rows_of(path.output());
            if (!path.output().channels.empty() || !only_here(rows) || with_channels.contains(key_of(rows))) continue;
            for (int c = 0; c < components_of(path.output()); ++c)
                program_.outputs[static_cast<std::size_t>(output_number(path.output(), c))].overwrite = true;
        }
    }

    /// Sorted outputs all of whose segments are written by FoldSums of this kernel first, and by no other kernel: those sums begin them.
    void mark_begins() {
        std::map<std::pair<int, std::int64_t>, FoldSink*> first;  // null: something else writes them first
        for (const FoldStep& step : program_.steps) {
            if (step.kind == FoldStepKind::multiply)
                for (const FoldSink& sink : program_.multiplies[static_cast<std::size_t>(step.index)].sinks)
                    first.try_emplace(key_of(sink.out), nullptr);
            if (step.kind != FoldStepKind::sums) continue;
            for (const int m : program_.sums[static_cast<std::size_t>(step.index)]) {
                FoldSink& sink = program_.multiplies[static_cast<std::size_t>(m)].sinks[0];
                first.try_emplace(key_of(sink.out), &sink);
            }
        }
        for (std::size_t o = 0; o < polynomial_.operands.size(); ++o) {
            const Operand& operand = polynomial_.operands[o];
            if (operand.role != Role::output || operand.rows.kind != Addressing::Kind::indexed || !polynomial_.is_sorted(operand)) continue;
            std::vector<FoldSink*> begin;
            bool all = true;
            for (std::size_t s = 0; s < operand.segments.size() && all; ++s) {
                if (operand.segments[s].size() == 0) continue;
                const std::pair<int, std::int64_t> rows{static_cast<int>(o), operand.offset(static_cast<int>(s))};
                const auto at = first.find(rows);
                all = at != first.end() && at->second != nullptr && writers_.at(rows) == 0;
                if (all) begin.push_back(at->second);
            }
            if (!all) continue;
            for (FoldSink* sink : begin) sink->begin = true;
        }
    }

    /// Steps that touch the same rows follow one another, since a block's rows of one segment fit into the first cache: first by the
    /// segment that most steps use, then by the one that fewest (but two) use, which is the path's own.
    void order_steps() {
        struct Unit {
            FoldStep step;
            std::vector<std::pair<int, std::int64_t>> rows;
            int matrix = -1;
            std::tuple<std::pair<int, std::int64_t>, std::pair<int, std::int64_t>, bool, int> rank = {};
        };
        std::vector<Unit> units;
        const int operands = static_cast<int>(polynomial_.operands.size());
        const auto add_rows = [&](Unit& unit, const FoldRows& rows, const auto& self) -> void {
            if (rows.operand < operands) {
                unit.rows.push_back(key_of(rows));
                return;
            }
            for (const FoldBlendTerm& term : program_.blends[static_cast<std::size_t>(rows.operand - operands)].terms) {
                self(unit, term.row, self);
                for (int n = 0; n < term.factor.weights; ++n) self(unit, term.factor.weight[n], self);
            }
        };
        const auto add_factor = [&](Unit& unit, const FoldFactor& factor) {
            for (int n = 0; n < factor.weights; ++n) unit.rows.push_back(key_of(factor.weight[n]));
        };
        for (std::size_t m = 0; m < program_.multiplies.size(); ++m) {
            const FoldMultiplyPlan& multiply = program_.multiplies[m];
            Unit unit{{FoldStepKind::multiply, static_cast<int>(m)}, {}, multiply.matrix};
            add_rows(unit, multiply.in, add_rows);
            for (const FoldSink& sink : multiply.sinks) {
                unit.rows.push_back(key_of(sink.out));
                if (sink.dot) add_rows(unit, sink.with, add_rows);
                add_factor(unit, sink.factor);
            }
            units.push_back(std::move(unit));
        }
        for (std::size_t n = 0; n < program_.reduces.size(); ++n) {
            const FoldReducePlan& reduce = program_.reduces[n];
            Unit unit{{FoldStepKind::reduce, static_cast<int>(n)}, {}, -1};
            add_rows(unit, reduce.left, add_rows);
            add_rows(unit, reduce.right, add_rows);
            add_factor(unit, reduce.factor);
            units.push_back(std::move(unit));
        }
        std::map<std::pair<int, std::int64_t>, int> uses;
        for (Unit& unit : units) {
            std::ranges::sort(unit.rows);
            unit.rows.erase(std::unique(unit.rows.begin(), unit.rows.end()), unit.rows.end());
            for (const auto& rows : unit.rows) ++uses[rows];
        }
        for (Unit& unit : units) {
            const auto most = std::ranges::max_element(unit.rows, {}, [&](const auto& rows) { return uses[rows]; });
            const auto least =
                std::ranges::min_element(unit.rows, {}, [&](const auto& rows) { return uses[rows] < 2 ? 1 << 30 : uses[rows]; });
            unit.rank = {*most, *least, unit.step.kind == FoldStepKind::reduce, unit.matrix};
        }
        std::ranges::stable_sort(units, {}, &Unit::rank);
        for (const Operand& operand : polynomial_.operands)
            if (operand.rows.kind == Addressing::Kind::each) program_.streamed += operand.size();
        const bool all_sums = program_.reduces.empty() && program_.blends.empty() && std::ranges::all_of(program_.multiplies, is_sum);
        if (all_sums && program_.streamed * static_cast<std::int64_t>(sizeof(float)) <= most_streamed) program_.rows = sum_rows;
        std::vector<bool> blended(program_.blends.size(), false);
        const auto need = [&](const FoldRows& rows) {
            const std::size_t blend = static_cast<std::size_t>(rows.operand - operands);
            if (rows.operand < operands || blended[blend]) return;
            blended[blend] = true;
            program_.steps.push_back({FoldStepKind::blend, static_cast<int>(blend)});
        };
        for (std::size_t u = 0; u < units.size(); ++u) {
            const Unit& unit = units[u];
            if (unit.step.kind == FoldStepKind::reduce) {
                need(program_.reduces[static_cast<std::size_t>(unit.step.index)].left);
                need(program_.reduces[static_cast<std::size_t>(unit.step.index)].right);
                program_.steps.push_back(unit.step);
                continue;
            }
            const FoldMultiplyPlan& multiply = program_.multiplies[static_cast<std::size_t>(unit.step.index)];
            need(multiply.in);
            if (!is_sum(multiply)) {
                fold({unit.step.index});
                program_.steps.push_back(unit.step);
                continue;
            }
            std::vector<int> sums;
            int numbers = 0;
            for (; u < units.size() && sums.size() < most_sums; ++u) {
                const FoldMultiplyPlan& next = program_.multiplies[static_cast<std::size_t>(units[u].step.index)];
                if (units[u].step.kind != FoldStepKind::multiply || !is_sum(next) || key_of(next.in) != key_of(multiply.in) ||
                    next.channels != multiply.channels || (!sums.empty() && numbers + size_of(next.matrix) > most_numbers))
                    break;
                numbers += size_of(next.matrix);
                sums.push_back(units[u].step.index);
            }
            --u;
            fold(sums);
            program_.steps.push_back({FoldStepKind::sums, static_cast<int>(program_.sums.size())});
            program_.sums.push_back(std::move(sums));
        }
    }

    /// What takes part in FoldSums.
    static bool is_sum(const FoldMultiplyPlan& multiply) {
        const FoldSink& sink = multiply.sinks[0];
        return multiply.sinks.size() == 1 && !sink.dot && sink.factor.weights <= 1 && sink.factor.scale == 1;
    }

    int size_of(int matrix) const {
        const FoldMatrixPlan& plan = program_.matrices[static_cast<std::size_t>(matrix)];
        return plan.diagonal ? 1 : plan.outputs * plan.inputs;
    }

    /// A step that brings the matrices of these multiplications into scratch, all at a time, unless they are there. Those of long steps
    /// stay while there is room; others take the place of those before, which is in the first cache.
    void fold(const std::vector<int>& multiplies) {
        int missing = 0;
        for (const int m : multiplies) {
            const int matrix = program_.multiplies[static_cast<std::size_t>(m)].matrix;
            if (!place_of_matrix_.contains(matrix)) missing += size_of(matrix);
        }
        if (missing > 0 && (program_.rows == fold_rows || folded_ + missing > most_numbers)) {
            place_of_matrix_.clear();
            folded_ = 0;
        }
        std::vector<FoldPlaced> folding;
        for (const int m : multiplies) {
            FoldMultiplyPlan& multiply = program_.multiplies[static_cast<std::size_t>(m)];
            const auto [at, is_new] = place_of_matrix_.try_emplace(multiply.matrix, folded_);
            multiply.place = at->second;
            if (!is_new) continue;
            folding.push_back({multiply.matrix, folded_});
            folded_ += size_of(multiply.matrix);
        }
        if (folding.empty()) return;
        program_.steps.push_back({FoldStepKind::folding, static_cast<int>(program_.foldings.size())});
        program_.foldings.push_back(std::move(folding));
    }

    const Polynomial& polynomial_;
    Uses uses_;
    FoldProgram program_;
    std::vector<Product> products_;
    static constexpr int most_numbers = 192;  ///< per row, of matrices that are kept: 24 kB in float32
    std::map<int, int> place_of_matrix_;
    int folded_ = 0;  ///< numbers per row taken by matrices
    std::map<std::pair<int, std::int64_t>, int> number_of_, output_of_, writers_;
    std::map<std::tuple<int, int, std::vector<std::tuple<int, int, std::vector<int>, int, std::int64_t>>>, int> matrix_at_;
    std::map<std::tuple<int, std::pair<int, std::int64_t>, std::int64_t>, int> multiply_at_;
    std::map<std::vector<std::tuple<std::pair<int, std::int64_t>, FactorKey, double>>, int> blend_at_;
};

}  // namespace

std::vector<int> foldable_paths(const Polynomial& polynomial, const std::vector<int>& candidates) {
    const Uses uses = uses_of(polynomial);
    std::vector<int> paths;
    for (const int p : candidates)
        if (shape_of(polynomial, polynomial.paths[static_cast<std::size_t>(p)], uses)) paths.push_back(p);
    return paths;
}

FoldProgram schedule_fold(const Polynomial& polynomial, const std::vector<int>& paths) { return Scheduler(polynomial).schedule(paths); }

}  // namespace clebsch
