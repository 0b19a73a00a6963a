#include "schedule/mix.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "schedule/matrix_path.hpp"

namespace clebsch {
namespace {

/// Packs paths one after the other.
class Packer {
 public:
    /// Goes on with a program.
    Packer(const Polynomial& polynomial, MixProgram program) : polynomial_(polynomial), program_(std::move(program)) {}

    /// Adds the path; false (and nothing added) when this family cannot compute it.
    bool add(int p) {
        const Path& path = polynomial_.paths[static_cast<std::size_t>(p)];
        const std::optional<MatrixPath> matrix = as_matrix_path(polynomial_, path);
        if (!matrix) {
            if (!add_vectors(path)) return false;
            program_.paths.push_back(p);
            return true;
        }
        if (program_.buffer_size.size() + 4 > mix_buffers) return false;
        if (matrix->weight_is_output() ? !add_outer(*matrix) : !add_multiply(*matrix)) return false;
        program_.paths.push_back(p);
        return true;
    }

    MixProgram take() {
        for (const Narrow& sum : narrow_) {
            MixNarrow step = sum.step;
            step.first_part = static_cast<int>(program_.narrow_parts.size());
            step.parts = static_cast<int>(sum.parts.size());
            step.store = claim(*sum.output, sum.paths);
            program_.narrow_parts.insert(program_.narrow_parts.end(), sum.parts.begin(), sum.parts.end());
            push(MixStepKind::narrow, program_.narrows, step);
        }
        narrow_.clear();
        return std::move(program_);
    }

 private:
    /// A product before packing: what goes where, with the scalar terms that multiply equal vectors gathered.
    struct Term {
        double coefficient;
        std::vector<std::pair<int, std::int64_t>> scalars;
    };
    struct Target {
        int component;                             ///< of the result
        std::vector<std::pair<int, int>> vectors;  ///< factor (-1: the matrix product), component
        friend auto operator<=>(const Target&, const Target&) = default;
    };
    using Sums = std::map<Target, std::vector<Term>>;
    /// What paths with few targets add to one segment.
    struct Narrow {
        MixNarrow step;
        std::vector<MixNarrowPart> parts;
        const Factor* output;
        int paths = 0;
    };

    const Segment& segment(const Factor& factor) const {
        return polynomial_.operands[static_cast<std::size_t>(factor.operand)].segments[static_cast<std::size_t>(factor.segment)];
    }
    const Operand& operand(const Factor& factor) const { return polynomial_.operands[static_cast<std::size_t>(factor.operand)]; }

    MixNumbers numbers(const MatrixPath& m, const Factor& factor, int component, const Letters& side) const {
        MixNumbers result{.operand = factor.operand,
                          .offset = operand(factor).offset(factor.segment) + component * segment(factor).multiplicity};
        walk(result, m, factor.channels, side);
        return result;
    }
    static void walk(MixNumbers& result, const MatrixPath& m, const Letters& carried, const Letters& side) {
        result.inner_stride = !side.empty() && carried.find(side.back()) != Letters::npos ? 1 : 0;
        if (side.size() == 2 && carried.find(side.front()) != Letters::npos)
            result.outer_stride = result.inner_stride == 1 ? m.path->extent(side.back()) : 1;
    }

    MixRows rows_of(const Factor& factor) const {
        return {.operand = factor.operand, .offset = operand(factor).offset(factor.segment), .stride = segment(factor).multiplicity};
    }

    /// Whether a factor's components can be read by the matrix product as they are.
    bool is_plain(const MatrixPath& m, int f, const Letters& side) const {
        return m.path->factors[static_cast<std::size_t>(f)].channels == side;
    }

    /// The value when the entries are value * delta between two factors' components and there is nothing but the matrix beside them.
    std::optional<double> diagonal(const MatrixPath& m, int a, int b) const {
        return m.path->factors.size() == 3 ? clebsch::diagonal(polynomial_, *m.path, a, b) : std::nullopt;
    }

    int new_buffer(std::int64_t size) {
        program_.buffer_size.push_back(size);
        return static_cast<int>(polynomial_.operands.size() + program_.buffer_size.size() - 1);
    }

    void push_term(MixEntry& entry, const Term& term) {
        program_.terms.push_back({.coefficient = term.coefficient,
                                  .first = static_cast<int>(program_.scalars.size()),
                                  .count = static_cast<int>(term.scalars.size())});
        for (const auto& [op, offset] : term.scalars) program_.scalars.push_back({.operand = op, .offset = offset});
        ++entry.terms;
    }

    Term term_of(const MatrixPath& m, const CoefficientEntry& entry) const {
        Term term{.coefficient = entry.value, .scalars = {}};
        for (const int f : m.neither) {
            if (f == m.output()) continue;
            const Factor& factor = m.path->factors[static_cast<std::size_t>(f)];
            term.scalars.emplace_back(factor.operand, operand(factor).offset(factor.segment) + entry.index[static_cast<std::size_t>(f)]);
        }
        return term;
    }

    /// Packs sums over `side` into a new buffer of `components` rows, or finds the buffer that already holds them.
    MixRows pack_side(const MatrixPath& m, const Sums& sums, const Letters& side, int components) {
        const std::int64_t size = m.extent(side);
        std::string key;
        for (const auto& [target, list] : sums) {
            key += "|" + std::to_string(target.component);
            for (const auto& [f, component] : target.vectors) {
                const MixNumbers at = numbers(m, m.path->factors[static_cast<std::size_t>(f)], component, side);
                key += ";" + std::to_string(at.operand) + "." + std::to_string(at.offset) + "." + std::to_string(at.outer_stride) + "." +
                       std::to_string(at.inner_stride);
            }
            for (const Term& term : list) {
                key += "+" + std::to_string(std::bit_cast<std::uint64_t>(term.coefficient));
                for (const auto& [op, offset] : term.scalars) key += "*" + std::to_string(op) + "." + std::to_string(offset);
            }
        }
        key += "#" + std::to_string(size) + "x" + std::to_string(components);
        if (const auto found = products_made_.find(key); found != products_made_.end()) return found->second;
        const MixRows to{.operand = new_buffer(size * components), .offset = 0, .stride = size};
        MixProduct product{.first_entry = static_cast<int>(program_.entries.size())};
        std::set<int> begun;
        for (const auto& [target, list] : sums) {
            MixEntry entry = side_entry(m, side);
            entry.to = {.operand = to.operand, .offset = target.component * size};
            walk(entry.to, m, side, side);
            entry.store = begun.insert(target.component).second;
            for (const auto& [f, component] : target.vectors)
                entry.vector[entry.vectors++] = numbers(m, m.path->factors[static_cast<std::size_t>(f)], component, side);
            for (const Term& term : list) push_term(entry, term);
            program_.multiply_adds += static_cast<double>(size);
            program_.entries.push_back(entry);
        }
        product.entries = static_cast<int>(program_.entries.size()) - product.first_entry;
        push(MixStepKind::product, program_.products, product);
        return products_made_[key] = to;
    }

    MixEntry side_entry(const MatrixPath& m, const Letters& side) {
        MixEntry entry;
        entry.outer = side.size() == 2 ? m.path->extent(side.front()) : 1;
        entry.inner = side.empty() ? 1 : m.path->extent(side.back());
        entry.first_term = static_cast<int>(program_.terms.size());
        return entry;
    }

    template <class Step>
    void push(MixStepKind kind, std::vector<Step>& list, const Step& step) {
        list.push_back(step);
        program_.steps.push_back({.kind = kind, .index = static_cast<int>(list.size()) - 1});
    }

    /// Sums of a side's product for every distinct tuple of the components of `by`, which the result is numbered by.
    Sums sums_by(const MatrixPath& m, const std::vector<int>& side, const std::vector<int>& by, std::map<std::vector<int>, int>& tuples,
                 bool number_all) const {
        Sums sums;
        if (number_all) {  // one factor: all its components, present in the entries or not
            const int n = segment(m.path->factors[static_cast<std::size_t>(by.front())]).components;
            for (int c = 0; c < n; ++c) tuples[{c}] = c;
        }
        for (const CoefficientEntry& entry : reduced_entries(*m.path)) {
            std::vector<int> tuple;
            tuple.reserve(by.size());
            for (const int f : by) tuple.push_back(entry.index[static_cast<std::size_t>(f)]);
            const int number = tuples.try_emplace(tuple, static_cast<int>(tuples.size())).first->second;
            Target target{.component = number, .vectors = {}};
            for (const int f : side) target.vectors.emplace_back(f, entry.index[static_cast<std::size_t>(f)]);
            sums[target].push_back(term_of(m, entry));
        }
        return sums;
    }

    MixMultiply multiplication(const MatrixPath& m, const MixRows& from, int components, bool from_columns, double scale) const {
        const Factor& weight = m.path->factors[static_cast<std::size_t>(m.weight)];
        const std::int64_t rows = m.extent(m.rows), columns = m.extent(m.columns);
        return {.from = from,
                .to = {},
                .components = components,
                .sources = from_columns ? columns : rows,
                .targets = from_columns ? rows : columns,
                .weight = weight.operand,
                .weight_offset = operand(weight).offset(weight.segment),
                .transposed = from_columns,
                .shared = operand(weight).rows.kind == Addressing::Kind::shared,
                .store = true,
                .gathered = operand(weight).rows.kind == Addressing::Kind::indexed,
                .packed_at = 0,
                .scale = scale};
    }
    static std::vector<std::int64_t> key_of(const MixMultiply& step) {
        return {step.from.operand,  step.from.offset, step.from.stride, step.components, step.weight,
                step.weight_offset, step.sources,     step.targets,     step.transposed};
    }

    /// T = W applied to `from`, shared between paths that ask for the same.
    MixRows multiplied(const MatrixPath& m, const MixRows& from, int components, bool from_columns, double scale,
                       const std::optional<MixRows>& direct, bool store) {
        MixMultiply step = multiplication(m, from, components, from_columns, scale);
        const std::vector<std::int64_t> key = key_of(step);
        if (!direct) {
            if (const auto found = multiplied_.find(key); found != multiplied_.end()) return found->second;
            step.to = {.operand = new_buffer(components * step.targets), .offset = 0, .stride = step.targets};
            multiplied_[key] = step.to;
        } else {
            step.to = *direct;
            step.store = store;
        }
        program_.multiply_adds += static_cast<double>(components) * static_cast<double>(step.sources) * static_cast<double>(step.targets);
        push(MixStepKind::multiply, program_.multiplies, step);
        return step.to;
    }

    /// Whether vectors along the sources serve better than vectors along the targets.
    bool suits_narrow(const Factor& weight, std::int64_t sources, std::int64_t targets, bool transposed) const {
        constexpr std::int64_t few_sources = 8;
        const Addressing::Kind rows = operand(weight).rows.kind;
        if (rows == Addressing::Kind::indexed || (rows != Addressing::Kind::shared && transposed && targets > 1)) return false;
        return targets <= mix_narrow_targets && sources >= few_sources;
    }

    /// Vectors over `side` with a number each, as parts of a narrow step for every component of the output; from a buffer, if they are
    /// more.
    bool add_narrow(const MatrixPath& m, const Sums& sums, const Letters& side, std::int64_t targets, bool transposed) {
        const Factor &output = m.path->output(), &weight = m.path->factors[static_cast<std::size_t>(m.weight)];
        const int components = segment(output).components;
        std::set<int> present;
        bool simple = true;
        int number_operand = -1;
        for (const auto& [target, list] : sums) {
            present.insert(target.component);
            const std::vector<std::pair<int, std::int64_t>>& scalars = list.front().scalars;
            if (&target == &sums.begin()->first && !scalars.empty()) number_operand = scalars.front().first;
            simple = simple && list.size() == 1 && target.vectors.size() == 1 && is_plain(m, target.vectors.front().first, side) &&
                     scalars.size() == (number_operand < 0 ? 0 : 1) && (number_operand < 0 || scalars.front().first == number_operand);
        }
        if (static_cast<int>(present.size()) != components) return false;
        const MixRows stored = simple ? MixRows{} : pack_side(m, sums, side, components);
        MixNarrowPart part{.number_operand = simple ? number_operand : -1,
                           .sources = m.extent(side),
                           .weight = weight.operand,
                           .weight_offset = operand(weight).offset(weight.segment),
                           .transposed = transposed};
        const double work = static_cast<double>(part.sources) * static_cast<double>(targets);
        for (int c = 0; c < components; ++c) {
            Narrow& sum = narrow_sum(output, operand(weight).rows.kind == Addressing::Kind::shared, c, static_cast<int>(targets));
            ++sum.paths;
            if (!simple) {
                part.vectors = 1;
                part.operand = stored.operand;
                part.offset[0] = c * stored.stride;
                part.coefficient[0] = 1;
                sum.parts.push_back(part);
                program_.multiply_adds += work;
                continue;
            }
            part.vectors = 0;
            const auto finish_part = [&] {
                if (part.vectors % 2 == 0) {  // there are loops for odd numbers only: the last vector twice, half each time
                    const auto last = static_cast<std::size_t>(part.vectors++ - 1);
                    part.coefficient[last] /= 2;
                    part.offset[last + 1] = part.offset[last];
                    part.number_offset[last + 1] = part.number_offset[last];
                    part.coefficient[last + 1] = part.coefficient[last];
                }
                sum.parts.push_back(part);
                program_.multiply_adds += work + static_cast<double>(part.vectors) * static_cast<double>(part.sources);
                part.vectors = 0;
            };
            for (const auto& [target, list] : sums) {
                if (target.component != c) continue;
                if (part.vectors == mix_narrow_vectors) finish_part();
                const MixNumbers at = numbers(m, m.path->factors[static_cast<std::size_t>(target.vectors.front().first)],
                                              target.vectors.front().second, side);
                part.operand = at.operand;
                part.offset[part.vectors] = at.offset;
                part.number_offset[part.vectors] = number_operand < 0 ? 0 : list.front().scalars.front().second;
                part.coefficient[part.vectors++] = list.front().coefficient;
            }
            finish_part();
        }
        return true;
    }
    Narrow& narrow_sum(const Factor& output, bool shared, int component, int targets) {
        const MixNarrow step{.to = output.operand,
                             .to_offset = operand(output).offset(output.segment) + component * segment(output).multiplicity,
                             .targets = targets,
                             .shared = shared};
        for (Narrow& sum : narrow_)
            if (sum.step.to == step.to && sum.step.to_offset == step.to_offset && sum.step.shared == shared) return sum;
        return narrow_.emplace_back(Narrow{.step = step, .parts = {}, .output = &output});
    }

    bool suits_narrow(const MatrixPath& m, bool from_columns) const {
        const std::int64_t rows = m.extent(m.rows), columns = m.extent(m.columns);
        return suits_narrow(m.path->factors[static_cast<std::size_t>(m.weight)], from_columns ? columns : rows,
                            from_columns ? rows : columns, from_columns);
    }

    bool add_multiply(const MatrixPath& m) {
        // The side that is multiplied has inputs only, at least one. Of two such sides and two ways take the fewest components.
        struct Way {
            bool from_columns, complete;
            int components;
        };
        std::optional<Way> best;
        for (const bool from_columns : {false, true}) {
            const std::vector<int>& source = from_columns ? m.column_side : m.row_side;
            const std::vector<int>& target = from_columns ? m.row_side : m.column_side;
            if (source.empty() || target.empty() || source.back() == m.output()) continue;
            if (source.size() > mix_vectors || target.size() > mix_vectors) continue;
            if (source.size() == 1 && is_plain(m, source.front(), from_columns ? m.columns : m.rows)) {
                // A product that another path has made already costs nothing.
                const Factor& factor = m.path->factors[static_cast<std::size_t>(source.front())];
                const MixMultiply made = multiplication(m, rows_of(factor), segment(factor).components, from_columns, 1.0);
                const int n = multiplied_.contains(key_of(made)) ? 0 : made.components;
                if (!best || n < best->components) best = Way{from_columns, false, n};
            }
            std::map<std::vector<int>, int> tuples;
            sums_by(m, source, results_of(m, target), tuples, false);
            const bool narrow = target.size() == 1 && target.front() == m.output() && suits_narrow(m, from_columns);
            if (!best || static_cast<int>(tuples.size()) < best->components + (narrow ? 1 : 0))
                best = Way{from_columns, true, static_cast<int>(tuples.size())};
        }
        if (!best) return false;
        const Letters& source_letters = best->from_columns ? m.columns : m.rows;
        const std::vector<int>& source = best->from_columns ? m.column_side : m.row_side;
        const std::vector<int>& target = best->from_columns ? m.row_side : m.column_side;
        const Letters& target_letters = best->from_columns ? m.rows : m.columns;
        const Factor& output = m.path->output();
        const bool output_alone = target.size() == 1 && target.front() == m.output() && output.channels == target_letters;
        const bool narrow = output_alone && suits_narrow(m, best->from_columns);
        if (narrow) {
            std::map<std::vector<int>, int> tuples;
            if (add_narrow(m, sums_by(m, source, results_of(m, target), tuples, true), source_letters, m.extent(target_letters),
                           best->from_columns))
                return true;
        }
        const bool into_output = output_alone && operand(output).rows.kind == Addressing::Kind::each;

        if (into_output && source.size() == 1 && is_plain(m, source.front(), source_letters)) {
            if (const std::optional<double> scale = diagonal(m, source.front(), m.output())) {
                multiplied(m, rows_of(m.path->factors[static_cast<std::size_t>(source.front())]), segment(output).components,
                           best->from_columns, *scale, rows_of(output), claim(output));
                return true;
            }
        }
        if (best->complete) {
            std::map<std::vector<int>, int> tuples;
            const Sums sums = sums_by(m, source, results_of(m, target), tuples, into_output);
            std::set<int> present;
            for (const auto& [key, list] : sums) present.insert(key.component);
            const int components = static_cast<int>(tuples.size());
            const MixRows product = pack_side(m, sums, source_letters, components);
            if (into_output && static_cast<int>(present.size()) == components) {
                multiplied(m, product, components, best->from_columns, 1.0, rows_of(output), claim(output));
                return true;
            }
            return add_after(m, multiplied(m, product, components, best->from_columns, 1.0, {}, true), target, target_letters, tuples,
                             present);
        }
        const Factor& factor = m.path->factors[static_cast<std::size_t>(source.front())];
        const MixRows product = multiplied(m, rows_of(factor), segment(factor).components, best->from_columns, 1.0, {}, true);
        MixProduct step{.first_entry = static_cast<int>(program_.entries.size())};
        Sums sums;
        for (const CoefficientEntry& entry : reduced_entries(*m.path)) {
            Target key{.component = entry.index[static_cast<std::size_t>(m.output())],
                       .vectors = {{-1, entry.index[static_cast<std::size_t>(source.front())]}}};
            for (const int f : target)
                if (f != m.output()) key.vectors.emplace_back(f, entry.index[static_cast<std::size_t>(f)]);
            sums[key].push_back(term_of(m, entry));
        }
        for (const auto& [key, list] : sums) {
            MixEntry entry = side_entry(m, target_letters);
            for (const Term& term : list) push_term(entry, term);
            finish(entry, m, product, key, target_letters);
        }
        store_first_of_each(m, step.first_entry, target_letters);
        step.entries = static_cast<int>(program_.entries.size()) - step.first_entry;
        push(MixStepKind::product, program_.products, step);
        return true;
    }

    /// Sums over channels of several components of one vector with one that has no components: the components are added up first, and the
    /// other is a matrix of one column.
    bool add_sums(const MatrixPath& m, const std::vector<int>& vectors, const Letters& letters) {
        const Factor& output = m.path->output();
        if (!output.channels.empty() || vectors.size() != 2 || program_.buffer_size.size() >= mix_buffers) return false;
        const auto factor = [&](int f) -> const Factor& { return m.path->factors[static_cast<std::size_t>(f)]; };
        const bool second = segment(factor(vectors[1])).components == 1;
        const int weight = second ? vectors[1] : vectors[0], other = second ? vectors[0] : vectors[1];
        if (segment(factor(weight)).components != 1 || !suits_narrow(factor(weight), m.extent(letters), 1, false)) return false;
        Sums sums;
        std::set<int> present;
        for (const CoefficientEntry& entry : reduced_entries(*m.path)) {
            const int component = entry.index[static_cast<std::size_t>(m.output())];
            present.insert(component);
            sums[{.component = component, .vectors = {{other, entry.index[static_cast<std::size_t>(other)]}}}].push_back(term_of(m, entry));
        }
        if (sums.size() <= present.size()) return false;
        MatrixPath with_column = m;
        with_column.weight = weight;
        return add_narrow(with_column, sums, letters, 1, false);
    }

    /// A path without a matrix: products of vectors of one letter as they are.
    bool add_vectors(const Path& path) {
        if (!restrictions(path).empty() || path.extents.size() != 1 || path.extents.front().second == 0) return false;
        MatrixPath m{.path = &path};
        const Letters letters(1, path.extents.front().first);
        std::vector<int> vectors;
        for (int f = 0; f < static_cast<int>(path.factors.size()); ++f) {
            const Letters& channels = path.factors[static_cast<std::size_t>(f)].channels;
            if (!channels.empty() && channels != letters) return false;
            if (channels.empty()) m.neither.push_back(f);
            else if (f != m.output()) vectors.push_back(f);
        }
        if (vectors.empty() || vectors.size() > mix_vectors) return false;
        if (add_sums(m, vectors, letters)) return true;
        Sums sums;
        for (const CoefficientEntry& entry : reduced_entries(path)) {
            Target target{.component = entry.index[static_cast<std::size_t>(m.output())], .vectors = {}};
            for (const int f : vectors) target.vectors.emplace_back(f, entry.index[static_cast<std::size_t>(f)]);
            sums[target].push_back(term_of(m, entry));
        }
        MixProduct step{.first_entry = static_cast<int>(program_.entries.size())};
        for (const auto& [target, list] : sums) {
            MixEntry entry = side_entry(m, letters);
            for (const Term& term : list) push_term(entry, term);
            finish(entry, m, {}, target, letters);
        }
        store_first_of_each(m, step.first_entry, letters);
        step.entries = static_cast<int>(program_.entries.size()) - step.first_entry;
        push(MixStepKind::product, program_.products, step);
        return true;
    }

    /// What the result of a complete product is numbered by: the target side's factors, and the output if it has no letters.
    std::vector<int> results_of(const MatrixPath& m, const std::vector<int>& target) const {
        std::vector<int> by = target;
        if (std::ranges::find(by, m.output()) == by.end()) by.push_back(m.output());
        return by;
    }

    /// output += T times the other factors of its side, for a product that already holds all coefficients.
    bool add_after(const MatrixPath& m, const MixRows& product, const std::vector<int>& target, const Letters& letters,
                   const std::map<std::vector<int>, int>& tuples, const std::set<int>& present) {
        MixProduct step{.first_entry = static_cast<int>(program_.entries.size())};
        const std::vector<int> by = results_of(m, target);
        for (const auto& [tuple, number] : tuples) {
            if (!present.contains(number)) continue;
            Target key{.component = 0, .vectors = {{-1, number}}};
            for (std::size_t i = 0; i < by.size(); ++i) {
                if (by[i] == m.output()) key.component = tuple[i];
                else key.vectors.emplace_back(by[i], tuple[i]);
            }
            MixEntry entry = side_entry(m, letters);
            push_term(entry, {.coefficient = 1.0, .scalars = {}});
            finish(entry, m, product, key, letters);
        }
        store_first_of_each(m, step.first_entry, letters);
        step.entries = static_cast<int>(program_.entries.size()) - step.first_entry;
        push(MixStepKind::product, program_.products, step);
        return true;
    }

    void finish(MixEntry entry, const MatrixPath& m, const MixRows& product, const Target& key, const Letters& letters) {
        entry.to = numbers(m, m.path->output(), key.component, letters);
        for (const auto& [f, component] : key.vectors) {
            MixNumbers at{.operand = product.operand, .offset = product.offset + component * product.stride};
            walk(at, m, letters, letters);
            entry.vector[entry.vectors++] = f < 0 ? at : numbers(m, m.path->factors[static_cast<std::size_t>(f)], component, letters);
        }
        program_.multiply_adds +=
            static_cast<double>(entry.outer * (entry.inner + (entry.to.inner_stride == 0 ? 1 : 0)));  // a sum meets its scalar
        program_.entries.push_back(entry);
    }

    /// Where the entries from `first` on are all that is ever written to their output segment, the first into each component stores.
    void store_first_of_each(const MatrixPath& m, int first, const Letters& letters) {
        const Factor& output = m.path->output();
        std::set<std::int64_t> written;
        for (std::size_t e = static_cast<std::size_t>(first); e < program_.entries.size(); ++e)
            written.insert(program_.entries[e].to.offset);
        if (output.channels != letters || static_cast<int>(written.size()) != segment(output).components || !claim(output)) return;
        for (std::size_t e = static_cast<std::size_t>(first); e < program_.entries.size(); ++e)
            program_.entries[e].store = written.erase(program_.entries[e].to.offset) != 0;
    }

    bool claim(const Factor& output, int paths = 1) {
        if (!is_alone(polynomial_, output, paths)) return false;
        program_.stored.emplace_back(output.operand, output.segment);
        return true;
    }

    bool add_outer(const MatrixPath& m) {
        std::optional<bool> bare_columns;
        int components = 0;
        for (const bool columns : {false, true}) {
            const std::vector<int>& side = columns ? m.column_side : m.row_side;
            const std::vector<int>& other = columns ? m.row_side : m.column_side;
            if (side.size() != 1 || other.empty() || other.size() > mix_vectors || !is_plain(m, side.front(), columns ? m.columns : m.rows))
                continue;
            const int n = segment(m.path->factors[static_cast<std::size_t>(side.front())]).components;
            if (!bare_columns || n < components) bare_columns = columns, components = n;
        }
        if (!bare_columns) return false;
        const int bare = (*bare_columns ? m.column_side : m.row_side).front();
        const std::vector<int>& other = *bare_columns ? m.row_side : m.column_side;
        const Letters& other_letters = *bare_columns ? m.rows : m.columns;
        const Factor& weight = m.path->output();
        MixOuter step{.components = components,
                      .rows = m.extent(m.rows),
                      .columns = m.extent(m.columns),
                      .weight = weight.operand,
                      .weight_offset = operand(weight).offset(weight.segment),
                      .shared = operand(weight).rows.kind == Addressing::Kind::shared,
                      .store = false,
                      .scale = 1.0};
        MixRows plain = rows_of(m.path->factors[static_cast<std::size_t>(bare)]), product;
        const std::optional<double> scale =
            other.size() == 1 && is_plain(m, other.front(), other_letters) ? diagonal(m, bare, other.front()) : std::nullopt;
        if (scale) {
            product = rows_of(m.path->factors[static_cast<std::size_t>(other.front())]);
            step.scale = *scale;
        } else {
            std::map<std::vector<int>, int> tuples;
            const Sums sums = sums_by(m, other, {bare}, tuples, true);
            std::set<int> present;
            for (const auto& [key, list] : sums) present.insert(key.component);
            if (static_cast<int>(present.size()) < components) return false;
            product = pack_side(m, sums, other_letters, components);
        }
        step.left = *bare_columns ? product : plain;
        step.right = *bare_columns ? plain : product;
        step.store = claim(weight);
        program_.multiply_adds += static_cast<double>(components) * static_cast<double>(step.rows) * static_cast<double>(step.columns);
        push(MixStepKind::outer, program_.outers, step);
        return true;
    }

    const Polynomial& polynomial_;
    MixProgram program_;
    std::vector<Narrow> narrow_;
    std::map<std::string, MixRows> products_made_;
    std::map<std::vector<std::int64_t>, MixRows> multiplied_;
};

}  // namespace

MixProgram schedule_mix(const Polynomial& polynomial, const std::vector<int>& candidates) {
    MixProgram gradients = gradients_made_together(polynomial, candidates);
    const std::vector<int> taken = gradients.paths;
    Packer packer(polynomial, std::move(gradients));
    for (const int p : candidates)
        if (std::ranges::find(taken, p) == taken.end()) packer.add(p);
    MixProgram program = packer.take();
    read_as_stored(polynomial, program);
    return program;
}

}  // namespace clebsch
