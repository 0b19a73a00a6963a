#include "schedule/matrix_path.hpp"

#include <algorithm>

namespace clebsch {
namespace {

bool subset(const Letters& letters, const Letters& of) {
    return std::ranges::all_of(letters, [&](char letter) { return of.find(letter) != Letters::npos; });
}

/// Letters of a side as two nested loops: at most two, and every factor carries them in this order.
bool walkable(const Path& path, const Letters& letters, const std::vector<int>& side) {
    if (letters.size() > 2) return false;
    return std::ranges::all_of(side, [&](int f) {
        const Letters& channels = path.factors[static_cast<std::size_t>(f)].channels;
        return subset(channels, letters) && (channels.size() < 2 || channels == letters);
    });
}

}  // namespace

std::int64_t MatrixPath::extent(const Letters& letters) const {
    std::int64_t n = 1;
    for (const char letter : letters) n *= path->extent(letter);
    return n;
}

std::optional<MatrixPath> as_matrix_path(const Polynomial& polynomial, const Path& path) {
    if (!restrictions(path).empty()) return std::nullopt;
    for (const auto& [letter, extent] : path.extents)
        if (extent == 0) return std::nullopt;
    MatrixPath result{.path = &path};
    int most = 1;
    for (std::size_t f = 0; f < path.factors.size(); ++f) {
        const Factor& factor = path.factors[f];
        const Segment& segment =
            polynomial.operands[static_cast<std::size_t>(factor.operand)].segments[static_cast<std::size_t>(factor.segment)];
        if (segment.components == 1 && static_cast<int>(factor.channels.size()) > most) {
            most = static_cast<int>(factor.channels.size());
            result.weight = static_cast<int>(f);
        }
    }
    const Letters letters = path.factors[static_cast<std::size_t>(result.weight)].channels;
    if (most < 2 || letters.size() != path.extents.size()) return std::nullopt;
    for (std::size_t split = 1; split < letters.size(); ++split) {
        result.rows = letters.substr(0, split);
        result.columns = letters.substr(split);
        result.row_side.clear(), result.column_side.clear(), result.neither.clear();
        for (int f = 0; f < static_cast<int>(path.factors.size()); ++f) {
            if (f == result.weight) continue;
            const Letters& channels = path.factors[static_cast<std::size_t>(f)].channels;
            (channels.empty() ? result.neither : subset(channels, result.rows) ? result.row_side : result.column_side).push_back(f);
        }
        if (walkable(path, result.rows, result.row_side) && walkable(path, result.columns, result.column_side)) return result;
    }
    return std::nullopt;
}

std::optional<double> diagonal(const Polynomial& polynomial, const Path& path, int a, int b) {
    const std::vector<CoefficientEntry> entries = reduced_entries(path);
    for (int f = 0; f < static_cast<int>(path.factors.size()); ++f) {
        const Factor& factor = path.factors[static_cast<std::size_t>(f)];
        const int components =
            polynomial.operands[static_cast<std::size_t>(factor.operand)].segments[static_cast<std::size_t>(factor.segment)].components;
        if (components != (f == a || f == b ? static_cast<int>(entries.size()) : 1)) return std::nullopt;
    }
    for (const CoefficientEntry& entry : entries)
        if (entry.index[static_cast<std::size_t>(a)] != entry.index[static_cast<std::size_t>(b)] || entry.value != entries.front().value)
            return std::nullopt;
    return entries.empty() ? std::nullopt : std::optional<double>(entries.front().value);
}

}  // namespace clebsch
