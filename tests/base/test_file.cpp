#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"

using namespace clebsch;
namespace fs = std::filesystem;

TEST_CASE("files are read whole, within the limit, and written all or nothing") {
    const fs::path folder = fs::temp_directory_path() / ("clebsch-file-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const fs::path path = folder / "data";
    const std::string content = std::string("a\0b", 3) + std::string(200'000, 'x');
    write_file(path, content);
    CHECK(read_file(path) == content);
    CHECK(read_file(path, static_cast<std::int64_t>(content.size())) == content);
    CHECK_THROWS_WITH_AS(read_file(path, 1000), doctest::Contains("larger than the limit of 1000 bytes"), Error);
    write_file(path, "new");
    CHECK(read_file(path) == "new");
    CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);  // no temporary file stays
    const fs::path empty = folder / "empty";
    write_file(empty, "");
    CHECK(read_file(empty).empty());
    CHECK(read_file("/proc/self/status").find("Name:") == 0);  // a file whose size the system does not tell

    for (const auto& [bad, kind] : {std::pair<fs::path, ErrorKind>{folder / "absent", ErrorKind::not_found},
                                    {path / "below", ErrorKind::not_found},
                                    {folder, ErrorKind::io}}) {
        try {
            read_file(bad);
            FAIL_CHECK("read " << bad.string());
        } catch (const Error& error) {
            CHECK(error.kind() == kind);
            CHECK(std::string(error.what()).find(bad.string()) != std::string::npos);
        }
    }
    CHECK_THROWS_WITH_AS(read_file("/dev/zero"), "cannot read file '/dev/zero': it is a device", Error);  // it has no end
    CHECK(read_file("/dev/null").empty());
    CHECK_THROWS_AS(write_file(folder / "absent" / "data", "x"), Error);
    CHECK_THROWS_AS(write_file(folder, "x"), Error);

    // Only ordinary files are replaced: links stay links, devices and pipes are written to.
    const fs::path link = folder / "link", pipe = folder / "pipe";
    fs::create_symlink("data", link);
    write_file(link, "through the link");
    CHECK(fs::is_symlink(link));
    CHECK(read_file(path) == "through the link");
    const fs::path dangling = folder / "dangling", circle = folder / "circle";
    fs::create_symlink("not yet", dangling);
    write_file(dangling, "made");
    CHECK(fs::is_symlink(dangling));
    CHECK(read_file(folder / "not yet") == "made");
    fs::create_symlink("circle", circle);
    CHECK_THROWS_WITH_AS(write_file(circle, "nowhere"), doctest::Contains("circle"), Error);
    CHECK(fs::is_symlink(circle));
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    write_file(pipe, "into the pipe");
    std::string arrived(100, '\0');
    arrived.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(reader, arrived.data(), arrived.size()), 0)));
    ::close(reader);
    CHECK(arrived == "into the pipe");
    CHECK(fs::is_fifo(pipe));
    fs::remove_all(folder);
}

TEST_CASE("numbers in messages are as exact as they must be and no longer") {
    CHECK(number_text(0.1) == "0.1");
    CHECK(number_text(1e-300) == "1e-300");
    CHECK(number_text(-2) == "-2");
    CHECK(number_text(std::nan("")) == "nan");
    CHECK(number_text(1.0 / 3) == "0.3333333333333333");
}

TEST_CASE("text from files is shown harmless: cut and escaped") {
    CHECK(printable("plain text") == "plain text");
    CHECK(printable("\x1b[31m\n\xff") == "\\x1b[31m\\x0a\\xff");
    CHECK(in_quotes(std::string(100, 'a'), 3) == "'aaa...'");
    CHECK_THROWS_WITH_AS(fail_at_line("a.xyz", 3, "bad"), "file 'a.xyz', line 3: bad", Error);
    CHECK_THROWS_WITH_AS(fail_at_byte("a.npy", 0, "bad"), "file 'a.npy', byte 0: bad", Error);
}
