#pragma once
// Pieces of SVG text that pictures share.
#include <array>
#include <cstdio>
#include <string>

namespace clebsch::tool {

inline constexpr std::array<const char*, 10> svg_colours = {"#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5",
                                                            "#b58900", "#64473a", "#e03e3e", "#4d6a00", "#37352f"};
inline constexpr const char* svg_grid_colour = "#ebebea";
inline constexpr const char* svg_faint_colour = "#787774";

/// printf into a string of at most 511 bytes.
template <class... Numbers>
std::string formatted(const char* pattern, Numbers... numbers) {
    char text[512];
    std::snprintf(text, sizeof text, pattern, numbers...);
    return text;
}

/// The opening tag, a white background, title and subtitle.
std::string svg_begin(double width, double height, double left, const std::string& title, const std::string& subtitle);
/// Words at a place, with further attributes of the tag; escaped.
std::string svg_text(double x, double y, const std::string& words, const char* attributes);
std::string svg_escaped(const std::string& text);

}  // namespace clebsch::tool
