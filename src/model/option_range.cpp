#include "model/option_range.hpp"

#include "base/error.hpp"
#include "base/number.hpp"

namespace clebsch {
namespace {

void require(const OptionRange& range, const std::string& option, double value, const std::string& text) {
    if (!(value >= range.least && value <= range.most))
        fail(option + ": expected " + number_text(range.least) + " to " + number_text(range.most) + " " + range.unit + ", got " + text);
}

}  // namespace

void require_in(const OptionRange& range, const std::string& option, double value) { require(range, option, value, number_text(value)); }

void require_in(const OptionRange& range, const std::string& option, std::int64_t value) {
    require(range, option, static_cast<double>(value), std::to_string(value));
}

}  // namespace clebsch
