#include "tool/file_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"

namespace clebsch::tool {
namespace {

std::string reason(int code) { return std::system_category().message(code); }

/// Whether the open file is still the one of that name.
bool is_file(int descriptor, const std::string& path) {
    struct stat open {
    }, named{};
    return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

/// What is removed at the end must not be somebody's file.
void require_empty(int descriptor, const std::string& file, const std::string& lock) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0)
        fail(file + ": expected " + in_quotes(lock, 4096) + ", which keeps other runs away, to be empty or missing");
}

}  // namespace

void lock_open_file(int descriptor, const std::string& file) {
    int status = 0;
    do status = ::flock(descriptor, LOCK_EX | LOCK_NB);
    while (status != 0 && errno == EINTR);
    if (status == 0) return;
    if (errno == EWOULDBLOCK) fail(file + ": another run holds it, expected to be the only one");
    // Some network file systems have none. A run is no less right for it: only nothing guards it.
    std::fprintf(stderr, "clebsch: %s cannot be locked (%s): nothing keeps a second run from writing it\n", file.c_str(),
                 reason(errno).c_str());
}

FileLocks::FileLocks(const NamedFiles& files) {
    try {
        for (const auto& [name, path] : files) add(name, path);
    } catch (...) {
        release();
        throw;
    }
}

FileLocks::~FileLocks() { release(); }

void FileLocks::add(const std::string& name, const std::string& given) {
    if (given.empty()) return;
    std::error_code unknown;
    std::filesystem::path path = std::filesystem::weakly_canonical(std::filesystem::absolute(link_target(given), unknown), unknown);
    if (unknown) path = given;
    if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown)) return;
    const std::string lock = path.native() + ".lock", file = name + ": file " + in_quotes(given, 4096);
    for (;;) {
        const int descriptor = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (descriptor < 0)
            throw Error(ErrorKind::io, file + ": cannot open " + in_quotes(lock, 4096) + ", which keeps other runs away: " + reason(errno));
        try {
            lock_open_file(descriptor, file);
            // Whoever held it may have removed it after this run opened it.
            if (is_file(descriptor, lock)) {
                require_empty(descriptor, file, lock);
                locks_.push_back({lock, descriptor});
                return;
            }
        } catch (...) {
            ::close(descriptor);
            throw;
        }
        ::close(descriptor);
    }
}

void FileLocks::release() {
    for (const Lock& lock : locks_) {
        if (is_file(lock.descriptor, lock.path)) ::unlink(lock.path.c_str());  // while it is still locked
        ::close(lock.descriptor);
    }
    locks_.clear();
}

}  // namespace clebsch::tool
