#include "emit/stream_terms.hpp"

#include <algorithm>
#include <cmath>

namespace clebsch {

StreamTerm stream_term(const Path& path, const std::array<int, 3>& axes) {
    StreamTerm term;
    term.path = &path;
    std::array<int, 3> source{-1, -1, -1};  // axis of the coefficients for each of the three
    for (int f = 0; f < static_cast<int>(path.factors.size()); ++f) {
        const Factor& factor = path.factors[static_cast<std::size_t>(f)];
        const SegmentName name{factor.operand, factor.segment};
        const auto place = std::ranges::find(axes, f);
        const bool output = f + 1 == static_cast<int>(path.factors.size());
        if (place != axes.end()) {
            term.axis[place - axes.begin()] = name;
            source[static_cast<std::size_t>(place - axes.begin())] = factor.axis;
        } else if (!output) {
            term.scalars.push_back(name);
        }
        if (output) {
            term.output = name;
            term.output_axis = place == axes.end() ? -1 : static_cast<int>(place - axes.begin());
        }
    }
    std::ranges::sort(term.scalars);
    for (const CoefficientEntry& entry : path.coefficients.entries()) {
        StreamTerm::Entry copy{{0, 0, 0}, entry.value * path.scale};
        for (std::size_t k = 0; k < 3; ++k)
            if (source[k] >= 0) copy.index[k] = entry.index[static_cast<std::size_t>(source[k])];
        term.entries.push_back(copy);
    }
    // The same numbers may come in another arrangement.
    std::ranges::sort(term.entries, {}, [](const StreamTerm::Entry& entry) {
        return std::array{entry.index[0], entry.index[1], entry.index[2]};
    });
    return term;
}

StreamTerm scaled_term(const GpuProblem& problem, const StreamSchedule& schedule, const BodyShare& share, int path) {
    StreamTerm term = stream_term(problem.polynomial.paths[static_cast<std::size_t>(path)], schedule.axes[static_cast<std::size_t>(path)]);
    for (StreamTerm::Entry& entry : term.entries) {
        double divisor = 1;
        for_each_staying(schedule, term, entry,
                         [&](SegmentName name, int component) { divisor *= share.scales.at(name)[static_cast<std::size_t>(component)]; });
        entry.value /= divisor;
        for (const int index : entry.index) term.coefficients += std::to_string(index) + ",";
        term.coefficients += literal(entry.value, GpuNumber::float64) + ";";
    }
    return term;
}

std::string times(double value, const std::string& text, GpuNumber type) {
    if (text.empty()) return literal(value, type);
    if (value == 1) return text;
    return value == -1 ? "-" + text : literal(value, type) + " * " + text;
}

}  // namespace clebsch
