#include "run/sorted_rows.hpp"

#include <cstring>

#include "base/error.hpp"
#include "run/call.hpp"

namespace clebsch {

SortedRows sorted_rows(const IndexBuffer& index, std::int64_t target_rows) {
    if (target_rows < 0) fail("target rows: expected at least 0, got " + std::to_string(target_rows));
    if (index.size < 0) fail("index: expected at least 0 entries, got " + std::to_string(index.size));
    check_index({"index", "row", "target", false}, index, index.size, target_rows);
    const auto target_of = [&](std::int64_t row) {  // masked rows lead behind the last target
        std::int64_t wide = 0;
        std::int32_t narrow = 0;
        const auto* const data = static_cast<const std::byte*>(index.data);
        if (index.type == IndexType::int64) std::memcpy(&wide, data + row * 8, sizeof wide);
        else std::memcpy(&narrow, data + row * 4, sizeof narrow), wide = narrow;
        return wide < 0 ? target_rows : wide;
    };
    // A counting sort: where rows of each target begin, then every row in its turn.
    std::vector<std::int64_t> next(static_cast<std::size_t>(target_rows) + 2, 0);
    for (std::int64_t row = 0; row < index.size; ++row) ++next[static_cast<std::size_t>(target_of(row)) + 1];
    for (std::size_t target = 1; target < next.size(); ++target) next[target] += next[target - 1];
    SortedRows sorted;
    sorted.rows.resize(static_cast<std::size_t>(index.size));
    sorted.targets.resize(static_cast<std::size_t>(index.size));
    for (std::int64_t row = 0; row < index.size; ++row) {
        const std::int64_t target = target_of(row);
        const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(target)]++);
        sorted.rows[place] = row;
        sorted.targets[place] = target == target_rows ? -1 : target;
    }
    return sorted;
}

}  // namespace clebsch
