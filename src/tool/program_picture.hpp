#pragma once
// A picture of a program as it runs: groups of nodes in order, what of each runs as one step, and the values that are kept between groups.
#include <string>

#include "schedule/program_groups.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {

/// An SVG document. Every group is a box, every step in it one line: results <- what they are made of. A kept value is a line at the right,
/// from the group that writes it to those that read it.
std::string program_svg(const std::string& title, const std::string& subtitle, const TiledProgram& tiled);

/// The picture of a program as a plan would run it, written to a file that the report then names.
void draw_program(Report& report, const std::string& file, const std::string& title, const Program& program);

}  // namespace clebsch::tool
