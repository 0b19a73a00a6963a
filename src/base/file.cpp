#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.hpp"

namespace clebsch {

namespace {

/// Closes on every way out.
struct Descriptor {
    int number = -1;
    explicit Descriptor(int opened) : number(opened) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
};

constexpr std::int64_t pipe_limit = std::int64_t{1} << 31;

std::string reason(int code) { return std::system_category().message(code); }

[[noreturn]] void fail_to(const char* action, const std::filesystem::path& path, int code) {
    const ErrorKind kind = code == ENOENT || code == ENOTDIR ? ErrorKind::not_found : ErrorKind::io;
    throw Error(kind, "cannot " + std::string(action) + " file " + in_quotes(path.native(), 4096) + ": " + reason(code));
}

void write_all(int descriptor, std::string_view content, const std::filesystem::path& path) {
    while (!content.empty()) {
        const ssize_t written = ::write(descriptor, content.data(), content.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            fail_to("write", path, errno);
        }
        content.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::int64_t limit) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number < 0) fail_to("open", path, errno);
    struct stat status {};
    if (::fstat(file.number, &status) != 0) fail_to("read", path, errno);
    if (S_ISDIR(status.st_mode)) fail_to("read", path, EISDIR);
    // What has no size of its own may never end; of devices only the empty one is a file.
    const bool device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
    if (!S_ISREG(status.st_mode)) limit = std::min(limit, pipe_limit);
    const auto check_limit = [&](std::int64_t size) {
        if (size > limit)
            throw Error(ErrorKind::unsupported,
                        "file " + in_quotes(path.native(), 4096) + " is larger than the limit of " + std::to_string(limit) + " bytes");
    };
    std::string content;
    if (S_ISREG(status.st_mode)) check_limit(status.st_size);
    // The size is only a hint: a file can grow, shrink or be a pipe while it is read.
    std::size_t chunk = S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) + 1 : 65536;
    for (;;) {
        const std::size_t before = content.size();
        content.resize(before + chunk);
        const ssize_t got = ::read(file.number, content.data() + before, chunk);
        const int code = errno;
        content.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
        if (got < 0) {
            if (code == EINTR) continue;
            fail_to("read", path, code);
        }
        if (got == 0) return content;
        if (device) throw Error(ErrorKind::io, "cannot read file " + in_quotes(path.native(), 4096) + ": it is a device");
        check_limit(static_cast<std::int64_t>(content.size()));
        // Mostly the end was met: one more byte is asked for to see it.
        chunk = S_ISREG(status.st_mode) && static_cast<std::size_t>(got) < chunk ? 1 : 65536 + content.size() / 4;
    }
}

std::filesystem::path link_target(const std::filesystem::path& path) {
    constexpr int most_links = 40;
    std::filesystem::path target = path;
    for (int links = 0; links <= most_links; ++links) {
        std::error_code no_link;
        const std::filesystem::path next = std::filesystem::read_symlink(target, no_link);
        if (no_link) return target;
        target = target.parent_path() / next;  // an absolute one stands alone
    }
    fail_to("follow links of", path, ELOOP);
}

void write_file(const std::filesystem::path& given, std::string_view content, Durability durability) {
    struct stat existing {};
    const bool exists = ::stat(given.c_str(), &existing) == 0;
    if (exists && !S_ISREG(existing.st_mode) && !S_ISDIR(existing.st_mode)) {
        // A device or a pipe is written to; renaming a file to its name would replace it.
        const Descriptor file(::open(given.c_str(), O_WRONLY | O_CLOEXEC));
        if (file.number < 0) fail_to("open", given, errno);
        return write_all(file.number, content, given);
    }
    // A link stays one: the file it points to is the one that is replaced.
    const std::filesystem::path path = link_target(given);
    std::string temporary = path.native() + ".XXXXXX";
    {
        const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
        if (file.number < 0) fail_to("create", path, errno);
        try {
            // mkostemp makes a private file; give it the permissions an ordinary new file would have.
            const mode_t mask = ::umask(0);
            ::umask(mask);
            if (::fchmod(file.number, 0666 & ~mask) != 0) fail_to("write", path, errno);
            write_all(file.number, content, path);
            if (durability == Durability::on_disk && ::fsync(file.number) != 0) fail_to("write", path, errno);
        } catch (...) {
            ::unlink(temporary.c_str());
            throw;
        }
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
        const int code = errno;
        ::unlink(temporary.c_str());
        fail_to("write", path, code);
    }
    if (durability == Durability::cached) return;
    // The new name is an entry of the folder, which reaches the disk on its own. Some file systems refuse to sync a folder; they need not.
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.number >= 0) static_cast<void>(::fsync(directory.number));
}

std::string printable(std::string_view text, std::size_t longest) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (const char letter : text.substr(0, longest)) {
        const auto code = static_cast<unsigned char>(letter);
        if (code >= 0x20 && code < 0x7f) {
            out += letter;
        } else {
            out += {'\\', 'x', digits[code >> 4], digits[code & 15]};
        }
    }
    return text.size() > longest ? out + "..." : out;
}
std::string in_quotes(std::string_view text, std::size_t longest) { return "'" + printable(text, longest) + "'"; }

void fail_in_file(std::string_view file, const std::string& message) {
    throw Error(ErrorKind::parse, "file " + in_quotes(file, 4096) + ": " + message);
}
void fail_at_line(std::string_view file, std::int64_t line, const std::string& message) {
    throw Error(ErrorKind::parse, "file " + in_quotes(file, 4096) + ", line " + std::to_string(line) + ": " + message);
}
void fail_at_byte(std::string_view file, std::int64_t byte, const std::string& message) {
    throw Error(ErrorKind::parse, "file " + in_quotes(file, 4096) + ", byte " + std::to_string(byte) + ": " + message);
}

}  // namespace clebsch
