#include "schedule/letters.hpp"

#include <vector>

namespace clebsch {

LetterPlace place_of(const Path& path, const Factor& factor) {
    LetterPlace place;
    const std::vector<ChannelGroup> groups = parse_channels(factor.channels);
    std::int64_t step = 1;  // of the group: the extents of all groups to its right
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
        const std::int64_t n = path.extent(group->first);
        if (group->restricted()) {
            // Pair u < v has number u n - u (u + 1) / 2 + v - u - 1.
            place.constant -= step;
            place.linear[group->first - 'a'] += step * (n - 1);
            place.triangular[group->first - 'a'] -= step;
            place.linear[group->second - 'a'] += step;
            step *= n * (n - 1) / 2;
        } else {
            place.linear[group->first - 'a'] += step;
            step *= n;
        }
    }
    return place;
}

}  // namespace clebsch
