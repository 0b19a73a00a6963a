#pragma once
// A picture of a program as it runs: groups of nodes in order, what of each runs as one step, and the values that are kept between groups.
#include <string>

#include "run/program_plan.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {

/// An SVG document: the ways in which the plan runs its program, one below the other. Every group is a box, every step in it one line:
/// results <- what they are made of. A kept value is a line at the right, from the group that writes it to those that read it.
std::string program_svg(const std::string& title, const ProgramPlan& plan);

/// The same, written to a file that the report then names.
void draw_program(Report& report, const std::string& file, const std::string& title, const ProgramPlan& plan);

}  // namespace clebsch::tool
