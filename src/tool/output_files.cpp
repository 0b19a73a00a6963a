#include "tool/output_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"

namespace clebsch::tool {

namespace {

/// What tells whether two names are one file: device and inode of one that exists, which all its names and links share, else the name.
std::string identity(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
        if (!S_ISREG(status.st_mode)) return "";
        return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
    }
    std::error_code unknown;
    const std::filesystem::path canonical =
        std::filesystem::weakly_canonical(std::filesystem::absolute(link_target(path), unknown), unknown);
    return unknown ? "" : canonical.native();
}

}  // namespace

void require_distinct(const NamedFiles& files) {
    std::map<std::string, std::pair<std::string, std::string>> seen;
    for (const auto& [name, path] : files) {
        const std::string file = path.empty() ? "" : identity(path);
        if (file.empty()) continue;  // devices may be named twice
        const auto [other, added] = seen.try_emplace(file, name, path);
        if (added) continue;
        const auto& [other_name, other_path] = other->second;
        fail(name + ": expected another file than that of " + other_name + ", got " + in_quotes(path, 4096) +
             (path == other_path ? " for both" : ", which is the file " + in_quotes(other_path, 4096)));
    }
}

void require_writable(const NamedFiles& files) {
    for (const auto& [name, given] : files) {
        if (given.empty()) continue;
        std::error_code unknown;
        const std::filesystem::path path = link_target(given);
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
