#pragma once
// NumPy's .npy format: a magic number, a header that is a Python dict, the numbers. Versions 1 to 3; no pickled objects, no records.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/array.hpp"

namespace clebsch {

struct NpyArray {
    Array array;           ///< in C order, whatever order the file has
    std::int64_t end = 0;  ///< byte after the array's last, counted from the start of `content`
};

/// Reads the array that starts at byte `begin` of `content`. `file` and the byte are named in errors.
/// Throws Error(parse) for damaged headers and sizes that the content does not hold, Error(unsupported) for types other than ElementType's
/// and for big-endian numbers.
NpyArray parse_npy(std::string_view content, std::string_view file, std::int64_t begin = 0);

/// One array, nothing after it.
Array read_npy(const std::filesystem::path& path);

/// The file content of an array (version 1). Throws Error(unsupported) for types NumPy has no name for (bfloat16, float8).
std::string format_npy(const Array& array);

}  // namespace clebsch
