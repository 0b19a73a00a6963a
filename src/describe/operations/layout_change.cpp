#include "describe/operations/layout_change.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"

namespace clebsch {

Polynomial copy(const std::vector<Segment>& segments, const CopyOptions& options) {
    if (!std::isfinite(options.scale)) fail("copy: expected a finite scale, got " + number_text(options.scale));
    Polynomial polynomial;
    polynomial.rows = options.rows;
    polynomial.indices = options.indices;
    polynomial.operands = {make_operand(options.x, segments, Role::input), make_operand(options.out, segments, Role::output)};
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const int segment = static_cast<int>(i);
        add_path(polynomial, {{0, segment, "u", 0}, {1, segment, "u", 1}}, Coefficients::identity(segments[i].components), options.scale,
                 {{'u', segments[i].multiplicity}});
    }
    validate(polynomial);
    return polynomial;
}

Polynomial layout_change(const Irreps& irreps, Layout from, Layout to) {
    CopyOptions options;
    options.x.layout = from;
    options.out.layout = to;
    return copy(segments_of(irreps), options);
}

}  // namespace clebsch
