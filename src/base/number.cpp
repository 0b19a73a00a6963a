#include "base/number.hpp"

#include <charconv>

namespace clebsch {

std::string number_text(double value) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    static_cast<void>(error);  // 32 characters hold every double
    return {text, end};
}

}  // namespace clebsch
