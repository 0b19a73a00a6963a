#include "tool/trajectory_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/polynomial.hpp"
#include "tool/file_lock.hpp"

namespace clebsch::tool {
namespace {

constexpr std::size_t tail_bytes = 4096;

[[noreturn]] void fail_to(const char* action, const std::filesystem::path& path) {
    const int code = errno;
    throw Error(ErrorKind::io, std::string("cannot ") + action + " trajectory file " + in_quotes(path.native(), 4096) + ": " +
                                   std::system_category().message(code));
}

}  // namespace

TrajectoryFile::TrajectoryFile(const std::filesystem::path& path, std::int64_t bytes, const std::string& end)
    : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CLOEXEC | (bytes == 0 ? O_CREAT : 0), 0666)), bytes_(bytes) {
    if (descriptor_ < 0 && errno == ENOENT && bytes > 0)
        throw Error(ErrorKind::not_found, "trajectory file " + in_quotes(path_.native(), 4096) +
                                              " is missing, but the restart file goes on after its first " + std::to_string(bytes) +
                                              " bytes: was it removed, or is it another one?");
    if (descriptor_ < 0) fail_to("open", path_);
    try {
        struct stat status {};
        if (::fstat(descriptor_, &status) != 0) fail_to("read", path_);
        if (S_ISREG(status.st_mode)) lock_open_file(descriptor_, "trajectory file " + in_quotes(path_.native(), 4096));
        if (status.st_size < bytes)
            fail("trajectory file " + in_quotes(path_.native(), 4096) + " has " + std::to_string(status.st_size) +
                 " bytes, but the restart file goes on after " + std::to_string(bytes) + ": was it removed, or is it another one?");
        if (S_ISREG(status.st_mode) && bytes > 0) {
            tail_.resize(std::min(tail_bytes, static_cast<std::size_t>(bytes)));
            std::ifstream file(path_, std::ios::binary);
            file.seekg(bytes - static_cast<std::int64_t>(tail_.size()));
            if (!file.read(tail_.data(), static_cast<std::streamsize>(tail_.size()))) fail_to("read", path_);
            if (!end.empty() && this->end() != end)
                fail("trajectory file " + in_quotes(path_.native(), 4096) + " is not the one that the run wrote its first " +
                     std::to_string(bytes) + " bytes to: was it changed, or is it another one?");
        }
        if (S_ISREG(status.st_mode) && (::ftruncate(descriptor_, bytes) != 0 || ::lseek(descriptor_, bytes, SEEK_SET) < 0))
            fail_to("cut", path_);
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

TrajectoryFile::~TrajectoryFile() { ::close(descriptor_); }

std::string TrajectoryFile::end() const { return to_text(hash_text(tail_)); }

void TrajectoryFile::append(std::string_view text) {
    tail_.append(text);
    tail_.erase(0, tail_.size() - std::min(tail_bytes, tail_.size()));
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor_, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail_to("write", path_);
        text.remove_prefix(static_cast<std::size_t>(written));
        bytes_ += written;
    }
}

void TrajectoryFile::sync() {
    if (::fsync(descriptor_) != 0 && errno != EINVAL) fail_to("write", path_);  // EINVAL: a pipe or the like
}

}  // namespace clebsch::tool
