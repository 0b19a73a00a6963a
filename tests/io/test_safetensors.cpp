#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/file.hpp"
#include "hostile.hpp"
#include "io/safetensors.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

std::string with_header(const std::string& header, std::size_t data) {
    std::string out;
    for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 255);
    return out + header + std::string(data, 'x');
}

SafetensorsHeader parse(const std::string& content) {
    return parse_safetensors_header(content, static_cast<std::int64_t>(content.size()), "some.safetensors");
}

struct TemporaryFile {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("clebsch-test-" + std::to_string(::getpid()) + ".safetensors");
    ~TemporaryFile() { std::filesystem::remove(path); }
};

std::vector<NamedArray> some_tensors() {
    return {{"half", {ElementType::float16, {3}, std::vector<std::byte>(6, std::byte{1})}},
            {"layer.0/w\"\xc3\xa9", make_array(std::vector<float>{1, -2, 3.5f, 0, 5, 6}, {2, 3})},
            {"scalar", make_array(std::vector<double>{2.5}, {})},
            {"empty", make_array(std::vector<std::int64_t>{}, {0, 4})},
            {"flags", {ElementType::boolean, {2}, {std::byte{0}, std::byte{1}}}}};
}

}  // namespace

TEST_CASE("safetensors: what is written is what is read, aligned, with metadata") {
    const TemporaryFile file;
    write_safetensors(file.path, some_tensors(), {{"format", "pt"}, {"note", "a \"b\"\n"}});
    const SafetensorsFile read(file.path);
    CHECK(read.header().metadata == std::map<std::string, std::string>{{"format", "pt"}, {"note", "a \"b\"\n"}});
    CHECK(read.header().tensors.size() == 5);
    CHECK(read.header().data_begin % 8 == 0);
    for (const TensorEntry& entry : read.header().tensors) CHECK(entry.begin % size_of(entry.type) == 0);
    for (const NamedArray& each : some_tensors()) CHECK(read.load(each.name) == each.array);
    CHECK(read.has("scalar"));
    CHECK_FALSE(read.has("Scalar"));
    check_rejected([&] { read.load("absent"); }, "no tensor 'absent'", file.path.string());
    CHECK(parse(format_safetensors({})).tensors.empty());
}

TEST_CASE("safetensors: a file of the format's own implementation, byte for byte") {
    // safetensors.numpy.save({"a": float32 [[1, 2]], "b": int64 [3]}, metadata={"k": "v"})
    const std::string header =
        R"({"__metadata__":{"k":"v"},"b":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}})";
    std::string padded = header;
    padded.append((8 - padded.size() % 8) % 8, ' ');
    const std::string content = with_header(padded, 0) + std::string("\x03\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 16);
    CHECK(parse(content).tensors[1].name == "a");
    CHECK(format_safetensors({{"a", make_array(std::vector<float>{1, 2}, {1, 2})}, {"b", make_array(std::vector<std::int64_t>{3}, {1})}},
                             {{"k", "v"}}) == content);
}

TEST_CASE("safetensors: headers that lie are refused") {
    const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    CHECK(parse(with_header(good, 8)).tensors.size() == 1);
    const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
        return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
    };
    const std::tuple<std::string, std::size_t, const char*> cases[] = {
        {good, 7, "data_offsets [0, 8]: expected begin and end within the 7 bytes"},
        {good, 9, "1 bytes after the last tensor"},
        {"{}", 3, "3 bytes after the last tensor"},
        {entry("F32", "[2]", "[1,9]"), 9, "after a hole from 0"},
        {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6,
         "'b' begins at offset 2, inside the one before it"},
        {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4,
         "inside the one before it"},
        {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})", 5,
         "'b' begins at offset 3, after a hole from 2"},
        {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", 4,
         "appears twice"},
        {entry("F31", "[2]", "[0,8]"), 8, "dtype 'F31' is not one that is read (in tensor 'a')"},
        {entry("F4", "[16]", "[0,8]"), 8, "dtype 'F4'"},
        {entry("F32", "[3]", "[0,8]"), 8, "shape [3] of F32 does not fill"},
        {entry("F32", "[-2]", "[0,8]"), 8, "does not fill"},
        {entry("F32", "[2.0]", "[0,8]"), 8, "list of integers"},
        {entry("F32", "2", "[0,8]"), 8, "list of integers"},
        {entry("F32", "[4611686018427387904,4]", "[0,8]"), 8, "does not fill"},
        {entry("U8", "[4294967296,4294967296]", "[0,0]"), 0, "does not fill"},
        {entry("U8", "[0,4294967296,4294967296]", "[0,0]"), 0, "does not fill"},
        {entry("F32", "[18446744073709551615]", "[0,8]"), 8, "entry 0 is not one"},
        {entry("F32", "[2]", "[0,18446744073709551615]"), 8, "entry 1 is not one"},
        {entry("F32", "[2]", "[8,0]"), 8, "expected begin and end"},
        {entry("F32", "[2]", "[-8,0]"), 8, "expected begin and end"},
        {entry("F32", "[2]", "[0,8,9]"), 9, "expected begin and end"},
        {R"({"a":{"dtype":"F32","shape":[2]}})", 8, "'data_offsets' is missing (in tensor 'a')"},
        {R"({"a":{"dtype":3,"shape":[2],"data_offsets":[0,8]}})", 8, "'dtype': expected a string"},
        {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8, "unknown key 'x'"},
        {R"({"a":3})", 0, "expected a JSON object"},
        {R"({"__metadata__":{"a":1}})", 0, "'a': expected a string"},
        {"[]", 0, "expected a JSON object"},
        {" {}", 0, "expected a JSON object"},
        {"", 0, "expected a JSON object"},
        {"{", 0, "JSON"},
        {"{}x", 0, "JSON"},
        {"{\"\xff\":1}", 0, "JSON"},
    };
    for (const auto& [given_header, given_data, part] : cases) {
        const auto& header = given_header;
        CAPTURE(header);
        const auto& data = given_data;
        check_rejected([&] { parse(with_header(header, data)); }, part, "some.safetensors");
    }
    check_rejected([] { parse("1234567"); }, "shorter than the 8 bytes");
    check_rejected([] { parse(""); }, "shorter than the 8 bytes");
    check_rejected([] { parse(std::string(8, '\xff')); }, "at most 100000000 are read");
    check_rejected([] { parse(std::string("\x03\0\0\0\0\0\0\0{}", 10)); }, "ends inside its header of 3 bytes");
}

TEST_CASE("safetensors: truncations and single damaged bytes give an error or a header that fits the file") {
    const std::string content = format_safetensors(
        {{"a", make_array(std::vector<float>{1, 2, 3}, {3})}, {"b", make_array(std::vector<std::int64_t>{1}, {})}}, {{"k", "v"}});
    check_survives_damage(content, [](const std::string& damaged) {
        const SafetensorsHeader header = parse(damaged);
        std::int64_t at = 0;
        for (const TensorEntry& entry : header.tensors) {
            REQUIRE(entry.begin == at);
            at = entry.end;
        }
        REQUIRE(header.data_begin + at == static_cast<std::int64_t>(damaged.size()));
    });
    const TemporaryFile file;
    for (std::size_t size = 0; size < content.size(); size += 7) {
        write_file(file.path, std::string_view(content).substr(0, size));
        CHECK_THROWS_AS(SafetensorsFile{file.path}, Error);
    }
    write_file(file.path, content);
    const SafetensorsFile open(file.path);
    std::filesystem::resize_file(file.path, content.size() - 4);
    check_rejected([&] { open.load("a"); }, "was the file changed?");
    check_rejected([] { SafetensorsFile("/nonexistent/x.safetensors"); }, "cannot open file '/nonexistent/x.safetensors'");
    check_rejected([] { SafetensorsFile("/"); }, "not an ordinary file");
    const TemporaryFile pipe;
    std::filesystem::remove(pipe.path);
    REQUIRE(::mkfifo(pipe.path.c_str(), 0600) == 0);
    check_rejected([&] { SafetensorsFile{pipe.path}; }, "not an ordinary file");
}

TEST_CASE("safetensors: what cannot be written is refused") {
    const Array one = make_array(std::vector<float>{1}, {1});
    check_rejected([&] { format_safetensors({{"a", one}, {"a", one}}); }, "two tensors are named 'a'");
    check_rejected([&] { format_safetensors({{"__metadata__", one}}); }, "cannot be named");
    check_rejected([&] { format_safetensors({{"\xff", one}}); }, "not UTF-8");
    check_rejected([&] { format_safetensors({{"a", {ElementType::float32, {2}, std::vector<std::byte>(4)}}}); }, "does not hold 4 bytes");
    check_rejected(
        [&] {
            format_safetensors({{"a", {ElementType::complex128, {}, std::vector<std::byte>(16)}}});
        },
        "no dtype for complex128");
}
