// Any bytes as the text of a polynomial and of a program: read or refused with clebsch::Error; what was read prints to a text that reads
// back to the same value.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "describe/text.hpp"
#include "require.hpp"

namespace {

template <class Parse>
void check(std::string_view text, Parse parse) {
    const auto value = accepted([&] { return parse(text); });
    if (!value) return;
    const std::string printed = clebsch::to_text(*value);
    const auto again = parse(printed);
    require(again == *value, "a printed text reads back to the same value");
    require(clebsch::to_text(again) == printed, "a canonical text prints as itself");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check(text, clebsch::parse_polynomial);
    check(text, clebsch::parse_program);
    return 0;
}
