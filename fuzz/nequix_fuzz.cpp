// Any bytes as a Nequix checkpoint: refused, or a model whose numbers all came from the input.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/nequix.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view content(reinterpret_cast<const char*>(data), size);
    const auto model = accepted([&] { return clebsch::parse_nequix(content, "fuzz.nqx"); });
    if (!model) return 0;
    require(model->parameters() * 4 <= static_cast<std::int64_t>(size), "no more numbers than the input holds");
    require(!model->layers.empty() && !model->atomic_numbers.empty(), "a model has layers and species");
    return 0;
}
