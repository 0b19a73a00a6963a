// A path that couples and mixes channels at once, as a coupling per channel and a product with a matrix.
#include <algorithm>
#include <map>
#include <optional>

#include "describe/rewrites.hpp"
#include "describe/simplify.hpp"
#include "describe/text.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// Where a path can be split: all inputs but `factor` become products, of channels `from` and the components of `side`, and a path of two
/// inputs is left. Either `factor` is a matrix and maps the products to the output (side: the output), or the output is a matrix, the sum
/// over rows of products times `factor` (side: this factor).
struct Mixing {
    std::size_t factor, side;
    std::string from;
    char to;

    std::int64_t extent(const Path& path) const {
        std::int64_t extent = 1;
        for (const char letter : from) extent *= path.extent(letter);
        return extent;
    }
    int components(const Path& path) const {
        const int axis = path.factors[side].axis;
        return axis < 0 ? 1 : path.coefficients.shape()[at(axis)];
    }
};

bool has_all(const std::string& letters, const std::string& wanted) {
    return std::ranges::all_of(wanted, [&](char letter) { return letters.find(letter) != std::string::npos; });
}

std::optional<Mixing> find_map(const Path& path) {
    const std::string& out = path.output().channels;
    const std::size_t letters = path.extents.size();
    if (out.size() != 1 || letters < 2 || letters > 3) return std::nullopt;
    std::optional<Mixing> found;
    std::string met;  // letters of the other factors
    for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
        const Factor& factor = path.factors[f];
        if (factor.channels.size() != letters) {
            if (factor.channels.find_first_of("()" + out) != std::string::npos) return std::nullopt;
            met += factor.channels;
        } else {
            if (found || factor.axis >= 0 || (factor.channels.front() != out[0] && factor.channels.back() != out[0])) return std::nullopt;
            found = Mixing{f, path.factors.size() - 1, factor.channels, out[0]};
            std::erase(found->from, out[0]);
            if (found->from.size() + 1 != letters) return std::nullopt;
        }
    }
    if (!found || path.factors.size() <= 3) return std::nullopt;  // x and the matrix alone are a linear map already
    if (!has_all(met, found->from)) return std::nullopt;
    return found;
}

/// Of the gradient of a matrix that all rows share: the split with the fewest products.
std::optional<Mixing> find_gradient(const Polynomial& polynomial, const Path& path, std::int64_t least) {
    const Factor& out = path.output();
    const std::size_t letters = path.extents.size();
    if (path.factors.size() <= 3 || letters < 2 || letters > 3 || out.channels.size() != letters || out.axis >= 0) return std::nullopt;
    if (polynomial.operands[at(out.operand)].rows.kind != Addressing::Kind::shared || channel_count(path, out) < least) return std::nullopt;
    std::optional<Mixing> best;
    for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
        const Factor& factor = path.factors[f];
        if (factor.channels.size() != 1 || polynomial.operands[at(factor.operand)].rows.kind != Addressing::Kind::each) continue;
        Mixing found{f, f, out.channels, factor.channels[0]};
        if (found.to != out.channels.front() && found.to != out.channels.back()) continue;
        std::erase(found.from, found.to);
        std::string met;
        for (std::size_t other = 0; other + 1 < path.factors.size(); ++other)
            if (other != f) met += path.factors[other].channels;
        if (met.find_first_of(std::string("()") + found.to) != std::string::npos || !has_all(met, found.from)) continue;
        if (!best || found.extent(path) * found.components(path) < best->extent(path) * best->components(path)) best = found;
    }
    return best;
}

/// Multiplications per row, terms times letters: together, and in two steps.
bool gains(const Path& path, const Mixing& mixing, double least_gain) {
    const auto terms = static_cast<double>(reduced_entries(path).size());
    const auto from = static_cast<double>(mixing.extent(path)), to = static_cast<double>(path.extent(mixing.to));
    const double together = terms * from * to, in_steps = terms * from + mixing.components(path) * from * to;
    return together > least_gain * in_steps;
}

/// An input whose letter is the first or last of a matrix of three, of which the output has the middle one: the two are a product by
/// themselves, of channels `to`, which the other inputs meet afterwards.
struct Inner {
    std::size_t matrix, factor;
    std::string to;

    std::int64_t extent(const Path& path) const { return path.extent(to[0]) * path.extent(to[1]); }
    int components(const Path& path) const {
        const int axis = path.factors[factor].axis;
        return axis < 0 ? 1 : path.coefficients.shape()[at(axis)];
    }
};

/// The one with the fewest numbers.
std::optional<Inner> find_inner(const Polynomial& polynomial, const Path& path) {
    const std::string& out = path.output().channels;
    if (out.size() != 1 || path.extents.size() != 3 || path.factors.size() <= 3) return std::nullopt;
    std::optional<std::size_t> matrix;
    std::string met;
    for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
        const Factor& factor = path.factors[f];
        if (factor.channels.size() == 3 && factor.axis < 0 && factor.channels[1] == out[0] && !matrix) matrix = f;
        else if (factor.channels.size() > 1 || factor.channels == out) return std::nullopt;
        else met += factor.channels;
    }
    if (!matrix || met.size() != 2) return std::nullopt;
    const std::string& letters = path.factors[*matrix].channels;
    if (polynomial.operands[at(path.factors[*matrix].operand)].rows.kind == Addressing::Kind::each) return std::nullopt;
    if (!has_all(met, {letters.front(), letters.back()})) return std::nullopt;
    std::optional<Inner> best;
    for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
        const Factor& factor = path.factors[f];
        if (factor.channels.size() != 1 || polynomial.operands[at(factor.operand)].rows.kind != Addressing::Kind::each) continue;
        const Inner found{*matrix, f, factor.channels[0] == letters[0] ? letters.substr(1) : letters.substr(0, 2)};
        if (!best || found.extent(path) * found.components(path) < best->extent(path) * best->components(path)) best = found;
    }
    return best;
}

/// Values between the steps of a program, made by paths that are known by a text.
struct Between {
    Operand operand;
    std::map<std::string, int> known = {};  ///< segments
    std::vector<Path> paths = {};

    /// The segment that `path` makes; its output is filled in.
    int segment(const std::string& text, Path path, Segment made) {
        const auto [found, is_new] = known.try_emplace(text, static_cast<int>(operand.segments.size()));
        if (is_new) {
            operand.segments.push_back(made);
            path.factors.back().segment = found->second;
            paths.push_back(std::move(path));
        }
        return found->second;
    }
};

/// A path that copies components between two factors, or between an input and the output, for any channels.
Path with_identity(std::vector<Factor> factors, std::size_t one, std::size_t other, int components, const Path& of) {
    for (Factor& factor : factors) factor.axis = -1;
    if (components > 1) {
        factors[one].axis = 0;
        factors[other].axis = 1;
    }
    Path path{std::move(factors), components > 1 ? Coefficients::identity(components) : Coefficients(), of.scale, {}};
    for (const auto& extent : of.extents)
        if (std::ranges::any_of(path.factors,
                                [&](const Factor& factor) { return factor.channels.find(extent.first) != std::string::npos; }))
            path.extents.push_back(extent);
    return path;
}

std::string text_of(const Factor& factor) {
    return std::to_string(factor.operand) + '.' + std::to_string(factor.segment) + '[' + factor.channels + ']';
}

}  // namespace

Program split_mixing(const Polynomial& polynomial, double least_gain, std::int64_t least_gradient) {
    const auto name = [&](std::string text) {
        while (std::ranges::any_of(polynomial.operands, [&](const Operand& operand) { return operand.name == text; })) text += '_';
        return text;
    };
    const Addressing rows = polynomial.rows.empty() ? shared_row() : each_row();
    const int count = static_cast<int>(polynomial.operands.size());
    Between products{{name("products"), {}, Layout::ir_mul, Role::input, rows}},
        inner{{name("inner"), {}, Layout::ir_mul, Role::input, rows}};
    std::vector<Path> maps;
    const auto segment_of = [&](const Factor& factor) -> const Segment& {
        return polynomial.operands[at(factor.operand)].segments[at(factor.segment)];
    };
    for (const Path& path : polynomial.paths) {
        const std::optional<Mixing> of_output = find_map(path),
                                    mixing = of_output ? of_output : find_gradient(polynomial, path, least_gradient);
        if (mixing && gains(path, *mixing, least_gain)) {
            const Factor &factor = path.factors[mixing->factor], &side = path.factors[mixing->side];
            const int components = mixing->components(path);
            Path step = path;
            step.scale = 1;
            step.factors.erase(step.factors.begin() + static_cast<std::ptrdiff_t>(mixing->factor));
            std::erase_if(step.extents, [&](const auto& extent) { return extent.first == mixing->to; });
            std::string text = step.coefficients.to_text() + ' ' + std::to_string(side.axis);
            for (const char letter : mixing->from) text += ' ' + std::to_string(path.extent(letter));
            for (std::size_t f = 0; f + 1 < step.factors.size(); ++f) {
                const Factor& met = step.factors[f];
                text += ' ' + std::to_string(met.operand) + '.' + std::to_string(met.segment) + '[';
                for (const char letter : met.channels) text += std::to_string(mixing->from.find(letter));
                text += ']' + std::to_string(met.axis);
            }
            step.factors.back() = {count, 0, mixing->from, side.axis};
            Factor made{count, 0, mixing->from, -1};
            made.segment = products.segment(text, std::move(step), {mixing->extent(path), components, segment_of(side).irrep});
            maps.push_back(with_identity({factor, made, path.output()}, mixing->side == mixing->factor ? 0 : 1,
                                         mixing->side == mixing->factor ? 1 : 2, components, path));
            continue;
        }
        if (const std::optional<Inner> found = mixing ? std::nullopt : find_inner(polynomial, path); found && least_gain <= 1) {
            const Factor &matrix = path.factors[found->matrix], &factor = path.factors[found->factor];
            Factor made{count + 1, 0, found->to, -1};
            Path map = with_identity({factor, matrix, made}, 0, 2, found->components(path), path);
            map.scale = 1;
            made.segment = inner.segment(text_of(factor) + text_of(matrix), std::move(map),
                                         {found->extent(path), found->components(path), segment_of(factor).irrep});
            made.axis = factor.axis;
            Path rest = path;
            const char gone = factor.channels[0];
            rest.factors[found->factor] = made;
            rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(found->matrix));
            std::erase_if(rest.extents, [&](const auto& extent) { return extent.first == gone; });
            maps.push_back(std::move(rest));
            continue;
        }
        maps.push_back(path);
    }
    if (products.paths.empty() && inner.paths.empty()) return as_program(polynomial);

    Program program = as_program(polynomial);
    program.nodes.clear();
    for (const Between* values : {&products, &inner})
        program.values.push_back({values->operand.name, polynomial.rows, values->operand.segments, values->operand.layout});
    const auto add_node = [&](const std::vector<Path>& paths, int output) {  // -1: the polynomial's own
        Polynomial step = polynomial;
        step.operands.push_back(products.operand);
        step.operands.push_back(inner.operand);
        if (output >= 0) {
            for (Operand& operand : step.operands) operand.role = Role::input;
            step.operands[at(output)].role = Role::output;
        }
        step.paths = paths;
        const OperandSelection selection = drop_unused(step);
        program.nodes.push_back(PolynomialNode{selection.polynomial, selection.kept});
    };
    if (!products.paths.empty()) add_node(products.paths, count);
    if (!inner.paths.empty()) add_node(inner.paths, count + 1);
    add_node(maps, -1);
    // Without values that nothing makes.
    for (const int value : {count + 1, count}) {
        if (!(value == count ? products : inner).paths.empty()) continue;
        program.values.erase(program.values.begin() + value);
        for (Node& node : program.nodes)
            for (int& argument : std::get<PolynomialNode>(node).arguments)
                if (argument > value) --argument;
    }
    return program;
}

}  // namespace clebsch
