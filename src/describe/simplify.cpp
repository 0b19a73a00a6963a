// Canonical form of a sum of paths. Two paths mean the same if they differ by the order of factors, by an exchange of identical factors, by
// an exchange of axes in which the coefficients are symmetric, or by the names of letters. Each path is brought to the smallest of its
// forms (of those tried), equal forms meet in a hash map, and no pair of paths is ever compared.
#include "describe/simplify.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "describe/derivative.hpp"
#include "describe/rewrites.hpp"

namespace clebsch {
namespace {

auto place(const Factor& factor) { return std::tie(factor.operand, factor.segment, factor.channels); }
bool identical(const Factor& a, const Factor& b) { return place(a) == place(b); }

bool before(const Factor& a, const Factor& b) {
    return std::tie(a.operand, a.segment, a.channels, a.axis) < std::tie(b.operand, b.segment, b.channels, b.axis);
}

/// For every axis of a tensor the first axis it may be exchanged with. Literals keep every axis apart: they merge entry by entry anyway.
class SymmetricAxes {
 public:
    const std::vector<int>& of(const Coefficients& coefficients) {
        const bool named = !coefficients.name().empty();
        std::vector<int>& first = named ? known_[coefficients.name()] : literal_;
        if (named && first.size() == coefficients.rank()) return first;
        first.assign(coefficients.rank(), 0);
        for (std::size_t axis = 0; axis < first.size(); ++axis) {
            first[axis] = static_cast<int>(axis);
            for (std::size_t other = 0; named && other < axis; ++other) {
                if (first[other] != static_cast<int>(other) || coefficients.shape()[other] != coefficients.shape()[axis]) continue;
                if (!coefficients.symmetric_in(static_cast<int>(other), static_cast<int>(axis))) continue;
                first[axis] = static_cast<int>(other);
                break;
            }
        }
        return first;
    }

 private:
    std::unordered_map<std::string, std::vector<int>> known_;
    std::vector<int> literal_;
};

/// A tensor of one number, such as cg(0e,0e,0e), becomes part of the scale; any other literal loses its axes of extent 1.
void drop_unit_axes(Path& path) {
    const std::vector<int> shape = path.coefficients.shape();
    const bool number = std::ranges::all_of(shape, [](int extent) { return extent == 1; });
    if (number ? path.coefficients == Coefficients() : !path.coefficients.name().empty() || std::ranges::find(shape, 1) == shape.end())
        return;
    std::vector<int> kept, position(shape.size(), -1);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == 1) continue;
        position[axis] = static_cast<int>(kept.size());
        kept.push_back(shape[axis]);
    }
    for (Factor& factor : path.factors)
        if (factor.axis >= 0) factor.axis = position[static_cast<std::size_t>(factor.axis)];
    if (kept.empty()) {
        const std::vector<CoefficientEntry>& entries = path.coefficients.entries();
        path.scale *= entries.empty() ? 0 : entries.front().value;
        path.coefficients = {};
        return;
    }
    std::vector<CoefficientEntry> entries = path.coefficients.entries();
    for (CoefficientEntry& entry : entries) {
        std::vector<int> index;
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
            if (position[axis] >= 0) index.push_back(entry.index[axis]);
        entry.index = std::move(index);
    }
    path.coefficients = Coefficients::literal(std::move(kept), std::move(entries));
}

/// Gives every factor the smallest axis it may have, in the order of the factors.
void order_axes(Path& path, const std::vector<int>& symmetric) {
    std::vector<Factor>& factors = path.factors;
    for (Factor& factor : factors)
        if (factor.axis >= 0) factor.axis = symmetric[static_cast<std::size_t>(factor.axis)];
    for (std::size_t begin = 0, end = 0; begin + 1 < factors.size(); begin = end) {
        for (end = begin + 1; end + 1 < factors.size() && identical(factors[begin], factors[end]);) ++end;
        std::sort(factors.begin() + static_cast<std::ptrdiff_t>(begin), factors.begin() + static_cast<std::ptrdiff_t>(end), before);
    }
    std::vector<bool> taken(symmetric.size(), false);
    for (Factor& factor : factors) {
        if (factor.axis < 0) continue;
        auto axis = static_cast<std::size_t>(factor.axis);
        while (taken[axis] || symmetric[axis] != factor.axis) ++axis;
        taken[axis] = true;
        factor.axis = static_cast<int>(axis);
    }
}

void append(std::string& key, std::int64_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); }

/// What paths share that could be written as one: the places of their factors with letters named by first appearance, and extents.
/// Among these, the one with the smallest axes is canonical.
std::string key_of(const Path& path) {
    std::string key;
    key.reserve(32 * path.factors.size() + 32);
    char renamed[26] = {};
    std::string order;
    for (const Factor& factor : path.factors) {
        append(key, factor.operand);
        append(key, factor.segment);
        append(key, factor.axis < 0 ? -1 : 0);
        for (const char c : factor.channels) {
            if (c < 'a' || c > 'z') {
                key += c;
                continue;
            }
            char& name = renamed[c - 'a'];
            if (name == 0) {
                name = static_cast<char>('a' + order.size());
                order += c;
            }
            key += name;
        }
        key += ';';
    }
    for (const char letter : order) append(key, path.extent(letter));
    return key;
}

bool axes_before(const Path& a, const Path& b) {
    return std::ranges::lexicographical_compare(a.factors, b.factors, {}, &Factor::axis, &Factor::axis);
}
bool same_axes(const Path& a, const Path& b) { return std::ranges::equal(a.factors, b.factors, {}, &Factor::axis, &Factor::axis); }

/// Runs [begin, end) of input factors of the same segment with different channels: their order matters for the names of letters.
std::vector<std::pair<std::size_t, std::size_t>> undecided_runs(const Path& path) {
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    double orders = 1;
    const std::vector<Factor>& factors = path.factors;
    for (std::size_t begin = 0, end = 0; begin + 1 < factors.size(); begin = end) {
        bool differ = false;
        for (end = begin + 1;
             end + 1 < factors.size() && factors[end].operand == factors[begin].operand && factors[end].segment == factors[begin].segment;
             ++end)
            differ = differ || factors[end].channels != factors[begin].channels;
        if (!differ) continue;
        runs.emplace_back(begin, end);
        for (std::size_t i = 2; i <= end - begin; ++i) orders *= static_cast<double>(i);
    }
    constexpr double most_orders = 120;  // more are left as sorted: a duplicate may then survive, which costs time but is not wrong
    if (orders > most_orders) runs.clear();
    return runs;
}

/// Brings a path to its canonical form and returns the key of it.
std::string make_canonical(Path& path, const std::vector<int>& symmetric) {
    std::sort(path.factors.begin(), path.factors.end() - 1, before);
    const auto runs = undecided_runs(path);
    if (runs.empty()) {
        order_axes(path, symmetric);
        return key_of(path);
    }
    std::vector<std::size_t> order(path.factors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Path best;
    std::string best_key;
    for (bool more = true; more;) {
        Path candidate = path;
        for (std::size_t f = 0; f < order.size(); ++f) candidate.factors[f] = path.factors[order[f]];
        order_axes(candidate, symmetric);
        std::string key = key_of(candidate);
        if (best_key.empty() || key < best_key || (key == best_key && axes_before(candidate, best))) {
            best_key = std::move(key);
            best = std::move(candidate);
        }
        more = std::any_of(runs.begin(), runs.end(), [&](const auto& run) {  // the next order of all runs together
            return std::next_permutation(order.begin() + static_cast<std::ptrdiff_t>(run.first),
                                         order.begin() + static_cast<std::ptrdiff_t>(run.second));
        });
    }
    path = std::move(best);
    return best_key;
}

/// Whether exchanging identical factors cancels every term, as in cg(1o,1o,1e) x x.
bool cancels(const Path& path, const std::vector<int>& symmetric) {
    bool undecided = false;
    for (std::size_t f = 1; f + 1 < path.factors.size(); ++f) {
        const Factor &a = path.factors[f - 1], &b = path.factors[f];
        if (identical(a, b) && a.axis >= 0 && b.axis >= 0)
            undecided = undecided || symmetric[static_cast<std::size_t>(a.axis)] != symmetric[static_cast<std::size_t>(b.axis)];
    }
    return undecided && reduced_entries(path).empty();
}

bool is_zero(const Path& path) {
    if (path.scale == 0 || std::ranges::any_of(path.extents, [](const auto& extent) { return extent.second == 0; })) return true;
    const bool restricted =
        std::ranges::any_of(path.factors, [](const Factor& factor) { return factor.channels.find('(') != std::string::npos; });
    if (restricted && std::ranges::any_of(restrictions(path), [&](const ChannelGroup& pair) { return path.extent(pair.first) < 2; }))
        return true;
    return path.coefficients.name().empty() && path.coefficients.entries().empty();
}

/// The literal of `other` with its axes in the places where `path` has them.
std::vector<CoefficientEntry> aligned_entries(const Path& path, const Path& other) {
    std::vector<CoefficientEntry> entries = other.coefficients.entries();
    std::vector<int> index(path.coefficients.rank());
    for (CoefficientEntry& entry : entries) {
        for (std::size_t f = 0; f < path.factors.size(); ++f)
            if (path.factors[f].axis >= 0)
                index[static_cast<std::size_t>(path.factors[f].axis)] = entry.index[static_cast<std::size_t>(other.factors[f].axis)];
        entry.index = index;
    }
    return entries;
}

/// Several paths at the same places, as one of literal coefficients.
Path added(const std::vector<Path>& paths) {
    Path sum = paths.front();
    std::vector<Coefficients> aligned;
    aligned.reserve(paths.size());
    for (const Path& path : paths) aligned.push_back(Coefficients::literal(sum.coefficients.shape(), aligned_entries(sum, path)));
    if (std::ranges::all_of(aligned, [&](const Coefficients& other) { return other == aligned.front(); })) {
        for (std::size_t i = 1; i < paths.size(); ++i) sum.scale += paths[i].scale;
        return sum;
    }
    std::vector<CoefficientEntry> entries;
    for (std::size_t i = 0; i < paths.size(); ++i)
        for (const CoefficientEntry& entry : aligned[i].entries()) entries.push_back({entry.index, entry.value * paths[i].scale});
    sum.coefficients = Coefficients::literal(sum.coefficients.shape(), std::move(entries));
    sum.scale = 1;
    return sum;
}

/// Paths at the same places. Named ones of equal coefficients and axes have met already.
struct Group {
    std::vector<Path> named, literal;

    void add(Path path) {
        if (path.coefficients.name().empty()) {
            literal.push_back(std::move(path));
            return;
        }
        const auto equal = std::ranges::find_if(
            named, [&](const Path& other) { return other.coefficients == path.coefficients && same_axes(other, path); });
        if (equal == named.end()) named.push_back(std::move(path));
        else equal->scale += path.scale;
    }

    std::vector<Path> finish() {
        if (literal.size() > 1) literal = {added(literal)};
        std::erase_if(literal, is_zero);
        std::erase_if(named, is_zero);
        std::vector<Path> paths = std::move(named);
        paths.insert(paths.end(), literal.begin(), literal.end());
        // Distinct coefficients may still cancel: an antisymmetric coupling with its axes exchanged.
        if (paths.size() > 1 && is_zero(added(paths))) paths.clear();
        return paths;
    }
};

}  // namespace

std::vector<Path> simplified_paths(const Polynomial& polynomial) {
    SymmetricAxes symmetric_axes;
    std::unordered_map<std::string, std::size_t> position;
    std::vector<Group> groups;
    position.reserve(polynomial.paths.size());
    for (Path path : polynomial.paths) {
        if (is_zero(path)) continue;
        drop_unit_axes(path);
        if (path.scale == 0) continue;
        const std::vector<int>& symmetric = symmetric_axes.of(path.coefficients);
        std::string key = make_canonical(path, symmetric);
        if (cancels(path, symmetric)) continue;
        const auto [found, is_new] = position.try_emplace(std::move(key), groups.size());
        if (is_new) groups.emplace_back();
        groups[found->second].add(std::move(path));
    }
    std::vector<Path> paths;
    paths.reserve(groups.size());
    for (Group& group : groups)
        for (Path& path : group.finish()) paths.push_back(std::move(path));
    std::ranges::stable_sort(paths, [](const Path& a, const Path& b) {
        if (before(a.output(), b.output()) || before(b.output(), a.output())) return before(a.output(), b.output());
        if (std::ranges::lexicographical_compare(a.factors, b.factors, before)) return true;
        if (std::ranges::lexicographical_compare(b.factors, a.factors, before)) return false;
        return a.coefficients.name() < b.coefficients.name();
    });
    return paths;
}

Polynomial simplified(const Polynomial& polynomial, bool keep_operands) {
    Polynomial result = polynomial;
    result.paths = simplified_paths(polynomial);
    return keep_operands ? result : drop_unused(result).polynomial;
}

}  // namespace clebsch
