#pragma once
// Reading options from text: lists and numbers, with errors that say what was expected.
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace clebsch {

std::string_view trimmed(std::string_view text);
/// The fields between separators, trimmed; blank text has none.
std::vector<std::string> split_fields(std::string_view text, char separator);
/// A finite number; `where` begins the message of an error.
double parse_number(std::string_view text, const std::string& where);

template <class T>
T parse_integer(std::string_view text, const std::string& where) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty())
        fail(where + ": expected an integer, got '" + std::string(text) + "'");
    return value;
}

}  // namespace clebsch
