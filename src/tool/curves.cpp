#include "tool/curves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tool/svg.hpp"

namespace clebsch::tool {
namespace {

constexpr double width = 900, left = 100, right = 740, first_top = 90, panel_height = 150, gap = 48;

/// Linear axis with round ticks: 1, 2 or 5 times a power of ten apart.
struct Axis {
    double low = 0, high = 1, step = 1, begin, end;

    Axis(double least, double most, double begin_pixel, double end_pixel, bool widen) : begin(begin_pixel), end(end_pixel) {
        if (!(most - least > 1e-12 * std::max(std::abs(most), std::abs(least)))) {
            const double room = std::max(0.5e-3 * std::abs(most), 1e-12);  // a constant lies in the middle
            least -= room, most += room;
        }
        const double rough = (most - least) / 5, power = std::pow(10.0, std::floor(std::log10(rough)));
        step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
        low = widen ? std::floor(least / step) * step : least;
        high = widen ? std::ceil(most / step) * step : most;
    }
    double at(double value) const { return begin + (value - low) / (high - low) * (end - begin); }
    std::vector<double> ticks() const {
        std::vector<double> out;
        const auto first = static_cast<long>(std::ceil(low / step - 1e-6)), last = static_cast<long>(std::floor(high / step + 1e-6));
        for (long i = first; i <= last; ++i) out.push_back(static_cast<double>(i) * step);
        return out;
    }
    std::string text(double value) const {
        const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
        return formatted("%.*f", decimals, std::abs(value) < step / 2 ? 0.0 : value);
    }
};

Axis vertical_axis(const Panel& panel, double top) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const Curve& curve : panel.curves)
        for (const double value : curve.values)
            if (std::isfinite(value)) least = std::min(least, value), most = std::max(most, value);
    if (!(least <= most)) least = 0, most = 1;
    return {least, most, top + panel_height, top, true};
}

}  // namespace

std::string curves_svg(const std::string& title, const std::string& subtitle, const std::string& x_title, const std::vector<double>& x,
                       const std::vector<Panel>& panels) {
    const double height = first_top + static_cast<double>(panels.size()) * (panel_height + gap) + 16;
    std::string svg = svg_begin(width, height, left, title, subtitle);
    const Axis across(x.empty() ? 0 : x.front(), x.empty() ? 1 : x.back(), left, right, false);
    double top = first_top;
    for (const Panel& panel : panels) {
        const Axis up = vertical_axis(panel, top);
        const double bottom = top + panel_height;
        svg += svg_text(left, top - 9, panel.title, "font-weight=\"600\"");
        for (const double tick : up.ticks()) {
            svg += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", left, up.at(tick), right,
                             up.at(tick), svg_grid_colour);
            svg += svg_text(left - 8, up.at(tick) + 4, up.text(tick), "text-anchor=\"end\"");
        }
        for (const double tick : across.ticks()) {
            svg += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", across.at(tick), top,
                             across.at(tick), bottom, svg_grid_colour);
            svg += svg_text(across.at(tick), bottom + 16, across.text(tick), "text-anchor=\"middle\"");
        }
        double line = top + 6;
        for (std::size_t c = 0; c < panel.curves.size(); ++c, line += 20) {
            const Curve& curve = panel.curves[c];
            std::string points;
            for (std::size_t i = 0; i < x.size() && i < curve.values.size(); ++i)
                if (std::isfinite(curve.values[i])) points += formatted("%.1f,%.1f ", across.at(x[i]), up.at(curve.values[i]));
            svg += "<polyline points=\"" + points +
                   formatted("\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" stroke-linejoin=\"round\"/>\n",
                             svg_colours[c % svg_colours.size()]);
            svg += formatted("<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n", right + 18, line - 6,
                             svg_colours[c % svg_colours.size()]);
            svg += svg_text(right + 36, line + 4, curve.label, "");
        }
        top += panel_height + gap;
    }
    svg += svg_text((left + right) / 2, height - 22, x_title, "text-anchor=\"middle\"");
    return svg + "</svg>\n";
}

}  // namespace clebsch::tool
