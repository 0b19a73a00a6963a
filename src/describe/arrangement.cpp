#include "describe/arrangement.hpp"

#include <tuple>

namespace clebsch {
namespace {

using Block = std::tuple<std::int64_t, int, Layout>;  // multiplicity, components, layout; a plain run of n numbers is (n, 1, mul_ir)

std::vector<Block> blocks_of(const std::vector<Segment>& segments, Layout layout, bool single_channels_are_plain) {
    std::vector<Block> blocks;
    for (const Segment& segment : segments) {
        if (segment.size() == 0) continue;
        Block block{segment.multiplicity, segment.components, layout};
        if (segment.components == 1 || (segment.multiplicity == 1 && single_channels_are_plain)) {
            block = {segment.size(), 1, Layout::mul_ir};
        } else if (segment.multiplicity == 1) {
            block = {1, segment.components, Layout::mul_ir};
        }
        const bool continues = !blocks.empty() && std::get<2>(block) == Layout::mul_ir && std::get<2>(blocks.back()) == Layout::mul_ir &&
                               std::get<1>(block) == std::get<1>(blocks.back());
        if (continues) {
            std::get<0>(blocks.back()) += std::get<0>(block);
        } else {
            blocks.push_back(block);
        }
    }
    return blocks;
}

}  // namespace

bool same_arrangement(const std::vector<Segment>& a, Layout a_layout, const std::vector<Segment>& b, Layout b_layout) {
    if (a_layout == b_layout && a == b) return true;
    for (bool plain : {false, true}) {
        if (blocks_of(a, a_layout, plain) == blocks_of(b, b_layout, plain)) return true;
    }
    return false;
}

}  // namespace clebsch
