#pragma once
// safetensors: 8 bytes of header length, a JSON header, the tensors' bytes without holes.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"

namespace clebsch {

/// Where a tensor lies. Offsets count from the end of the header.
struct TensorEntry {
    std::string name;
    ElementType type = ElementType::float32;
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0, end = 0;
    friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

struct SafetensorsHeader {
    std::map<std::string, std::string> metadata;
    std::vector<TensorEntry> tensors;  ///< in the order of their bytes
    std::int64_t data_begin = 0;       ///< byte of the file where the tensors start
    friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// Longest JSON header that is read, as in the format's own implementation.
inline constexpr std::int64_t safetensors_header_limit = 100'000'000;

/// Checks the header against the size of the whole file: every offset, shape and type must fit, tensors must follow one another without
/// holes or overlaps and end with the file. `start` holds at least the header (or the whole file, if that is shorter). `file` is named in
/// errors. Throws Error(parse), or Error(unsupported) for element types that ElementType lacks (those of less than a byte).
SafetensorsHeader parse_safetensors_header(std::string_view start, std::int64_t file_size, std::string_view file);

/// An open file: the header is read and checked at once, tensors when asked for, so that a large file need not fit in memory.
/// The file must not change meanwhile; should it be cut short, load() throws. Threads: const members may run at once.
class SafetensorsFile {
 public:
    /// Throws Error(not_found), Error(io) and what parse_safetensors_header throws.
    explicit SafetensorsFile(const std::filesystem::path& path);
    SafetensorsFile(SafetensorsFile&& other) noexcept;
    SafetensorsFile& operator=(SafetensorsFile&& other) noexcept;
    ~SafetensorsFile();

    const SafetensorsHeader& header() const { return header_; }
    bool has(std::string_view name) const;
    /// Throws Error(not_found) naming the file and the tensor.
    Array load(std::string_view name) const;
    Array load(const TensorEntry& entry) const;

 private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    SafetensorsHeader header_;
};

/// The file content: tensors sorted by size of element, largest first, then by name, so that each is aligned.
/// Throws Error for repeated names, shapes that do not fit, and names or metadata that are not UTF-8.
std::string format_safetensors(const std::vector<NamedArray>& tensors, const std::map<std::string, std::string>& metadata = {});
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedArray>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace clebsch
