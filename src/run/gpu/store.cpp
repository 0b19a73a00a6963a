#include "run/gpu/store.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"

namespace clebsch::gpu {
namespace {

constexpr const char* magic = "clebsch kernel 2 ";

std::string header_of(std::string_view payload) { return magic + to_text(hash_text(payload)) + "\n"; }

}  // namespace

std::optional<MachineCode> KernelStore::read(const Hash& key) const {
    if (folder_.empty()) return std::nullopt;
    try {
        const std::string content = read_file(folder_ / (to_text(key) + ".kernel"), std::int64_t{1} << 28);
        const std::size_t header = content.find('\n'), spilled = content.find('\n', header + 1);
        if (header == std::string::npos || spilled == std::string::npos) return std::nullopt;
        const std::string_view payload = std::string_view(content).substr(header + 1);
        if (content.substr(0, header + 1) != header_of(payload)) return std::nullopt;
        return MachineCode{.cubin = content.substr(spilled + 1), .spilled_bytes = std::atoi(content.c_str() + header + 1)};
    } catch (const Error&) { return std::nullopt; }
}

void KernelStore::write(const Hash& key, const MachineCode& kernel) const {
    if (folder_.empty()) return;
    const std::string payload = std::to_string(kernel.spilled_bytes) + "\n" + kernel.cubin;
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    try {
        write_file(folder_ / (to_text(key) + ".kernel"), header_of(payload) + payload);
    } catch (const Error&) { return; }  // the next process compiles again
}

namespace {

std::mutex added_mutex;
std::vector<std::filesystem::path>& added_folders() {
    static auto* folders = new std::vector<std::filesystem::path>;
    return *folders;
}

}  // namespace

std::vector<std::filesystem::path> prebuilt_folders() {
    std::vector<std::filesystem::path> folders;
    {
        const std::lock_guard lock(added_mutex);
        folders = added_folders();
    }
    const char* variable = std::getenv("CLEBSCH_PREBUILT");
    std::string_view left = variable == nullptr ? "" : variable;
    while (!left.empty()) {
        const std::size_t end = left.find(':');
        if (end != 0) folders.emplace_back(left.substr(0, end));
        left = end == std::string_view::npos ? "" : left.substr(end + 1);
    }
    return folders;
}

void add_prebuilt_folder(const std::filesystem::path& folder) {
    const std::lock_guard lock(added_mutex);
    if (std::ranges::find(added_folders(), folder) == added_folders().end()) added_folders().push_back(folder);
}

std::string prebuilt_text() {
    std::string text;
    for (const std::filesystem::path& folder : prebuilt_folders()) text += (text.empty() ? "" : ", ") + folder.string();
    return text.empty() ? "CLEBSCH_PREBUILT names none, and none lies beside a model" : text;
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
