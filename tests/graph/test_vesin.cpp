#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "graph/vesin.hpp"

using namespace clebsch;

// The library is loaded once per process, so these cases run this program again with another environment.
TEST_CASE("child process: prints the state of vesin" * doctest::skip()) {
    if (const char* path = std::getenv("CLEBSCH_TEST_VESIN_PATH")) set_vesin_path(path);
    const VesinStatus status = vesin_status();
    std::printf("%s|%s|end\n", status.found ? "found" : "missing", status.text.c_str());
}

namespace {

std::string status_with(const std::string& environment) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string command = "env " + environment + " '" + self + "' --no-skip -tc='child process*'";
    std::FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe);
    std::string out;
    std::array<char, 4096> buffer;
    for (std::size_t got; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) out.append(buffer.data(), got);
    CHECK(pclose(pipe) == 0);  // whatever the library is, the process ends normally
    const std::size_t begin = std::min(out.find("found|"), out.find("missing|")), end = out.find("|end");
    REQUIRE(end != std::string::npos);
    return out.substr(begin, end - begin);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct TemporaryFolder {
    std::filesystem::path path;
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "clebsch-vesin-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()));
        path = name;
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("an explicitly chosen vesin that does not work is an error that says why; no other one is taken instead") {
    const TemporaryFolder folder;
    const std::string text = (folder.path / "text.so").string();
    write_file(text, "not a library");
    for (const auto& [path, part] : {std::pair<std::string, std::string>{"/nonexistent/libvesin.so", "cannot open shared object"},
                                     {text, "file too short"},
                                     {"libm.so.6", "has no function 'vesin_neighbors'"}}) {
        const std::string status = status_with("CLEBSCH_VESIN_LIBRARY=" + path);
        CAPTURE(status);
        CHECK(contains(status, "missing|CLEBSCH_VESIN_LIBRARY: "));
        CHECK(contains(status, "pip install 'vesin>=0.6,<0.7'"));
        CHECK(contains(status, part));
    }
}

TEST_CASE("without vesin the error holds the install command and what was tried") {
    const std::string status =
        status_with("-u CLEBSCH_VESIN_LIBRARY -u VIRTUAL_ENV -u LD_LIBRARY_PATH CLEBSCH_TEST_VESIN_PATH=/nonexistent/place");
    CAPTURE(status);
    if (contains(status, "found|")) return;  // this system has one installed
    CHECK(contains(status, "pip install 'vesin>=0.6,<0.7'"));
    CHECK(contains(status, "CLEBSCH_VESIN_LIBRARY"));
    CHECK(contains(status, "Tried:"));
    CHECK(contains(status, "/nonexistent/place: neither a file nor a folder"));
    CHECK(contains(status, "libvesin.so"));
}

TEST_CASE("vesin is found by file, package folder and prefix; another version's header beside it is refused") {
    const VesinStatus here = vesin_status();
    CAPTURE(here.text);
    REQUIRE(here.found);
    const std::string clean = "-u CLEBSCH_VESIN_LIBRARY -u VIRTUAL_ENV ";
    CHECK(status_with(clean + "CLEBSCH_VESIN_LIBRARY=" + here.text) == "found|" + here.text);
    CHECK(status_with(clean + "CLEBSCH_TEST_VESIN_PATH=" + here.text) == "found|" + here.text);

    const TemporaryFolder folder;
    const auto package = folder.path / "lib" / "python3.99" / "site-packages" / "vesin";
    std::filesystem::create_directories(package / "lib");
    std::filesystem::create_directories(package / "include");
    const std::string copy = (package / "lib" / "libvesin.so").string();
    std::filesystem::copy_file(here.text, copy);
    CHECK(status_with(clean + "CLEBSCH_TEST_VESIN_PATH=" + package.string()) == "found|" + copy);
    CHECK(status_with(clean + "CLEBSCH_TEST_VESIN_PATH=" + folder.path.string()) == "found|" + copy);
    CHECK(status_with(clean + "VIRTUAL_ENV=" + folder.path.string()) == "found|" + copy);

    write_file(package / "include" / "vesin.h", "struct VesinOptions {\n    double cutoff;\n    bool full;\n    bool sorted;\n};\n");
    const std::string refused = status_with(clean + "VIRTUAL_ENV=" + folder.path.string());
    CAPTURE(refused);
    CHECK(
        contains(refused, "has another interface than version 0.6 (VesinOptions in its vesin.h is {double cutoff;bool full;bool sorted})"));
    CHECK(contains(refused, "pip install"));
}

TEST_CASE("a vesin that gives a reason for its failure is not taken for another version") {
    if (std::system("c++ --version > /dev/null 2>&1") != 0) {
        MESSAGE("skipped: there is no host compiler called c++");
        return;
    }
    const TemporaryFolder folder;
    const std::string source = (folder.path / "vesin.cpp").string(), library = (folder.path / "libvesin.so").string();
    write_file(
        source,
        "struct Options { double cutoff; bool full, sorted; int algorithm; double skin; int threads; bool shifts, distances, vectors; };\n"
        "struct Device { int kind, number; };\n"
        "extern \"C\" int vesin_neighbors(const void*, unsigned long, const void*, const void*, Device, Options, void*, const char** m) {\n"
        "    *m = \"Resource temporarily unavailable\";\n"
        "    return 1;\n"
        "}\n"
        "extern \"C\" void vesin_free(void*) {}\n");
    REQUIRE(std::system(("c++ -shared -fPIC -o " + library + " " + source).c_str()) == 0);
    const std::string status = status_with("CLEBSCH_VESIN_LIBRARY=" + library);
    CAPTURE(status);
    CHECK(contains(status, "fails: Resource temporarily unavailable"));
    CHECK_FALSE(contains(status, "another interface"));
}
