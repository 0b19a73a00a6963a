#include "describe/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "base/error.hpp"

namespace clebsch {
namespace {

constexpr std::size_t largest_expansion = std::size_t{1} << 22;

/// Number of different orders of a sorted list.
double arrangements(std::span<const int> sorted) {
    double count = 1;
    for (std::size_t i = 0, run = 0; i < sorted.size(); ++i) {
        run = i > 0 && sorted[i] == sorted[i - 1] ? run + 1 : 1;
        count = count * static_cast<double>(i + 1) / static_cast<double>(run);
    }
    return count;
}

/// Calls `visit` with every way to deal a sorted list into consecutive parts of the given sizes, each part sorted, no way twice.
void deal(std::vector<int> rest, std::span<const std::size_t> sizes, std::vector<int>& dealt, const std::function<void()>& visit) {
    if (sizes.empty()) return visit();
    if (sizes.size() == 1) {
        dealt.insert(dealt.end(), rest.begin(), rest.end());
        visit();
        dealt.resize(dealt.size() - rest.size());
        return;
    }
    // Choose sizes[0] elements; of equal ones always the first, so that no choice repeats.
    std::vector<int> left;
    const std::function<void(std::size_t, std::size_t)> choose = [&](std::size_t position, std::size_t missing) {
        if (missing == 0) {
            std::vector<int> remaining = left;
            remaining.insert(remaining.end(), rest.begin() + static_cast<std::ptrdiff_t>(position), rest.end());
            return deal(std::move(remaining), sizes.subspan(1), dealt, visit);
        }
        if (position + missing > rest.size()) return;
        dealt.push_back(rest[position]);
        choose(position + 1, missing - 1);
        dealt.pop_back();
        std::size_t next = position;  // leave all elements equal to this one
        while (next < rest.size() && rest[next] == rest[position]) left.push_back(rest[next++]);
        choose(next, missing);
        left.resize(left.size() - (next - position));
    };
    choose(0, sizes[0]);
}

/// A block's axes divided by label: `axes` in the order in which indices are dealt, `sizes` of the parts.
struct Division {
    std::size_t begin = 0;
    std::vector<std::size_t> axes, sizes;
};

std::vector<Division> divisions_of(std::span<const int> block, std::span<const int> label) {
    std::vector<Division> divisions;
    for (std::size_t begin = 0; begin < block.size();) {
        std::size_t end = begin;
        while (end < block.size() && block[end] == block[begin]) ++end;
        Division division;
        division.begin = begin;
        std::vector<bool> done(end - begin, false);
        for (std::size_t a = begin; a < end; ++a) {
            if (done[a - begin]) continue;
            std::size_t size = 0;
            for (std::size_t b = a; b < end; ++b) {
                if (b != a && (label[a] < 0 || label[b] != label[a])) continue;
                done[b - begin] = true;
                division.axes.push_back(b);
                ++size;
            }
            division.sizes.push_back(size);
        }
        divisions.push_back(std::move(division));
        begin = end;
    }
    return divisions;
}

/// Terms over blocks become entries over the parts of each block that have the same label.
std::vector<CoefficientEntry> divided(const ExchangeForm& tensor, std::span<const int> group, const std::string& name) {
    const std::vector<Division> divisions = divisions_of(tensor.block, group);
    if (std::ranges::all_of(divisions, [](const Division& division) { return division.sizes.size() == 1; })) return tensor.terms;
    std::vector<CoefficientEntry> result;
    for (const CoefficientEntry& term : tensor.terms) {
        CoefficientEntry entry = term;
        const std::function<void(std::size_t, double)> next = [&](std::size_t d, double value) {
            if (d == divisions.size()) {
                if (result.size() >= largest_expansion)
                    throw Error(ErrorKind::unsupported, "coefficients '" + name + "'" + ": more than 2^22 entries when written out");
                result.push_back({entry.index, value});
                return;
            }
            const Division& division = divisions[d];
            if (division.sizes.size() == 1) return next(d + 1, value);
            const auto begin = term.index.begin() + static_cast<std::ptrdiff_t>(division.begin);
            const std::vector<int> all(begin, begin + static_cast<std::ptrdiff_t>(division.axes.size()));
            const double share = value / arrangements(all);
            std::vector<int> dealt;
            deal(all, division.sizes, dealt, [&] {
                double part = share;
                std::size_t at = 0;
                for (const std::size_t size : division.sizes) {
                    part *= arrangements(std::span(dealt).subspan(at, size));
                    at += size;
                }
                for (std::size_t i = 0; i < dealt.size(); ++i) entry.index[division.axes[i]] = dealt[i];
                next(d + 1, part);
            });
        };
        next(0, term.value);
    }
    return result;
}

/// Sorts indices along the axes of every label that several parts carry. Returns whether there is one.
bool sort_across_parts(std::vector<CoefficientEntry>& entries, std::span<const int> block, std::span<const int> group) {
    std::vector<std::vector<std::size_t>> shared;  // axes of a label
    for (std::size_t a = 0; a < group.size(); ++a) {
        if (group[a] < 0) continue;
        const auto same =
            std::ranges::find_if(shared, [&](const std::vector<std::size_t>& axes) { return group[axes.front()] == group[a]; });
        if (same == shared.end()) shared.push_back({a});
        else same->push_back(a);
    }
    std::erase_if(shared, [&](const std::vector<std::size_t>& axes) { return block[axes.front()] == block[axes.back()]; });
    for (const std::vector<std::size_t>& axes : shared) {
        std::vector<int> indices(axes.size());
        for (CoefficientEntry& entry : entries) {
            for (std::size_t i = 0; i < axes.size(); ++i) indices[i] = entry.index[axes[i]];
            std::ranges::sort(indices);
            for (std::size_t i = 0; i < axes.size(); ++i) entry.index[axes[i]] = indices[i];
        }
    }
    return !shared.empty();
}

}  // namespace

bool ExchangeForm::expanded() const { return std::ranges::adjacent_find(block) == block.end(); }

std::vector<CoefficientEntry> grouped(const ExchangeForm& tensor, std::span<const int> group, const std::string& name) {
    std::vector<CoefficientEntry> entries = divided(tensor, group, name);
    if (sort_across_parts(entries, tensor.block, group)) sort_and_merge(entries);
    else std::ranges::sort(entries, {}, &CoefficientEntry::index);
    return entries;
}

void sort_and_merge(std::vector<CoefficientEntry>& entries) {
    std::ranges::stable_sort(entries, {}, &CoefficientEntry::index);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < entries.size();) {
        double sum = 0, size = 0;
        std::size_t end = i;
        for (; end < entries.size() && entries[end].index == entries[i].index; ++end) {
            sum += entries[end].value;
            size += std::abs(entries[end].value);
        }
        if (std::abs(sum) > 1e-15 * size) {
            if (kept != i) entries[kept].index = std::move(entries[i].index);
            entries[kept++].value = sum;
        }
        i = end;
    }
    entries.resize(kept);
}

}  // namespace clebsch
