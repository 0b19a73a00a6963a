#pragma once
// Whole files, and the wording of errors about what is in them.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace clebsch {

/// The content of a file, of at most `limit` bytes (from a pipe at most 2^31). Throws Error(not_found) for a missing file, Error(io) for a
/// folder, a device that is not empty or a refused read, Error(unsupported) above the limit; each names the file.
std::string read_file(const std::filesystem::path& path, std::int64_t limit = std::int64_t{1} << 40);

/// Where a chain of symbolic links leads, whether there is a file or not; `path` itself if it is no link. Throws Error(io) for a circle.
std::filesystem::path link_target(const std::filesystem::path& path);

/// What survives a power cut: nothing that the system has not written by itself, or all that was written.
enum class Durability { cached, on_disk };
/// Writes to a temporary name beside `path`, then renames: readers see the old content or the new one. Of a link, what it leads to is
/// written. Throws Error(io).
void write_file(const std::filesystem::path& path, std::string_view content, Durability durability = Durability::cached);

/// `text` cut to `longest` bytes and with everything but printable ASCII escaped: safe to show whatever a file holds.
std::string printable(std::string_view text, std::size_t longest = 48);
/// The same in single quotes.
std::string in_quotes(std::string_view text, std::size_t longest = 48);

/// Throw Error(parse): "file 'x', line 3: ..." (lines count from 1) and "file 'x', byte 12: ..." (bytes count from 0).
[[noreturn]] void fail_in_file(std::string_view file, const std::string& message);
[[noreturn]] void fail_at_line(std::string_view file, std::int64_t line, const std::string& message);
[[noreturn]] void fail_at_byte(std::string_view file, std::int64_t byte, const std::string& message);

}  // namespace clebsch
