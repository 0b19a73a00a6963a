#include "tool/output_files.hpp"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"

namespace clebsch::tool {

void require_distinct(const NamedFiles& files) {
    std::map<std::filesystem::path, std::string> seen;
    for (const auto& [name, path] : files) {
        std::error_code unknown;
        const std::filesystem::path canonical = std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
        if (path.empty() || unknown ||
            (std::filesystem::exists(canonical, unknown) && !std::filesystem::is_regular_file(canonical, unknown)))
            continue;  // devices may be named twice
        const auto [other, added] = seen.emplace(canonical, name);
        if (!added) fail(name + ": expected another file than that of " + other->second + ", got " + in_quotes(path, 4096) + " for both");
    }
}

void require_writable(const NamedFiles& files) {
    for (const auto& [name, given] : files) {
        if (given.empty()) continue;
        std::error_code unknown;
        std::filesystem::path path = std::filesystem::canonical(given, unknown);
        if (unknown) path = given;
        if (std::filesystem::is_directory(path, unknown))
            fail(name + ": expected a file to write, got the folder " + in_quotes(given, 4096));
        if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown)) continue;  // a device or a pipe
        const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
        const std::string expected = name + ": expected a file in a folder that can be written to, got " + in_quotes(given, 4096);
        if (!std::filesystem::is_directory(folder, unknown)) fail(expected + ", whose folder does not exist");
        if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(expected + ", whose folder cannot");
    }
}

}  // namespace clebsch::tool
