#include "run/dynamic_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace clebsch {

DynamicLibrary::DynamicLibrary(const std::string& name) : path_(name) {
    if (name.empty()) fail("dynamic library: the name is empty");
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) {
        const char* why = ::dlerror();
        throw Error(ErrorKind::not_found, why ? why : "cannot load " + name);
    }
    link_map* map = nullptr;
    if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0] != '\0') path_ = map->l_name;
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(path_, other.path_);
    return *this;
}

DynamicLibrary::~DynamicLibrary() {
    if (handle_) ::dlclose(handle_);
}

void* DynamicLibrary::address(const char* name) const {
    void* found = ::dlsym(handle_, name);
    if (!found) throw Error(ErrorKind::not_found, path_ + " has no function '" + name + "'");
    return found;
}

std::string own_folder() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || !info.dli_fname) return {};
    std::error_code error;
    const bool searched = std::string_view(info.dli_fname).find('/') == std::string_view::npos;  // a program that was found in PATH
    const std::filesystem::path file = std::filesystem::canonical(searched ? "/proc/self/exe" : info.dli_fname, error);
    return error ? std::string() : file.parent_path().string();
}

}  // namespace clebsch
