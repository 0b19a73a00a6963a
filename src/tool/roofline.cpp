#include "tool/roofline.hpp"

#include <algorithm>
#include <cmath>

#include "tool/svg.hpp"

namespace clebsch::tool {
namespace {

constexpr double width = 900, left = 70, right = 640, top = 70, bottom = 500;

/// Logarithmic axis from whole powers of two.
struct Axis {
    double low, high, begin, end;  // exponents of 2; pixels
    double at(double value) const { return begin + (std::log2(value) - low) / (high - low) * (end - begin); }
};

std::string shape(int series, double x, double y, const char* colour) {
    const char* style = "stroke=\"white\" stroke-width=\"1\"";
    if (series == 0) return formatted("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5.5\" fill=\"%s\" %s/>\n", x, y, colour, style);
    if (series == 1)
        return formatted("<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\" %s/>\n", x - 5, y - 5, colour, style);
    return formatted("<path d=\"M%.1f %.1f l6.5 11 h-13 z\" fill=\"%s\" %s/>\n", x, y - 6.5, colour, style);
}

int position(std::vector<std::string>& names, const std::string& name) {
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return static_cast<int>(found - names.begin());
    names.push_back(name);
    return static_cast<int>(names.size()) - 1;
}

std::string power_of_two(int exponent) {
    return exponent >= 0 ? formatted("%.0f", std::exp2(exponent)) : "1/" + formatted("%.0f", std::exp2(-exponent));
}

}  // namespace

std::string roofline_svg(const std::string& title, const std::string& subtitle, const Peaks& peaks,
                         const std::vector<RooflinePoint>& points) {
    const double flops_peak = 2 * peaks.multiply_adds_per_second, ridge = flops_peak / peaks.copy_bytes_per_second;
    double least_x = ridge / 4, most_x = ridge * 4, least_y = flops_peak / 16;
    const auto intensity = [](const RooflinePoint& p) { return 2 * p.work.multiply_adds / p.work.bytes; };
    const auto speed = [](const RooflinePoint& p) { return 2 * p.work.multiply_adds / p.seconds; };
    const auto drawn = [&](const RooflinePoint& p) { return p.seconds > 0 && p.work.multiply_adds > 0 && p.work.bytes > 0; };
    for (const RooflinePoint& p : points) {
        if (!drawn(p)) continue;
        least_x = std::min(least_x, intensity(p)), most_x = std::max(most_x, intensity(p)), least_y = std::min(least_y, speed(p));
    }
    const Axis x{std::floor(std::log2(least_x)), std::ceil(std::log2(most_x)), left, right};
    const Axis y{std::floor(std::log2(least_y * 1e-9)), std::ceil(std::log2(flops_peak * 1e-9)), bottom, top};

    std::string svg = svg_begin(width, 560, left, title, subtitle);
    for (int e = static_cast<int>(x.low); e <= static_cast<int>(x.high); ++e) {
        const double px = x.at(std::exp2(e));
        svg += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ebebea\"/>\n", px, top, px, bottom);
        svg += svg_text(px, bottom + 18, power_of_two(e), "text-anchor=\"middle\"");
    }
    for (int e = static_cast<int>(y.low); e <= static_cast<int>(y.high); ++e) {
        const double py = y.at(std::exp2(e));
        svg += formatted("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ebebea\"/>\n", left, py, right, py);
        svg += svg_text(left - 8, py + 4, power_of_two(e), "text-anchor=\"end\"");
    }
    svg += svg_text((left + right) / 2, bottom + 40, "flops per byte (every array once)", "text-anchor=\"middle\"");
    svg += formatted("<text transform=\"translate(22 %.1f) rotate(-90)\" text-anchor=\"middle\">GFLOP/s</text>\n", (top + bottom) / 2);

    // The roof: the copy bandwidth up to the ridge, the multiply-add peak beyond; the bandwidth's line begins where it enters the picture.
    const double enters = std::max(std::exp2(x.low), std::exp2(y.low) * 1e9 / peaks.copy_bytes_per_second);
    svg += formatted("<path d=\"M%.1f %.1f L%.1f %.1f H%.1f\" fill=\"none\" stroke=\"#37352f\" stroke-width=\"2\"/>\n", x.at(enters),
                     y.at(enters * peaks.copy_bytes_per_second * 1e-9), x.at(ridge), y.at(flops_peak * 1e-9), right);
    svg += svg_text(right - 4, y.at(flops_peak * 1e-9) - 7, "multiply-adds " + formatted("%.0f GFLOP/s", flops_peak * 1e-9),
                    "text-anchor=\"end\"");
    const double middle = std::sqrt(enters * ridge), px = x.at(middle), py = y.at(middle * peaks.copy_bytes_per_second * 1e-9);
    const double slope = std::atan2(y.at(2) - y.at(1), x.at(2) - x.at(1)) * 180 / 3.14159265358979;
    svg += formatted("<text transform=\"translate(%.1f %.1f) rotate(%.1f)\" text-anchor=\"middle\" dy=\"-7\">copy %.1f GB/s</text>\n", px,
                     py, slope, peaks.copy_bytes_per_second * 1e-9);

    std::vector<std::string> labels, series;
    for (const RooflinePoint& p : points) position(labels, p.label), position(series, p.series);
    for (const RooflinePoint& p : points) {
        if (!drawn(p)) continue;
        const auto colour = svg_colours[static_cast<std::size_t>(position(labels, p.label)) % svg_colours.size()];
        svg += "<g><title>" + svg_escaped(p.label + ", " + p.series) +
               formatted(": %.1f GFLOP/s, %.0f %% of its limit", speed(p) * 1e-9, 100 * limit_seconds(p.work, peaks) / p.seconds) +
               "</title>" + shape(position(series, p.series), x.at(intensity(p)), y.at(speed(p) * 1e-9), colour) + "</g>\n";
    }
    double line = top + 6;
    for (std::size_t s = 0; s < series.size(); ++s, line += 20) {
        svg += shape(static_cast<int>(s), right + 26, line, "#787774");
        svg += svg_text(right + 42, line + 4, series[s], "");
    }
    line += 10;
    for (std::size_t l = 0; l < labels.size() && line < 545; ++l, line += 19) {
        svg += formatted("<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n", right + 20, line - 6,
                         svg_colours[l % svg_colours.size()]);
        svg += svg_text(right + 42, line + 4, labels[l], "");
    }
    return svg + "</svg>\n";
}

}  // namespace clebsch::tool
