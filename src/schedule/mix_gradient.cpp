// Paths that are gradients of one product of channels' scalar products with weights.
#include <algorithm>
#include <array>
#include <optional>

#include "schedule/matrix_path.hpp"
#include "schedule/mix.hpp"

namespace clebsch {
namespace {

constexpr std::int64_t least_channels = 16;  // a vector of every instruction set

/// The gradients of sum over u of coefficient * w_u (x_u . y), w a weight (u) times a number, or weights (u, v) times numbers (v): factor.
/// One of those of y and of the weights may be missing: -1.
struct Gradients {
    int x_path = 0, y_path = -1, weights_path = -1;
    Factor x, y, weights, factor, x_gradient, y_gradient, weights_gradient;
    double coefficient = 1;
    std::int64_t channels = 0;

    Gradients() { y_gradient.operand = weights_gradient.operand = -1; }
};

bool same(const Factor& a, const Factor& b) { return a.operand == b.operand && a.segment == b.segment; }

class Search {
 public:
    Search(const Polynomial& polynomial, const std::vector<int>& candidates) : polynomial_(polynomial) {
        for (const int p : candidates) {
            const Path& path = polynomial.paths[static_cast<std::size_t>(p)];
            const bool empty = std::ranges::any_of(path.extents, [](const auto& extent) { return extent.second == 0; });
            if (path.factors.size() == 4 && path.extents.size() <= 2 && !empty && restrictions(path).empty()) candidates_.push_back(p);
        }
    }

    /// All there are, those with the same y and y_gradient one after the other.
    std::vector<Gradients> found() {
        std::vector<Gradients> all;
        std::vector<int> taken;
        for (const int p : candidates_) {
            const std::optional<Gradients> gradients = of_x(p, taken);
            if (!gradients) continue;
            taken.insert(taken.end(), {p, gradients->y_path, gradients->weights_path});
            const auto same_sum = [&](const Gradients& other) {
                return same(other.y, gradients->y) && same(other.y_gradient, gradients->y_gradient);
            };
            const auto last = std::find_if(all.rbegin(), all.rend(), same_sum);
            all.insert(last == all.rend() ? all.end() : last.base(), *gradients);
        }
        return all;
    }

 private:
    const Path& path(int p) const { return polynomial_.paths[static_cast<std::size_t>(p)]; }
    const Operand& operand(const Factor& factor) const { return polynomial_.operands[static_cast<std::size_t>(factor.operand)]; }
    int components(const Factor& factor) const { return operand(factor).segments[static_cast<std::size_t>(factor.segment)].components; }
    bool row_by_row(const Factor& factor) const { return operand(factor).rows.kind == Addressing::Kind::each; }
    bool is_weight(const Factor& factor) const {
        return components(factor) == 1 && (row_by_row(factor) || operand(factor).rows.kind == Addressing::Kind::shared);
    }

    /// The gradient of x as path p, with one or two that go with it.
    std::optional<Gradients> of_x(int p, const std::vector<int>& taken) const {
        const Path& x_path = path(p);
        const Factor& x_gradient = x_path.output();
        const int n = components(x_gradient);
        if (x_gradient.channels.size() != 1 || (n != 1 && n != 3 && n != 5)) return std::nullopt;
        const std::int64_t channels = x_path.extent(x_gradient.channels.front());
        if (channels < least_channels || !is_alone(polynomial_, x_gradient, 1)) return std::nullopt;
        std::array<std::size_t, 3> order{0, 1, 2};
        do {
            const Factor &y = x_path.factors[order[0]], &weights = x_path.factors[order[1]], &factor = x_path.factors[order[2]];
            if (!y.channels.empty() || !row_by_row(y) || !row_by_row(factor) || !is_weight(weights) || components(factor) != 1) continue;
            if (weights.channels.size() > 2 || weights.channels.size() != factor.channels.size() + 1) continue;
            const std::size_t at = weights.channels.find(x_gradient.channels);
            if (at == std::string::npos || (factor.channels.size() == 1 && weights.channels[1 - at] != factor.channels.front())) continue;
            const std::optional<double> coefficient = diagonal(polynomial_, x_path, static_cast<int>(order[0]), 3);
            if (!coefficient) continue;
            Gradients result;
            result.x_path = p;
            result.y = y;
            result.weights = weights;
            result.factor = factor;
            result.x_gradient = x_gradient;
            result.coefficient = *coefficient;
            result.channels = channels;
            if (add_others(result, taken)) return result;
        } while (std::ranges::next_permutation(order).found);
        return std::nullopt;
    }

    /// The paths that give the other two gradients, or one of them.
    bool add_others(Gradients& result, const std::vector<int>& taken) const {
        std::optional<Gradients> without_weights;
        for (const int y_path : candidates_) {
            if (y_path == result.x_path || std::ranges::find(taken, y_path) != taken.end()) continue;
            const Factor& y_gradient = path(y_path).output();
            if (!y_gradient.channels.empty() || !row_by_row(y_gradient)) continue;
            const std::optional<std::size_t> x_at = other_than(path(y_path), result.weights, result.factor);
            if (!x_at) continue;
            const Factor& x = path(y_path).factors[*x_at];
            if (!row_by_row(x) || !has_letters(path(y_path), x, result)) continue;
            if (diagonal(polynomial_, path(y_path), static_cast<int>(*x_at), 3) != result.coefficient) continue;
            Gradients with_y = result;
            with_y.x = x;
            with_y.y_path = y_path;
            with_y.y_gradient = y_gradient;
            if (add_weights(with_y, taken)) {
                result = with_y;
                return true;
            }
            if (!without_weights) without_weights = with_y;
        }
        if (without_weights) result = *without_weights;
        return without_weights || add_weights(result, taken);
    }
    bool add_weights(Gradients& result, const std::vector<int>& taken) const {
        for (const int weights_path : candidates_) {
            if (weights_path == result.x_path || std::ranges::find(taken, weights_path) != taken.end()) continue;
            const Path& last = path(weights_path);
            const Factor& weights_gradient = last.output();
            if (!is_weight(weights_gradient) || weights_gradient.channels.size() != result.weights.channels.size()) continue;
            const std::optional<std::size_t> x_at = other_than(last, result.y, result.factor);
            if (!x_at) continue;
            const Factor& x = last.factors[*x_at];
            if (!row_by_row(x) || (result.y_path >= 0 && !same(x, result.x)) || !has_letters(last, x, result, weights_gradient)) continue;
            const std::size_t y_at = same(last.factors[(*x_at + 1) % 3], result.y) ? (*x_at + 1) % 3 : (*x_at + 2) % 3;
            if (diagonal(polynomial_, last, static_cast<int>(*x_at), static_cast<int>(y_at)) != result.coefficient) continue;
            result.x = x;
            result.weights_path = weights_path;
            result.weights_gradient = weights_gradient;
            return true;
        }
        return false;
    }

    /// The input that is neither a nor b, if these are the other two.
    static std::optional<std::size_t> other_than(const Path& path, const Factor& a, const Factor& b) {
        for (std::size_t f = 0; f < 3; ++f) {
            const Factor &one = path.factors[(f + 1) % 3], &two = path.factors[(f + 2) % 3];
            if ((same(one, a) && same(two, b)) || (same(one, b) && same(two, a))) return f;
        }
        return std::nullopt;
    }

    /// Whether x's channels are the same letter of the weights as x_gradient's, and factor's the other one.
    bool has_letters(const Path& path, const Factor& x, const Gradients& result, const Factor& weights) const {
        const std::size_t at = result.weights.channels.find(result.x_gradient.channels);
        if (x.channels.size() != 1 || weights.channels.size() != result.weights.channels.size()) return false;
        if (weights.channels[at] != x.channels.front() || path.extent(x.channels.front()) != result.channels) return false;
        const auto factor = std::ranges::find_if(path.factors, [&](const Factor& f) { return same(f, result.factor); });
        return factor != path.factors.end() && factor->channels.size() == result.factor.channels.size() &&
               (factor->channels.empty() || factor->channels.front() == weights.channels[1 - at]);
    }
    bool has_letters(const Path& path, const Factor& x, const Gradients& result) const {
        const auto weights = std::ranges::find_if(path.factors, [&](const Factor& f) { return same(f, result.weights); });
        return has_letters(path, x, result, *weights);
    }

    const Polynomial& polynomial_;
    std::vector<int> candidates_;
};

/// Writes them as a program.
class Packer {
 public:
    explicit Packer(const Polynomial& polynomial) : polynomial_(polynomial) {}

    MixProgram packed(const std::vector<Gradients>& all) {
        for (const Gradients& one : all) program_.gradient_parts.push_back(part_of(one));
        for (std::size_t first = 0, next = 0; first < all.size(); first = next) {
            const Factor &y = all[first].y, &sum = all[first].y_gradient;
            while (next < all.size() && same(all[next].y, y) && same(all[next].y_gradient, sum)) ++next;
            const auto parts = static_cast<int>(next - first);
            push(MixStepKind::gradient, program_.gradients,
                 MixGradient{.y = first_of(y),
                             .y_gradient = sum.operand < 0 ? MixNumbers{.operand = -1} : first_of(sum),
                             .components = operand(y).segments[static_cast<std::size_t>(y.segment)].components,
                             .first_part = static_cast<int>(first),
                             .parts = parts,
                             .store = sum.operand >= 0 && claim(sum, parts)});
        }
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].weights_path >= 0 && all[i].weights.channels.size() == 2)
                add_outer(all[i], program_.gradient_parts[i].weights_gradient);
        return std::move(program_);
    }

 private:
    const Operand& operand(const Factor& factor) const { return polynomial_.operands[static_cast<std::size_t>(factor.operand)]; }
    MatrixPath matrix(int p) const { return as_matrix_path(polynomial_, polynomial_.paths[static_cast<std::size_t>(p)]).value(); }
    MixNumbers first_of(const Factor& factor) const {
        return {.operand = factor.operand, .offset = operand(factor).offset(factor.segment)};
    }
    MixRows row_of(const MixNumbers& numbers) const { return {.operand = numbers.operand, .offset = numbers.offset}; }
    bool is_shared(const Factor& weights) const { return operand(weights).rows.kind == Addressing::Kind::shared; }

    template <class Step>
    void push(MixStepKind kind, std::vector<Step>& list, const Step& step) {
        list.push_back(step);
        program_.steps.push_back({.kind = kind, .index = static_cast<int>(list.size()) - 1});
    }
    MixNumbers new_buffer(std::int64_t size) {
        program_.buffer_size.push_back(size);
        return {.operand = static_cast<int>(polynomial_.operands.size() + program_.buffer_size.size() - 1)};
    }
    bool claim(const Factor& output, int paths) {
        const bool stored = is_alone(polynomial_, output, paths);
        if (stored) program_.stored.emplace_back(output.operand, output.segment);
        return stored;
    }

    /// Weights that are a matrix meet the numbers first, and its gradient is an outer product afterwards.
    MixGradientPart part_of(const Gradients& one) {
        const bool matrix_weights = one.weights.channels.size() == 2, to_weights = one.weights_path >= 0 && !matrix_weights;
        MixGradientPart part{.x = first_of(one.x),
                             .x_gradient = first_of(one.x_gradient),
                             .weights = first_of(one.weights),
                             .weights_gradient = to_weights ? first_of(one.weights_gradient) : new_buffer(one.channels),
                             .factor = first_of(one.factor),
                             .coefficient = one.coefficient,
                             .channels = one.channels,
                             .store = !to_weights || claim(one.weights_gradient, 1)};
        if (matrix_weights) {
            const MatrixPath m = matrix(one.x_path);
            const bool from_columns = m.rows == one.x_gradient.channels;
            part.weights = new_buffer(one.channels);
            MixMultiply step{.from = row_of(first_of(one.factor)), .to = row_of(part.weights), .components = 1};
            step.sources = m.extent(from_columns ? m.columns : m.rows);
            step.targets = one.channels;
            step.weight = one.weights.operand;
            step.weight_offset = first_of(one.weights).offset;
            step.transposed = from_columns;
            step.shared = is_shared(one.weights);
            step.store = true;
            push(MixStepKind::multiply, program_.multiplies, step);
            program_.multiply_adds += static_cast<double>(step.sources) * static_cast<double>(step.targets);
            part.factor = {.operand = -1};
        }
        claim(one.x_gradient, 1);
        const int components = operand(one.x).segments[static_cast<std::size_t>(one.x.segment)].components;
        for (const int p : {one.x_path, one.y_path, one.weights_path}) {
            if (p < 0) continue;
            program_.multiply_adds += static_cast<double>(components) * static_cast<double>(one.channels);
            program_.paths.push_back(p);
        }
        return part;
    }

    void add_outer(const Gradients& one, const MixNumbers& product) {
        const MatrixPath m = matrix(one.weights_path);
        const MixRows channels = row_of(product), numbers = row_of(first_of(one.factor));
        const bool rows_are_channels = one.weights.channels.front() == one.x_gradient.channels.front();
        MixOuter step{.left = rows_are_channels ? channels : numbers, .right = rows_are_channels ? numbers : channels, .components = 1};
        step.rows = m.extent(m.rows);
        step.columns = m.extent(m.columns);
        step.weight = one.weights_gradient.operand;
        step.weight_offset = first_of(one.weights_gradient).offset;
        step.shared = is_shared(one.weights_gradient);
        step.store = claim(one.weights_gradient, 1);
        push(MixStepKind::outer, program_.outers, step);
        program_.multiply_adds += static_cast<double>(step.rows) * static_cast<double>(step.columns);
    }

    const Polynomial& polynomial_;
    MixProgram program_;
};

}  // namespace

bool is_alone(const Polynomial& polynomial, const Factor& output, int paths) {
    if (polynomial.operands[static_cast<std::size_t>(output.operand)].rows.kind != Addressing::Kind::each) return false;
    return std::ranges::count_if(polynomial.paths, [&](const Path& path) { return same(path.output(), output); }) == paths;
}

MixProgram gradients_made_together(const Polynomial& polynomial, const std::vector<int>& candidates) {
    std::vector<Gradients> found = Search(polynomial, candidates).found();
    found.resize(std::min(found.size(), std::size_t{mix_buffers / 4}));  // two buffers each, and some for other paths
    return Packer(polynomial).packed(found);
}

}  // namespace clebsch
