#include "run/gpu/compiler.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "run/dynamic_library.hpp"

namespace clebsch::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* advice = "pip install nvidia-cuda-nvrtc, or set CLEBSCH_NVRTC to the path of libnvrtc.so";
constexpr std::array<const char*, 2> majors = {"13", "12"};

// The part of NVRTC's C interface that is used here (nvrtc.h).
struct Nvrtc {
    DynamicLibrary library;
    std::unique_ptr<DynamicLibrary> builtins;  // NVRTC looks for it by name alone, which finds what is loaded already
    int (*version)(int*, int*);
    const char* (*error_string)(int);
    int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
    int (*destroy)(void**);
    int (*compile)(void*, int, const char* const*);
    int (*log_size)(void*, std::size_t*);
    int (*log)(void*, char*);
    int (*cubin_size)(void*, std::size_t*);
    int (*cubin)(void*, char*);
    int major = 0, minor = 0;

    explicit Nvrtc(const std::string& name) : library(name) {
        get(version, "nvrtcVersion");
        get(error_string, "nvrtcGetErrorString");
        get(create, "nvrtcCreateProgram");
        get(destroy, "nvrtcDestroyProgram");
        get(compile, "nvrtcCompileProgram");
        get(log_size, "nvrtcGetProgramLogSize");
        get(log, "nvrtcGetProgramLog");
        get(cubin_size, "nvrtcGetCUBINSize");
        get(cubin, "nvrtcGetCUBIN");
        if (version(&major, &minor) != 0 || major < 12)
            throw Error(ErrorKind::unsupported,
                        library.path() + " is NVRTC " + std::to_string(major) + "." + std::to_string(minor) + ", 12.0 or newer is needed");
        const fs::path beside =
            fs::path(library.path()).replace_filename("libnvrtc-builtins.so." + std::to_string(major) + "." + std::to_string(minor));
        std::error_code error;
        if (fs::is_regular_file(beside, error)) builtins = std::make_unique<DynamicLibrary>(beside.string());
    }

 private:
    template <class F>
    void get(F*& function, const char* name) {
        function = library.function<F>(name);
    }
};

std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr || value[0] == '\0') return std::nullopt;
    return value;
}

/// libnvrtc.so.13 and the like in a folder; nothing if it is not there.
void add_folder(std::vector<std::string>& out, const fs::path& folder) {
    std::error_code error;
    for (const char* major : majors) {
        const fs::path file = folder / (std::string("libnvrtc.so.") + major);
        if (fs::is_regular_file(file, error)) out.push_back(file.string());
    }
}

/// PyTorch ships a renamed copy: libnvrtc-<hash>.so.13.
void add_torch(std::vector<std::string>& out, const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        const std::string file = entry->path().filename().string();
        if (file.starts_with("libnvrtc") && file.find("builtins") == std::string::npos && file.find(".so") != std::string::npos)
            out.push_back(entry->path().string());
    }
}

void add_site_packages(std::vector<std::string>& out, const fs::path& site) {
    add_folder(out, site / "nvidia" / "cu13" / "lib");
    add_folder(out, site / "nvidia" / "cuda_nvrtc" / "lib");
    add_torch(out, site / "torch" / "lib");
}

void add_prefix(std::vector<std::string>& out, const fs::path& prefix) {
    std::error_code error;
    for (const char* base : {"lib", "lib64"})
        for (fs::directory_iterator entry(prefix / base, error), end; !error && entry != end; entry.increment(error))
            if (entry->path().filename().string().starts_with("python")) add_site_packages(out, entry->path() / "site-packages");
}

int note_loaded(dl_phdr_info* info, std::size_t, void* out) {
    const std::string path = info->dlpi_name != nullptr ? info->dlpi_name : "";
    const std::string file = fs::path(path).filename().string();
    if (file.starts_with("libnvrtc") && file.find("builtins") == std::string::npos)
        static_cast<std::vector<std::string>*>(out)->push_back(path);
    return 0;
}

class CompilerStore {
 public:
    const Nvrtc& get() {
        const std::lock_guard lock(mutex_);
        if (!nvrtc_) nvrtc_ = load();
        return *nvrtc_;
    }

 private:
    static std::unique_ptr<Nvrtc> load() {
        std::string tried;
        for (const std::string& file : compiler_candidates()) {
            try {
                return std::make_unique<Nvrtc>(file);
            } catch (const Error& error) { tried += "\n  " + std::string(error.what()); }
        }
        throw Error(ErrorKind::not_found,
                    std::string("GPU kernels need NVRTC, CUDA's run-time compiler, which was not found: ") + advice + ". Tried:" + tried);
    }

    std::mutex mutex_;
    std::unique_ptr<Nvrtc> nvrtc_;
};

const Nvrtc& nvrtc() {
    static auto* store = new CompilerStore;  // never destroyed: other threads may be compiling
    return store->get();
}

}  // namespace

std::vector<std::string> compiler_candidates() {
    std::vector<std::string> files;
    if (const auto chosen = variable("CLEBSCH_NVRTC")) return {*chosen};
    dl_iterate_phdr(note_loaded, &files);
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
        if (const auto home = variable(name)) add_folder(files, fs::path(*home) / "lib64");
    add_folder(files, "/usr/local/cuda/lib64");
    if (const std::string own = own_folder(); !own.empty()) {
        add_site_packages(files, fs::path(own) / "..");  // site-packages/clebsch
        add_site_packages(files, fs::path(own) / ".." / "..");
        add_prefix(files, fs::path(own) / "..");  // the program in a Python environment's bin
    }
    if (const auto environment = variable("VIRTUAL_ENV")) add_prefix(files, *environment);
    if (const auto conda = variable("CONDA_PREFIX")) {
        add_folder(files, fs::path(*conda) / "lib");
        add_prefix(files, *conda);
    }
    for (const char* major : majors) files.push_back(std::string("libnvrtc.so.") + major);
    return files;
}

CompilerStatus compiler_status() {
    try {
        const Nvrtc& found = nvrtc();
        return {true, "NVRTC " + std::to_string(found.major) + "." + std::to_string(found.minor) + ", " + found.library.path()};
    } catch (const std::exception& error) { return {false, error.what()}; }
}

std::string compiler_identity() {
    const Nvrtc& found = nvrtc();
    std::error_code error;
    const auto size = fs::file_size(found.library.path(), error);
    return "nvrtc " + std::to_string(found.major) + "." + std::to_string(found.minor) + " " +
           (error ? std::string("?") : std::to_string(size));
}

Compiled compile(const std::string& text, const std::string& name, const GpuTarget& target) {
    const Nvrtc& found = nvrtc();
    void* program = nullptr;
    const auto check = [&](int result, const char* doing) {
        if (result == 0) return;
        throw Error(ErrorKind::unsupported, "kernel " + name + ", " + doing + ": NVRTC: " + found.error_string(result));
    };
    check(found.create(&program, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr), "making a program");
    struct Owner {
        const Nvrtc& nvrtc;
        void** program;
        ~Owner() { nvrtc.destroy(program); }
    } owner{found, &program};
    const std::string architecture = "--gpu-architecture=" + target.name() + (target.major >= 9 ? "a" : "");
    std::vector<const char*> options = {architecture.c_str(), "--std=c++17", "--ptxas-options=-v"};
    if (found.major >= 13)
        options.push_back("--no-cache");  // what comes from NVRTC's own cache has no log, and we keep machine code ourselves
    if (variable("CLEBSCH_RACECHECK")) options.push_back("--generate-line-info");  // tests/gpu/sanitize.sh
    const int result = found.compile(program, static_cast<int>(options.size()), options.data());
    Compiled compiled;
    std::size_t size = 0;
    check(found.log_size(program, &size), "reading the log");
    compiled.log.resize(size);
    if (size > 0) check(found.log(program, compiled.log.data()), "reading the log");
    while (!compiled.log.empty() && compiled.log.back() == '\0') compiled.log.pop_back();
    if (result != 0) {
        const std::string message = "kernel " + name + " for " + target.name() + ": NVRTC " + std::to_string(found.major) + "." +
                                    std::to_string(found.minor) + ": " + found.error_string(result) + "\n" + compiled.log;
        if (compiled.log.find("setmaxnreg") != std::string::npos) throw RegistersRefused(ErrorKind::unsupported, message);
        throw Error(ErrorKind::unsupported, message);
    }
    check(found.cubin_size(program, &size), "reading the machine code");
    compiled.cubin.resize(size);
    check(found.cubin(program, compiled.cubin.data()), "reading the machine code");
    return compiled;
}

KernelResources resources_of(const std::string& log) {
    KernelResources resources;
    const auto before = [&](const char* words, std::size_t from) {  // the number in front of these words, 0 if they are not there
        const std::size_t at = log.find(words, from);
        if (at == std::string::npos || at == 0) return 0;
        std::size_t begin = at;
        while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
        return std::atoi(log.substr(begin, at - begin).c_str());
    };
    for (std::size_t at = log.find("bytes stack frame"); at != std::string::npos; at = log.find("bytes stack frame", at + 1))
        resources.spill_bytes += before(" bytes spill stores", at) + before(" bytes spill loads", at);
    for (std::size_t at = log.find("Used "); at != std::string::npos; at = log.find("Used ", at + 1)) {
        resources.registers = std::max(resources.registers, before(" registers", at));
        const std::size_t line = log.find('\n', at);
        if (log.find(" bytes smem", at) < line) resources.shared_bytes = std::max(resources.shared_bytes, before(" bytes smem", at));
    }
    return resources;
}

}  // namespace clebsch::gpu
