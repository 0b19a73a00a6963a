#include "schedule/stream_division.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace clebsch {
namespace {

using Place = std::pair<int, int>;  // operand and segment; -1: absent
constexpr Place absent{-1, -1};
constexpr double row_instructions = 24;  // of a warp, whatever it computes: waiting, addresses, arriving

Place place_of(const Factor& factor) { return {factor.operand, factor.segment}; }

int components(const GpuProblem& problem, Place place) {
    if (place == absent) return 1;
    return problem.polynomial.operands[static_cast<std::size_t>(place.first)].segments[static_cast<std::size_t>(place.second)].components;
}

/// What the straight-line code shares by: emit/stream_row.cpp says how. Counts follow it closely enough to compare divisions.
struct PathShape {
    Place axis[3] = {absent, absent, absent};
    std::vector<Place> scalars;
    Place output;
    int output_axis = -1, entries = 0;
    int coefficients = 0;  // a number for each tensor
};

/// A path's numbers as they stand on the three axes: equal for paths that share sums, however their tensors are arranged.
std::vector<std::pair<std::array<int, 3>, double>> arranged(const Path& path, const std::array<int, 3>& axes) {
    std::vector<std::pair<std::array<int, 3>, double>> entries;
    for (const CoefficientEntry& entry : path.coefficients.entries()) {
        std::array<int, 3> index{};
        for (std::size_t k = 0; k < 3; ++k)
            if (const int f = axes[k]; f >= 0)
                if (const int axis = path.factors[static_cast<std::size_t>(f)].axis; axis >= 0)
                    index[k] = entry.index[static_cast<std::size_t>(axis)];
        entries.emplace_back(index, entry.value * path.scale);
    }
    std::ranges::sort(entries);
    return entries;
}

PathShape shape_of(const Path& path, const std::array<int, 3>& axes) {
    PathShape shape;
    for (int f = 0; f < static_cast<int>(path.factors.size()); ++f) {
        const Place place = place_of(path.factors[static_cast<std::size_t>(f)]);
        const auto found = std::ranges::find(axes, f);
        const bool output = f + 1 == static_cast<int>(path.factors.size());
        if (found != axes.end()) shape.axis[found - axes.begin()] = place;
        else if (!output) shape.scalars.push_back(place);
        if (!output) continue;
        shape.output = place;
        shape.output_axis = found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
    }
    std::ranges::sort(shape.scalars);
    shape.entries = static_cast<int>(path.coefficients.entries().size());
    return shape;
}

/// What a warp's share costs.
struct ShareCost {
    double instructions = 0;  // per row
    int live = 0;             // registers' worth of numbers of one channel that live through the loop
    int row = 0;              // of those that live while one segment of an output is summed
};

class Divider {
 public:
    Divider(const GpuProblem& problem, const StreamSchedule& schedule) : problem_(problem), schedule_(schedule) {
        std::map<std::vector<std::pair<std::array<int, 3>, double>>, int> numbers;
        for (std::size_t p = 0; p < problem.polynomial.paths.size(); ++p) {
            const Path& path = problem.polynomial.paths[p];
            PathShape shape = shape_of(path, schedule.axes[p]);
            shape.coefficients = numbers.emplace(arranged(path, schedule.axes[p]), static_cast<int>(numbers.size())).first->second;
            if (shape.coefficients == static_cast<int>(entries_.size())) entries_.push_back(shape.entries);
            shapes_.push_back(std::move(shape));
        }
    }

    /// The same shares occur in most divisions.
    ShareCost cost(const std::vector<int>& paths) {
        const auto [found, is_new] = costs_.try_emplace(paths);
        if (is_new) found->second = computed(paths);
        return found->second;
    }

    ShareCost computed(const std::vector<int>& paths) const {
        ShareCost result;
        std::set<Place> read, live, written;
        using Pair = std::pair<Place, Place>;
        std::map<std::tuple<Place, Place, int, std::vector<Place>, Place, Place>, std::set<Pair>> products;
        std::map<std::tuple<Place, Place>, std::set<std::pair<int, std::vector<Place>>>> couplings;  // (output, other) -> terms
        std::map<std::tuple<Place, Place>, int> places;
        std::map<std::pair<int, std::vector<Place>>, int> coupling_entries;
        std::set<std::vector<Place>> weighted;
        for (const int p : paths) {
            const PathShape& shape = shapes_[static_cast<std::size_t>(p)];
            for (const Factor& factor : problem_.polynomial.paths[static_cast<std::size_t>(p)].factors) {
                const StreamWay way = schedule_.operands[static_cast<std::size_t>(factor.operand)].way;
                const Place place = place_of(factor);
                if (way == StreamWay::staged && read.insert(place).second)
                    result.instructions += factor.channels.empty() ? 1 + components(problem_, place) / 4 : components(problem_, place);
                if (way == StreamWay::constant || way == StreamWay::accumulated) live.insert(place);
                if (way == StreamWay::scattered) result.row = std::max(result.row, components(problem_, place) * width());
            }
            if (shape.output_axis == 0 || shape.output_axis == 1) {
                const Place other = shape.axis[1 - shape.output_axis];
                std::vector<Place> weights = shape.scalars;
                weights.push_back(shape.axis[2]);
                const int last = components(problem_, shape.axis[2]);
                if (!shape.scalars.empty() && weighted.insert(weights).second) result.instructions += last;
                const std::pair<int, std::vector<Place>> term{shape.coefficients, weights};
                couplings[{shape.output, other}].insert(term);
                coupling_entries[term] = shape.entries;
                int& most = places[{shape.output, other}];
                most = std::min(components(problem_, shape.output) * components(problem_, other), most + shape.entries);
            } else {
                const Place third = shape.output_axis < 0 ? shape.axis[2] : absent;
                products[{{0, shape.axis[0].second}, {0, shape.axis[1].second}, shape.coefficients, shape.scalars, shape.output, third}]
                    .emplace(shape.axis[0], shape.axis[1]);
                result.instructions += components(problem_, shape.axis[2]) + (shape.output_axis < 0 ? 1 : 0);
            }
            if (written.insert(shape.output).second) {
                const StreamOperand& output = schedule_.operands[static_cast<std::size_t>(shape.output.first)];
                if (output.way == StreamWay::stored || output.way == StreamWay::scattered)
                    result.instructions += (output.handed ? 1 : 3) * components(problem_, shape.output);
            }
        }
        std::set<std::pair<int, std::set<Pair>>> sums;
        std::set<std::set<Pair>> pairs;
        for (const auto& [key, set] : products) {
            // One number of each sum needs no multiplication: its coefficient moves to what stays.
            if (sums.emplace(std::get<2>(key), set).second)
                result.instructions += 0.75 * entries_[static_cast<std::size_t>(std::get<2>(key))];
            if (pairs.insert(set).second)
                for (const auto& [a, b] : set) result.instructions += components(problem_, a) * components(problem_, b);
        }
        std::set<std::set<std::pair<int, std::vector<Place>>>> coupled;
        for (const auto& [user, terms] : couplings) {
            result.instructions += places.at(user);
            if (!coupled.insert(terms).second) continue;
            for (const auto& term : terms) result.instructions += 0.6 * coupling_entries.at(term);
        }
        for (const Place& place : live) result.live += components(problem_, place) * width();
        return result;
    }

    /// What a warp adds to its shares: the loop, and sums over lanes.
    double overhead() const {
        double count = row_instructions;
        for (int left = schedule_.partial_numbers; left > 0; left -= 32) {
            int padded = 1;
            while (padded < std::min(left, 32)) padded *= 2;
            count += 4.0 * padded + 6;
        }
        return count;
    }

    /// Paths that stay together, at one of three levels: those with one sum or stored output always; from level 1 on those that share
    /// products; at level 2 those that add to one row elsewhere, too.
    std::vector<std::vector<int>> bundles(const std::vector<int>& paths, int level) const {
        std::vector<std::size_t> parent(paths.size());
        std::iota(parent.begin(), parent.end(), std::size_t{0});
        const auto root = [&](std::size_t i) {
            while (parent[i] != i) i = parent[i];
            return i;
        };
        std::map<std::tuple<int, int, int>, std::size_t> first;
        const auto join = [&](std::size_t i, int kind, int a, int b) {
            const auto [found, fresh] = first.emplace(std::tuple{kind, a, b}, i);
            if (fresh) return;
            const std::size_t one = root(i), other = root(found->second);
            parent[std::max(one, other)] = std::min(one, other);
        };
        for (std::size_t i = 0; i < paths.size(); ++i) {
            const PathShape& shape = shapes_[static_cast<std::size_t>(paths[i])];
            const StreamWay way = schedule_.operands[static_cast<std::size_t>(shape.output.first)].way;
            if (way == StreamWay::accumulated || way == StreamWay::stored) join(i, 0, shape.output.first, shape.output.second);
            if (level >= 1) join(i, 1, shape.axis[0].second, shape.axis[1].second);
            if (level >= 2 && way == StreamWay::scattered) join(i, 2, shape.output.first, shape.output.second);
        }
        std::map<std::size_t, std::vector<int>> sets;
        for (std::size_t i = 0; i < paths.size(); ++i) sets[root(i)].push_back(paths[i]);
        std::vector<std::vector<int>> result;
        result.reserve(sets.size());
        for (auto& [key, set] : sets) result.push_back(std::move(set));
        return result;
    }

    /// Deals bundles, heavy ones first, each to the warp with least work. `alike`: every block of channels gets as many warps of its own,
    /// so that the warps of different blocks run the same code; nothing where blocks differ in their paths.
    StreamDivision divide(int warps, int level, bool alike) {
        struct Item {
            double instructions = 0;
            int block = 0;
            std::vector<int> paths;
        };
        std::vector<Item> items;
        std::vector<int> before;
        std::vector<Item> of_block;
        for (int block = 0; block * 32 < schedule_.channels; ++block) {
            std::vector<int> paths;
            for (int p = 0; p < static_cast<int>(shapes_.size()); ++p)
                if (problem_.polynomial.paths[static_cast<std::size_t>(p)].extents.front().second > 32 * block) paths.push_back(p);
            if (block == 0 || paths != before) {
                of_block.clear();
                for (std::vector<int>& bundle : bundles(paths, level)) of_block.push_back({cost(bundle).instructions, block, bundle});
                before = paths;
            } else if (alike) continue;
            if (alike && block > 0) return {};
            for (Item& item : of_block) item.block = block;
            items.insert(items.end(), of_block.begin(), of_block.end());
        }
        const int count = (schedule_.channels + 31) / 32;
        if (alike) {
            if (count == 1 || warps % count != 0) return {};
            warps /= count;
        }
        std::ranges::stable_sort(items, std::greater<>{}, &Item::instructions);
        std::vector<std::map<int, std::vector<int>>> shares(static_cast<std::size_t>(warps));  // by block
        std::vector<double> work(shares.size(), 0);
        for (const Item& item : items) {
            constexpr double equal = 1e-9;
            std::size_t least = 0;
            for (std::size_t w = 1; w < work.size(); ++w)
                if (work[w] < work[least] * (1 - equal)) least = w;
            work[least] += item.instructions;
            std::vector<int>& paths = shares[least][item.block];
            paths.insert(paths.end(), item.paths.begin(), item.paths.end());
        }
        if (alike) {
            const std::size_t of_first = shares.size();
            for (int block = 1; block < count; ++block)
                for (std::size_t w = 0; w < of_first; ++w)
                    if (!shares[w].empty()) shares.push_back({{block, shares[w].at(0)}});
        }
        struct Warp {
            std::vector<StreamShare> shares;
            double instructions = 0;
        };
        std::vector<Warp> list;
        StreamDivision division;
        for (auto& blocks : shares) {
            if (blocks.empty()) continue;
            Warp warp{.shares = {}, .instructions = overhead()};
            int live = 0, row = 0;
            for (auto& [block, paths] : blocks) {
                std::ranges::sort(paths);
                const ShareCost share = cost(paths);
                warp.instructions += share.instructions;
                live += share.live;
                row = std::max(row, share.row);
                warp.shares.push_back({block, paths});
            }
            division.live = std::max(division.live, live + row + reduced_numbers(warp.shares));
            list.push_back(std::move(warp));
        }
        // Warps with the same paths side by side: they share code.
        std::ranges::stable_sort(list, {},
                                 [](const Warp& warp) { return std::tuple(warp.shares.front().paths, warp.shares.front().block); });
        for (Warp& warp : list) {
            division.warps.push_back(std::move(warp.shares));
            division.instructions.push_back(warp.instructions);
        }
        return division;
    }

 private:
    const GpuProblem& problem_;
    const StreamSchedule& schedule_;
    std::vector<PathShape> shapes_;
    std::map<std::vector<int>, ShareCost> costs_;
    std::vector<int> entries_;  // of each coefficient tensor

    /// Registers' worth of channel-free outputs that a warp sums over all its shares.
    int reduced_numbers(const std::vector<StreamShare>& shares) const {
        std::set<Place> places;
        for (const StreamShare& share : shares)
            for (const int p : share.paths) {
                const Place output = shapes_[static_cast<std::size_t>(p)].output;
                if (schedule_.operands[static_cast<std::size_t>(output.first)].way == StreamWay::reduced) places.insert(output);
            }
        int count = 0;
        for (const Place& place : places) count += components(problem_, place);
        return count * width();
    }
    int width() const { return problem_.compute == GpuNumber::float64 ? 2 : 1; }
};

}  // namespace

std::vector<StreamDivision> divisions(const GpuProblem& problem, const StreamSchedule& schedule, const std::vector<int>& warps) {
    Divider divider(problem, schedule);
    std::vector<StreamDivision> list;
    for (const int count : warps)
        for (const int level : {2, 1, 0})
            for (const bool alike : {true, false})
                if (StreamDivision division = divider.divide(count, level, alike); !division.warps.empty())
                    list.push_back(std::move(division));
    return list;
}

}  // namespace clebsch
