#pragma once
// A picture of quantities over a common axis: one panel below another, each with its own scale.
#include <string>
#include <vector>

namespace clebsch::tool {

struct Curve {
    std::string label;
    std::vector<double> values;  ///< one for every x
};

struct Panel {
    std::string title;  ///< with the unit
    std::vector<Curve> curves;
};

/// An SVG document 900 wide; `x` does not decrease, and points whose value is not finite are left out.
std::string curves_svg(const std::string& title, const std::string& subtitle, const std::string& x_title, const std::vector<double>& x,
                       const std::vector<Panel>& panels);

}  // namespace clebsch::tool
