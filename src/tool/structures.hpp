#pragma once
// Structure files as models take them.
#include <optional>
#include <string>
#include <vector>

#include "io/xyz.hpp"

namespace clebsch::tool {

/// "O216 H432": species in the order of first appearance.
std::string composition(const XyzFrame& frame);

/// "abc", "ab", "open".
std::string periodic_text(const Structure& structure);

/// read_xyz; throws Error for a file without frames.
std::vector<XyzFrame> read_structures(const std::string& file);
/// Its frame `number`, from 1, or the last one. Throws Error, naming --frame, when there is no such frame.
XyzFrame read_frame(const std::string& file, std::optional<std::int64_t> number = {});

}  // namespace clebsch::tool
