// Any bytes as a .npy array: read or refused; what was read lies within the input and reads back equal when written.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/npy.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view content(reinterpret_cast<const char*>(data), size);
    const auto read = accepted([&] { return clebsch::parse_npy(content, "fuzz.npy"); });
    if (!read) return 0;
    require(read->end >= 0 && static_cast<std::size_t>(read->end) <= size, "the array ends within the input");
    require(clebsch::parse_npy(clebsch::format_npy(read->array), "fuzz.npy").array == read->array, "a written array reads back equal");
    return 0;
}
