#include "tool/structures.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {

std::string composition(const XyzFrame& frame) {
    std::vector<std::pair<std::string, int>> counts;
    for (const std::string& species : frame.species) {
        const auto found = std::ranges::find(counts, species, &std::pair<std::string, int>::first);
        if (found == counts.end()) counts.emplace_back(species, 1);
        else ++found->second;
    }
    std::vector<std::string> words;
    words.reserve(counts.size());
    for (const auto& [species, count] : counts) words.push_back(species + std::to_string(count));
    return joined(words, " ");
}

std::string periodic_text(const Structure& structure) {
    std::string text;
    for (std::size_t axis = 0; axis < 3; ++axis)
        if (structure.periodic[axis]) text += "abc"[axis];
    return text.empty() ? "open" : text;
}

std::vector<XyzFrame> read_structures(const std::string& file) {
    std::vector<XyzFrame> frames = read_xyz(file);
    if (frames.empty()) fail("file " + in_quotes(file, 4096) + " has no frame");
    return frames;
}

XyzFrame read_frame(const std::string& file, std::optional<std::int64_t> number) {
    std::vector<XyzFrame> frames = read_structures(file);
    const auto count = static_cast<std::int64_t>(frames.size());
    const std::int64_t chosen = number.value_or(count);
    if (chosen < 1 || chosen > count)
        fail("--frame: expected 1 to " + std::to_string(count) + ", the frames of file " + in_quotes(file, 4096) + ", got " +
             std::to_string(chosen));
    return std::move(frames[static_cast<std::size_t>(chosen - 1)]);
}

}  // namespace clebsch::tool
