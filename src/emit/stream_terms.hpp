#pragma once
// Paths of a stream kernel as its straight-line code takes them: factors on three axes, coefficients as numbers, and the scales by which
// most of these numbers become +-1.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "emit/stream_body.hpp"

namespace clebsch {

struct StreamTerm {
    struct Entry {
        int index[3];
        double value;  ///< the path's scale included
    };
    const Path* path = nullptr;
    SegmentName axis[3] = {absent, absent, absent};
    std::vector<SegmentName> scalars;  ///< inputs without an axis
    SegmentName output;
    int output_axis = -1;
    std::vector<Entry> entries;
    std::string coefficients;  ///< text that tells entries apart

    static constexpr SegmentName absent{-1, -1};
};

/// A path with unscaled coefficients. `axes`: of the path, as in StreamSchedule.
StreamTerm stream_term(const Path& path, const std::array<int, 3>& axes);

/// Visits the numbers that stay with the receiver and meet an entry of the term, on an axis or on none: segment and component.
template <class Visit>
void for_each_staying(const StreamSchedule& schedule, const StreamTerm& term, const StreamTerm::Entry& entry, Visit&& visit) {
    const auto visit_staying = [&](SegmentName name, int component) {
        const StreamWay way = schedule.operands[static_cast<std::size_t>(name.operand)].way;
        if (way == StreamWay::constant || way == StreamWay::accumulated) visit(name, component);
    };
    for (int k = 0; k < 3; ++k)
        if (term.axis[k] != StreamTerm::absent) visit_staying(term.axis[k], entry.index[k]);
    for (const SegmentName name : term.scalars) visit_staying(name, 0);
    if (term.output_axis < 0) visit_staying(term.output, 0);
}

/// For each number that stays with the receiver and meets coefficients: a magnitude of theirs, so that few sums of the row have no
/// coefficient +-1 (emit/stream_scales.cpp).
std::map<SegmentName, std::vector<double>> scales_of(const GpuProblem& problem, const StreamSchedule& schedule,
                                                     const std::vector<int>& paths);

/// A path as it meets numbers scaled so (BodyShare::scales).
StreamTerm scaled_term(const GpuProblem& problem, const StreamSchedule& schedule, const BodyShare& share, int path);

/// value * text, without what changes nothing.
std::string times(double value, const std::string& text, GpuNumber type);

}  // namespace clebsch
