#include "describe/operations/pooling.hpp"

#include "describe/operations/layout_change.hpp"

namespace clebsch {
namespace {

CopyOptions through_index(const PoolingOptions& options) {
    CopyOptions result;
    result.scale = options.scale;
    result.rows = options.rows;
    result.indices = {{options.index, options.rows, options.groups, options.sorted}};
    result.x = options.x;
    result.out = options.out;
    return result;
}

}  // namespace

Polynomial pool_rows(const std::vector<Segment>& segments, const PoolingOptions& options) {
    CopyOptions copies = through_index(options);
    copies.x.rows = each_row();
    copies.out.rows = row_of(options.index);
    return copy(segments, copies);
}

Polynomial broadcast_rows(const std::vector<Segment>& segments, const PoolingOptions& options) {
    CopyOptions copies = through_index(options);
    copies.x.rows = row_of(options.index);
    copies.out.rows = each_row();
    return copy(segments, copies);
}

}  // namespace clebsch
