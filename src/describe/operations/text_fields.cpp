#include "describe/operations/text_fields.hpp"

#include <cmath>

namespace clebsch {

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> split_fields(std::string_view text, char separator) {
    std::vector<std::string> fields;
    if (trimmed(text).empty()) return fields;
    for (;;) {
        const auto end = text.find(separator);
        fields.emplace_back(trimmed(text.substr(0, end)));
        if (end == std::string_view::npos) return fields;
        text.remove_prefix(end + 1);
    }
}

double parse_number(std::string_view text, const std::string& where) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        fail(where + ": expected a number, got '" + std::string(text) + "'");
    return value;
}

}  // namespace clebsch
