// Any bytes as extended XYZ: read or refused; what the writer accepts of it is a text that reads back to the same text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/xyz.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view content(reinterpret_cast<const char*>(data), size);
    const auto frames = accepted([&] { return clebsch::parse_xyz(content, "fuzz.xyz"); });
    if (!frames) return 0;
    // The writer refuses what it cannot express, such as control characters in words.
    const auto text = accepted([&] { return clebsch::format_xyz(*frames); });
    if (!text) return 0;
    // Texts, not frames, are compared: a column may hold nan.
    require(clebsch::format_xyz(clebsch::parse_xyz(*text, "written.xyz")) == *text, "a written text reads back to the same text");
    return 0;
}
