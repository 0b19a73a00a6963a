// Any bytes as a safetensors file: refused, or every tensor fits the file, without holes and overlaps.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/safetensors.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view content(reinterpret_cast<const char*>(data), size);
    const auto file_size = static_cast<std::int64_t>(size);
    const auto header = accepted([&] { return clebsch::parse_safetensors_header(content, file_size, "fuzz.safetensors"); });
    if (!header) return 0;
    std::int64_t at = 0;
    for (const clebsch::TensorEntry& entry : header->tensors) {
        require(entry.begin == at && entry.end >= at, "tensors follow one another");
        require(clebsch::byte_count(entry.type, entry.shape) == entry.end - entry.begin, "shape and bytes agree");
        at = entry.end;
    }
    require(header->data_begin + at == file_size, "the last tensor ends with the file");
    return 0;
}
