#include "emit/stream_terms.hpp"

#include <algorithm>
#include <cmath>

namespace clebsch {
namespace {

StreamTerm term_of(const Path& path, const std::array<int, 3>& axes) {
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
    return term;
}

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

}  // namespace

std::map<SegmentName, std::vector<double>> scales_of(const GpuProblem& problem, const StreamSchedule& schedule,
                                                     const std::vector<int>& paths) {
    constexpr double least = 1e-4, most = 1e4;  // beyond, quotients might leave float32's range
    std::map<SegmentName, std::map<int, std::map<double, int>>> counts;
    for (const int p : paths) {
        const StreamTerm term = term_of(problem.polynomial.paths[static_cast<std::size_t>(p)], schedule.axes[static_cast<std::size_t>(p)]);
        for (const StreamTerm::Entry& entry : term.entries)
            for_each_staying(schedule, term, entry, [&](SegmentName name, int component) {
                const double magnitude = std::abs(entry.value);
                counts[name][component][magnitude] += magnitude >= least && magnitude <= most ? 1 : 0;
            });
    }
    std::map<SegmentName, std::vector<double>> scales;
    for (const auto& [name, components] : counts) {
        const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(name.operand)];
        std::vector<double>& scale = scales[name];
        scale.assign(static_cast<std::size_t>(operand.segments[static_cast<std::size_t>(name.segment)].components), 1.0);
        for (const auto& [component, magnitudes] : components) {
            const auto found = std::ranges::max_element(magnitudes, {}, [](const auto& one) { return one.second; });
            if (found->second > 0) scale[static_cast<std::size_t>(component)] = found->first;
        }
    }
    return scales;
}

StreamTerm scaled_term(const GpuProblem& problem, const StreamSchedule& schedule, const BodyShare& share, int path) {
    StreamTerm term = term_of(problem.polynomial.paths[static_cast<std::size_t>(path)], schedule.axes[static_cast<std::size_t>(path)]);
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
