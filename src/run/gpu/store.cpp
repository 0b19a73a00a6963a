#include "run/gpu/store.hpp"

#include <cstdlib>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"

namespace clebsch::gpu {
namespace {

constexpr const char* magic = "clebsch kernel 1 ";

std::string header_of(const std::string& payload) { return magic + to_text(hash_text(payload)) + "\n"; }

}  // namespace

std::optional<std::string> KernelStore::read(const Hash& key) const {
    if (folder_.empty()) return std::nullopt;
    try {
        const std::string content = read_file(folder_ / (to_text(key) + ".kernel"), std::int64_t{1} << 28);
        const std::size_t end = content.find('\n');
        if (end == std::string::npos) return std::nullopt;
        std::string payload = content.substr(end + 1);
        if (content.substr(0, end + 1) != header_of(payload)) return std::nullopt;
        return payload;
    } catch (const Error&) { return std::nullopt; }
}

void KernelStore::write(const Hash& key, const std::string& payload) const {
    if (folder_.empty()) return;
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    try {
        write_file(folder_ / (to_text(key) + ".kernel"), header_of(payload) + payload);
    } catch (const Error&) { return; }  // the next process compiles again
}

KernelStore default_store() {
    if (const char* folder = std::getenv("CLEBSCH_CACHE")) return KernelStore(folder);
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] != '\0')
        return KernelStore(std::filesystem::path(cache) / "clebsch");
    if (const char* home = std::getenv("HOME"); home != nullptr && home[0] != '\0')
        return KernelStore(std::filesystem::path(home) / ".cache" / "clebsch");
    return KernelStore({});
}

}  // namespace clebsch::gpu
