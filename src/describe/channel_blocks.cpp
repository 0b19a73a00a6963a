// Splitting by blocks of channels: a schedule then sees blocks whose paths all reach all channels.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "describe/rewrites.hpp"

namespace clebsch {
namespace {

bool is_channelwise(const Path& path) {
    if (path.extents.size() != 1) return false;
    const std::string letter(1, path.extents.front().first);
    return std::ranges::all_of(path.factors, [&](const Factor& factor) { return factor.channels.empty() || factor.channels == letter; });
}

/// Collects paths over cut segments; operands and segments appear in the order of the polynomial.
class BlockBuilder {
 public:
    BlockBuilder(const Polynomial& polynomial, std::int64_t begin, std::int64_t end) : source_(polynomial), begin_(begin), end_(end) {}

    void add(const Path& path) { paths_.push_back(&path); }
    bool empty() const { return paths_.empty(); }

    ChannelBlock finish() const {
        ChannelBlock block{{source_.rows, source_.indices, {}, {}}, begin_, end_, {}, {}};
        std::map<Part, std::pair<int, int>> positions;  // operand and segment of the block
        for (const Path* path : paths_)
            for (const Factor& factor : path->factors) positions.try_emplace(part_of(factor));
        for (auto& [part, position] : positions) {  // in order of operand, segment, first channel
            const auto& [operand, segment, first_channel, multiplicity] = part;
            if (block.operands.empty() || block.operands.back() != operand) {
                block.operands.push_back(operand);
                block.segments.emplace_back();
                block.polynomial.operands.push_back(source_.operands[static_cast<std::size_t>(operand)]);
                block.polynomial.operands.back().segments.clear();
            }
            std::vector<Segment>& segments = block.polynomial.operands.back().segments;
            position = {static_cast<int>(block.operands.size()) - 1, static_cast<int>(segments.size())};
            segments.push_back(segment_at(operand, segment));
            segments.back().multiplicity = multiplicity;
            block.segments.back().push_back({segment, first_channel});
        }
        for (const Path* path : paths_) {
            Path cut = *path;
            for (Factor& factor : cut.factors) std::tie(factor.operand, factor.segment) = positions.at(part_of(factor));
            if (end_ > 0) cut.extents.front().second = end_ - begin_;
            block.polynomial.paths.push_back(std::move(cut));
        }
        return block;
    }

 private:
    using Part = std::tuple<int, int, std::int64_t, std::int64_t>;  // operand, segment, first channel, number of channels

    const Segment& segment_at(int operand, int segment) const {
        return source_.operands[static_cast<std::size_t>(operand)].segments[static_cast<std::size_t>(segment)];
    }
    Part part_of(const Factor& factor) const {
        if (end_ > 0 && !factor.channels.empty()) return {factor.operand, factor.segment, begin_, end_ - begin_};
        return {factor.operand, factor.segment, 0, segment_at(factor.operand, factor.segment).multiplicity};
    }

    const Polynomial& source_;
    std::int64_t begin_, end_;
    std::vector<const Path*> paths_;
};

}  // namespace

std::vector<ChannelBlock> split_by_channels(const Polynomial& polynomial) {
    std::set<std::int64_t> ends;
    for (const Path& path : polynomial.paths)
        if (is_channelwise(path) && path.extents.front().second > 0) ends.insert(path.extents.front().second);
    std::vector<ChannelBlock> blocks;
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
        BlockBuilder builder(polynomial, begin, end);
        for (const Path& path : polynomial.paths)
            if (is_channelwise(path) && path.extents.front().second >= end) builder.add(path);
        blocks.push_back(builder.finish());
        begin = end;
    }
    BlockBuilder rest(polynomial, 0, 0);
    for (const Path& path : polynomial.paths)
        if (!is_channelwise(path)) rest.add(path);
    if (!rest.empty()) blocks.push_back(rest.finish());
    return blocks;
}

}  // namespace clebsch
