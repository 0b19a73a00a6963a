#pragma once
// A shared library opened at run time.
#include <string>

namespace clebsch {

/// Owns the handle; moves, does not copy. Closes the library at the end of its life, so symbols must not outlive it.
class DynamicLibrary {
 public:
    /// `name`: a path, or a bare name such as "libvesin.so" for the system loader's search.
    /// Throws Error(not_found) with the loader's own explanation.
    explicit DynamicLibrary(const std::string& name);
    DynamicLibrary(DynamicLibrary&& other) noexcept;
    DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
    ~DynamicLibrary();

    /// The function called `name`, of C type F. Throws Error(not_found) naming library and symbol.
    template <class F>
    F* function(const char* name) const {
        return reinterpret_cast<F*>(address(name));
    }
    /// The file the library came from, if the loader tells; else the name it was opened by.
    const std::string& path() const { return path_; }

 private:
    void* address(const char* name) const;

    void* handle_ = nullptr;
    std::string path_;
};

/// The folder of the file that holds this code: libclebsch.so, or a program linked with it. Empty if the loader does not tell.
std::string own_folder();

}  // namespace clebsch
