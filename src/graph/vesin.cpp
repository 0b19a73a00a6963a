#include "graph/vesin.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"
#include "run/dynamic_library.hpp"

namespace clebsch {

namespace {

// The C interface of vesin 0.6 (vesin.h), as far as it is used here.
namespace abi {
struct Options {
    double cutoff;
    bool full, sorted;
    std::int32_t algorithm;  // 0: automatic
    double skin;
    std::int32_t threads;
    bool return_shifts, return_distances, return_vectors;
};
struct Device {
    std::int32_t kind, number;  // kind 1: CPU
};
struct NeighborList {
    std::size_t length;
    Device device;
    std::size_t (*pairs)[2];
    std::int32_t (*shifts)[3];
    double* distances;
    double (*vectors)[3];
    void* opaque;
};
using Neighbors = int(const double (*points)[3], std::size_t count, const double box[3][3], const bool periodic[3], Device device,
                      Options options, NeighborList* list, const char** message);
using Free = void(NeighborList* list);
static_assert(sizeof(Options) == 32 && sizeof(Device) == 8 && sizeof(NeighborList) == 56);

constexpr const char* options_fields =
    "double cutoff;bool full;bool sorted;VesinAlgorithm algorithm;double skin;int32_t n_threads;"
    "bool return_shifts;bool return_distances;bool return_vectors";
}  // namespace abi

/// Owns what vesin allocates.
struct OwnedList {
    abi::NeighborList list{};
    abi::Free* release;
    explicit OwnedList(abi::Free* function) : release(function) {}
    OwnedList(const OwnedList&) = delete;
    OwnedList& operator=(const OwnedList&) = delete;
    ~OwnedList() { release(&list); }
};

struct Vesin {
    DynamicLibrary library;
    abi::Neighbors* neighbors;
    abi::Free* release;

    explicit Vesin(const std::string& name)
        : library(name),
          neighbors(library.function<abi::Neighbors>("vesin_neighbors")),
          release(library.function<abi::Free>("vesin_free")) {}

    VesinPairs pairs(const std::vector<double>& positions, const std::array<double, 9>& box, const std::array<bool, 3>& periodic,
                     double cutoff) const {
        abi::Options options;
        std::memset(&options, 0, sizeof options);
        options.cutoff = cutoff;
        options.full = true;
        options.threads = 1;
        options.return_shifts = true;
        OwnedList owned(release);
        const char* message = nullptr;
        double rows[3][3];
        std::memcpy(rows, box.data(), sizeof rows);
        const int status = neighbors(reinterpret_cast<const double(*)[3]>(positions.data()), positions.size() / 3, rows, periodic.data(),
                                     abi::Device{1, 0}, options, &owned.list, &message);
        if (status != 0) fail("vesin: " + printable(message ? message : "no message", 300));
        const std::size_t length = owned.list.length;
        VesinPairs out;
        if (length == 0) return out;
        if (!owned.list.pairs || !owned.list.shifts)
            throw Error(ErrorKind::unsupported, "vesin returned pairs without indices or shifts: not the version this library calls");
        out.points.reserve(length);
        out.shifts.reserve(length);
        for (std::size_t i = 0; i < length; ++i) {
            out.points.push_back({static_cast<std::int64_t>(owned.list.pairs[i][0]), static_cast<std::int64_t>(owned.list.pairs[i][1])});
            out.shifts.push_back({owned.list.shifts[i][0], owned.list.shifts[i][1], owned.list.shifts[i][2]});
        }
        return out;
    }
};

[[noreturn]] void fail_version(const std::string& path, const std::string& what) {
    throw Error(ErrorKind::unsupported, "the vesin library " + in_quotes(path, 4096) + " has another interface than version 0.6 (" + what +
                                            "): " + vesin_install_command);
}

/// Compares the header that lies near the library, where there is one; every wheel has it.
void check_header(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path file = fs::canonical(path, error);
    if (error) return;
    for (const char* place : {"../include/vesin.h", "../../include/vesin.h"}) {
        const fs::path header = file.parent_path() / place;
        if (!fs::is_regular_file(header, error)) continue;
        const std::string fields = vesin_options_fields(read_file(header, 1 << 20));
        if (fields != abi::options_fields) fail_version(path, "VesinOptions in its vesin.h is {" + printable(fields, 300) + "}");
        return;
    }
}

/// Calls the library on cases with known answers. The first has no points and all flags zero: older versions take the options in registers
/// and read this call's options as their remaining arguments, a null message pointer among them, which they refuse before anything else.
void check_answers(const Vesin& vesin) {
    const std::string& path = vesin.library.path();
    {
        abi::Options options;
        std::memset(&options, 0, sizeof options);
        options.cutoff = 1.0;
        OwnedList owned(vesin.release);
        const char* message = nullptr;
        const double point[1][3] = {}, box[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
        const bool periodic[3] = {};
        if (vesin.neighbors(point, 0, box, periodic, abi::Device{1, 0}, options, &owned.list, &message) != 0) {
            if (message == nullptr) fail_version(path, "a call without points failed");
            // The right version with a reason of its own, such as threads that the machine does not give.
            throw Error(ErrorKind::unsupported, "the vesin library " + in_quotes(path, 4096) + " fails: " + printable(message, 300));
        }
    }
    // Points at x = 0.5 and 9.5 of a periodic box of length 10, open along y and z: each sees the other through the boundary.
    const VesinPairs pairs = vesin.pairs({0.5, 0, 0, 9.5, 0, 0}, {10, 0, 0, 0, 1, 0, 0, 0, 1}, {true, false, false}, 1.5);
    bool right = pairs.points.size() == 2;
    for (std::size_t i = 0; right && i < 2; ++i) {
        const std::int64_t first = pairs.points[i][0];
        right = (first == 0 || first == 1) && pairs.points[i][1] == 1 - first &&
                pairs.shifts[i] == std::array<std::int32_t, 3>{first == 0 ? -1 : 1, 0, 0};
    }
    if (!right || pairs.points[0] == pairs.points[1]) fail_version(path, "a case with a known answer came out wrong");
}

void add_library_files(std::vector<std::string>& out, const std::filesystem::path& place) {
    namespace fs = std::filesystem;
    std::error_code error;
    const auto add = [&](const fs::path& file) {
        if (fs::is_regular_file(file, error)) out.push_back(file.string());
    };
    if (fs::is_regular_file(place, error)) return add(place);
    add(place / "libvesin.so");
    add(place / "lib" / "libvesin.so");          // vesin's package folder
    for (const char* base : {"lib", "lib64"}) {  // a Python prefix
        for (fs::directory_iterator entry(place / base, error), end; !error && entry != end; entry.increment(error)) {
            if (entry->path().filename().string().starts_with("python"))
                add(entry->path() / "site-packages" / "vesin" / "lib" / "libvesin.so");
        }
    }
}

/// Remembers where to look and what was found. The library stays loaded to the end of the program, since other threads may be in it.
class VesinStore {
 public:
    void set_path(const std::string& path) {
        const std::lock_guard lock(mutex_);
        path_ = path;
    }

    const Vesin& get() {
        const std::lock_guard lock(mutex_);
        if (!vesin_) vesin_ = load();
        return *vesin_;
    }

 private:
    static std::unique_ptr<Vesin> open(const std::string& name) {
        auto vesin = std::make_unique<Vesin>(name);
        check_header(vesin->library.path());
        check_answers(*vesin);
        return vesin;
    }

    std::unique_ptr<Vesin> load() const {
        if (const char* chosen = std::getenv("CLEBSCH_VESIN_LIBRARY"); chosen && chosen[0] != '\0') {
            try {
                return open(chosen);  // an explicit choice: no other place is tried in its stead
            } catch (const Error& error) {
                throw Error(error.kind(), std::string("CLEBSCH_VESIN_LIBRARY: ") + error.what() + " (" + vesin_install_command + ")");
            }
        }
        std::vector<std::string> files;
        std::string tried;
        if (!path_.empty()) add_library_files(files, path_);
        if (!path_.empty() && files.empty()) tried = "\n  " + path_ + ": neither a file nor a folder with the library in it";
        if (const std::string own = own_folder(); !own.empty()) {
            add_library_files(files, own);
            add_library_files(files, std::filesystem::path(own) / "..");            // a Python prefix with the program in its bin
            add_library_files(files, std::filesystem::path(own) / ".." / "vesin");  // site-packages/clebsch beside site-packages/vesin
            add_library_files(files, std::filesystem::path(own) / ".." / ".." / "vesin");  // site-packages/clebsch/lib
        }
        if (const char* environment = std::getenv("VIRTUAL_ENV"); environment && environment[0] != '\0')
            add_library_files(files, environment);
        files.push_back("libvesin.so");  // the system loader's search
        std::optional<Error> wrong_version;
        for (const std::string& file : files) {
            try {
                return open(file);
            } catch (const Error& error) {
                tried += "\n  " + std::string(error.what());
                if (error.kind() == ErrorKind::unsupported && !wrong_version) wrong_version = error;
            }
        }
        if (wrong_version) throw Error(*wrong_version);
        throw Error(ErrorKind::not_found, std::string("neighbour lists need the vesin library, which was not found: ") +
                                              vesin_install_command +
                                              ", or set CLEBSCH_VESIN_LIBRARY to the path of libvesin.so. Tried:" + tried);
    }

    std::mutex mutex_;
    std::string path_;
    std::unique_ptr<Vesin> vesin_;
};

VesinStore& store() {
    static auto* the_store = new VesinStore;  // never destroyed: see VesinStore
    return *the_store;
}

}  // namespace

void set_vesin_path(const std::string& path) { store().set_path(path); }

VesinStatus vesin_status() {
    try {
        return {true, store().get().library.path()};
    } catch (const std::exception& error) { return {false, error.what()}; }
}

VesinPairs vesin_pairs(const std::vector<double>& positions, const std::array<double, 9>& box, const std::array<bool, 3>& periodic,
                       double cutoff) {
    return store().get().pairs(positions, box, periodic, cutoff);
}

std::string vesin_options_fields(std::string_view header) {
    const std::size_t begin = header.find("struct VesinOptions {");
    if (begin == std::string_view::npos) return {};
    const std::size_t open = header.find('{', begin), end = header.find('}', open);
    if (end == std::string_view::npos) return {};
    std::string fields, field;
    bool comment = false;
    for (std::size_t i = open + 1; i < end; ++i) {
        const char letter = header[i];
        if (letter == '/' && header.substr(i, 2) == "//") comment = true;
        if (letter == '\n') comment = false;
        if (comment) continue;
        if (letter == ';') {
            while (!field.empty() && field.back() == ' ') field.pop_back();
            for (const std::string_view word : {"enum ", "struct "})
                if (field.starts_with(word)) field.erase(0, word.size());
            fields += (fields.empty() ? "" : ";") + field;
            field.clear();
        } else if (letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r') {
            if (!field.empty() && field.back() != ' ') field += ' ';
        } else {
            field += letter;
        }
    }
    return fields;
}

}  // namespace clebsch
