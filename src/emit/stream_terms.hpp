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

/// For each number that stays with the receiver and meets coefficients: the magnitude that most of these have.
std::map<SegmentName, std::vector<double>> scales_of(const GpuProblem& problem, const StreamSchedule& schedule,
                                                     const std::vector<int>& paths);

/// A path as it meets numbers scaled so (BodyShare::scales).
StreamTerm scaled_term(const GpuProblem& problem, const StreamSchedule& schedule, const BodyShare& share, int path);

/// value * text, without what changes nothing.
std::string times(double value, const std::string& text, GpuNumber type);

}  // namespace clebsch
