#include "tool/svg.hpp"

namespace clebsch::tool {

std::string svg_begin(double width, double height, double left, const std::string& title, const std::string& subtitle) {
    return formatted(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"system-ui,sans-serif\" font-size=\"12\" "
               "fill=\"#37352f\">\n",
               width, height) +
           formatted("<rect width=\"%.0f\" height=\"%.0f\" fill=\"white\"/>\n", width, height) +
           svg_text(left, 30, title, "font-size=\"17\" font-weight=\"600\"") + svg_text(left, 50, subtitle, "fill=\"#787774\"");
}

std::string svg_text(double x, double y, const std::string& words, const char* attributes) {
    return formatted("<text x=\"%.1f\" y=\"%.1f\" ", x, y) + attributes + ">" + svg_escaped(words) + "</text>\n";
}

std::string svg_escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
    return out;
}

}  // namespace clebsch::tool
