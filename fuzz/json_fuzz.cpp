// Any bytes as JSON: read or refused with clebsch::Error; what was read prints to a text that reads back equal.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io/json.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view content(reinterpret_cast<const char*>(data), size);
    const auto value = accepted([&] { return clebsch::parse_json(content, "fuzz.json"); });
    if (!value) return 0;
    require(clebsch::parse_json(value->dump(), "fuzz.json") == *value, "a printed value reads back equal");
    return 0;
}
