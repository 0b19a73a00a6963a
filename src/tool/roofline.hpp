#pragma once
// A roofline picture: how fast measured things ran against what the machine's two peaks allow.
#include <string>
#include <vector>

#include "schedule/estimate.hpp"

namespace clebsch::tool {

struct RooflinePoint {
    std::string label;   ///< what was measured; points of one label share a colour
    std::string series;  ///< "forward", ...: points of one series share a shape
    Work work;
    double seconds = 0;
};

/// An SVG document of about 900 x 560. `subtitle`: threads, instruction set and the like.
std::string roofline_svg(const std::string& title, const std::string& subtitle, const Peaks& peaks,
                         const std::vector<RooflinePoint>& points);

}  // namespace clebsch::tool
