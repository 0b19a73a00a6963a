#pragma once
// Structure files as models take them.
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
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

/// What `use` returns; an Error of it names the file and the frame (from 0 here, from 1 for people).
template <class Use>
auto in_frame(const std::string& file, std::size_t frame, const Use& use) {
    try {
        return use();
    } catch (const Error& error) {
        throw Error(error.kind(), "file " + in_quotes(file, 4096) + ", frame " + std::to_string(frame + 1) + ": " + error.what());
    }
}

}  // namespace clebsch::tool
