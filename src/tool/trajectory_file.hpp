#pragma once
// A file of frames that a run appends to, and goes on with after a restart.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace clebsch::tool {

class TrajectoryFile {
 public:
    /// Makes the file, or cuts what is there to its first `bytes` bytes: what came after them will be written again.
    /// Throws Error naming the file when it cannot be opened, has fewer bytes, or other ones: `end` is what end() was there (empty: not
    /// known); also when another run writes it: it is locked until the end (file_lock.hpp).
    TrajectoryFile(const std::filesystem::path& path, std::int64_t bytes, const std::string& end = {});
    TrajectoryFile(const TrajectoryFile&) = delete;
    TrajectoryFile& operator=(const TrajectoryFile&) = delete;
    ~TrajectoryFile();

    void append(std::string_view text);  ///< throws Error(io)
    void sync();                         ///< all of it is on the disk when this returns; throws Error(io)
    std::int64_t bytes() const { return bytes_; }
    /// A hash of the last bytes so far, by which the file is known again.
    std::string end() const;

 private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    std::int64_t bytes_ = 0;
    std::string tail_;  ///< the last bytes
};

}  // namespace clebsch::tool
