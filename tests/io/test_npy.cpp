#include <cmath>
#include <cstring>

#include "base/file.hpp"
#include "hostile.hpp"
#include "io/npy.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

std::string npy(const std::string& dict, const std::string& data, int major = 1) {
    std::string out = "\x93NUMPY";
    out += static_cast<char>(major);
    out += '\0';
    for (int i = 0; i < (major == 1 ? 2 : 4); ++i) out += static_cast<char>(dict.size() >> (8 * i) & 255);
    return out + dict + data;
}

std::string floats(std::initializer_list<float> values) {
    std::string out(values.size() * 4, '\0');
    std::memcpy(out.data(), values.begin(), out.size());
    return out;
}

}  // namespace

TEST_CASE(".npy: every element type and shape reads back as written") {
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {1}, {3}, {2, 3}, {0}, {2, 0, 3}, {1, 2, 1, 2}}) {
        for (const ElementType type :
             {ElementType::boolean, ElementType::uint8, ElementType::int8, ElementType::uint16, ElementType::int16, ElementType::uint32,
              ElementType::int32, ElementType::uint64, ElementType::int64, ElementType::float16, ElementType::float32, ElementType::float64,
              ElementType::complex64, ElementType::complex128}) {
            Array array{type, shape, {}};
            for (std::int64_t i = 0; i < *byte_count(type, shape); ++i) array.bytes.push_back(static_cast<std::byte>(i * 37 + 1));
            const std::string content = format_npy(array);
            const NpyArray read = parse_npy(content, "x.npy");
            CHECK(read.array == array);
            CHECK(read.end == static_cast<std::int64_t>(content.size()));
            CHECK((content.size() - array.bytes.size()) % 64 == 0);
            CHECK(parse_npy("abc" + content + "rest", "x.npy", 3).end == read.end + 3);
        }
    }
    check_rejected([] { format_npy({ElementType::bfloat16, {1}, std::vector<std::byte>(2)}); }, "no name for bfloat16");
}

TEST_CASE(".npy: headers as NumPy and others write them, Fortran order, three versions") {
    const std::string plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", data = floats({1, 2, 3, 4, 5, 6});
    for (const int major : {1, 2, 3})
        CHECK(to_float32(parse_npy(npy(plain, data, major), "x.npy").array) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(parse_npy(npy("{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f4\"}", data), "x.npy").array.shape ==
          std::vector<std::int64_t>{6});
    CHECK(to_float32(parse_npy(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", data), "x.npy").array) ==
          std::vector<float>{1, 3, 5, 2, 4, 6});
    CHECK(to_float32(parse_npy(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 3, 2)}", data), "x.npy").array) ==
          std::vector<float>{1, 4, 2, 5, 3, 6});
    CHECK(parse_npy(npy("{'descr': '<u1', 'fortran_order': False, 'shape': (2,)}", "ab"), "x.npy").array.type == ElementType::uint8);
    CHECK(parse_npy(npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", floats({7})), "x.npy").array.elements() == 1);
}

TEST_CASE(".npy: damaged, hostile and unsupported headers") {
    const auto dict = [](const std::string& shape, const std::string& descr = "'<f4'") {
        return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}";
    };
    const std::pair<std::string, const char*> cases[] = {
        {"", "expected a .npy array"},
        {"PK\x03\x04", "expected a .npy array"},
        {"\x93NUMPY", "ends inside a .npy header"},
        {npy(dict("(1,)"), "abc"), "has only 3 bytes left"},
        {npy(dict("(9223372036854775807,)"), "abc"), "has only 3 bytes left"},
        {npy(dict("(4294967296, 4294967296, 4294967296)"), "abc"), "has only 3 bytes left"},
        {npy(dict("(0, 4294967296, 4294967296)"), ""), "has only 0 bytes left"},
        {npy(dict("(99999999999999999999,)"), ""), "larger than 64 bits"},
        {npy(dict("(-1,)"), ""), "non-negative integer"},
        {npy(dict("(1.5,)"), ""), "expected ',' or ')'"},
        {npy(dict("1"), ""), "expected '('"},
        {npy(dict("(1"), ""), "expected"},
        {npy(dict("(" + std::string(200, '1') + ")"), ""), "64 bits"},
        {npy(dict([] {
                 std::string many = "(";
                 for (int i = 0; i < 65; ++i) many += "1,";
                 return many + ")";
             }()),
             "abcd"),
         "more than 64 axes"},
        {npy(dict("(1,)", "'|O'"), "abcd"), "pickled objects are not read"},
        {npy(dict("(1,)", "'O'"), "abcd"), "pickled objects are not read"},
        {npy(dict("(1,)", "'>f4'"), "abcd"), "little-endian"},
        {npy(dict("(1,)", "'<f3'"), "abcd"), "type '<f3'"},
        {npy(dict("(1,)", "'<U4'"), "abcd"), "type '<U4'"},
        {npy(dict("(1,)", "[('a', '<f4')]"), "abcd"), "records are not read"},
        {npy("{'descr': '<f4', 'shape': (1,)}", "abcd"), "expected the keys"},
        {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "abcd"), "repeated key 'descr'"},
        {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "abcd"), "True or False"},
        {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "abcd"), "key 'x'"},
        {npy("{'descr': '<f4' 'fortran_order': False}", "abcd"), "expected ',' or '}'"},
        {npy("{'descr': '<f4", "abcd"), "string without an end"},
        {npy("{'descr'", "abcd"), "expected ':'"},
        {npy("", "abcd"), "expected '{'"},
        {npy(dict("(1,)") + "x", "abcd"), "unexpected text"},
        {npy(dict("(1,)"), "abcd", 4), ".npy version 4"},
        {npy(dict("(1,)"), "abcd").substr(0, 30), "ends inside a .npy header"},
        {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "header of 4294967295 bytes"},
    };
    for (const auto& [content, part] : cases)
        check_rejected([&content = content] { parse_npy(content, "x.npy"); }, part, "file 'x.npy', byte");
    check_rejected([] { parse_npy("abc", "x.npy", 4); }, "outside the content");
    check_rejected([] { read_npy("/nonexistent.npy"); }, "/nonexistent.npy");
}

TEST_CASE(".npy survives truncation and damage") {
    check_survives_damage(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", floats({1, 2, 3, 4, 5, 6})),
                          [](const std::string& content) { parse_npy(content, "x.npy"); });
}

TEST_CASE("arrays: numbers convert exactly, sizes are checked") {
    Array half{ElementType::float16, {8}, {}};
    for (const std::uint16_t bits : {0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x3555})
        for (const int shift : {0, 8}) half.bytes.push_back(static_cast<std::byte>(bits >> shift & 255));
    CHECK(to_float32(half) == std::vector<float>{0.0f, -0.0f, 1.0f, -2.0f, 65504.0f, 0x1p-24f, INFINITY, 0.333251953125f});
    CHECK(to_float64(half)[7] == 0.333251953125);
    const Array brain{ElementType::bfloat16, {2}, {std::byte{0x80}, std::byte{0x3f}, std::byte{0x20}, std::byte{0xc1}}};
    CHECK(to_float32(brain) == std::vector<float>{1.0f, -10.0f});
    CHECK(to_float64(make_array(std::vector<double>{0.1, -3.0}, {2})) == std::vector<double>{0.1, -3.0});
    CHECK(to_float64(make_array(std::vector<std::int64_t>{-5}, {})) == std::vector<double>{-5.0});
    CHECK(to_float64({ElementType::boolean, {2}, {std::byte{2}, std::byte{0}}}) == std::vector<double>{1.0, 0.0});
    check_rejected([] { to_float32(make_array(std::vector<double>{1}, {1})); }, "float64: expected float32");
    check_rejected([] { to_float64({ElementType::complex64, {}, std::vector<std::byte>(8)}); }, "complex64: expected real");
    check_rejected([] { make_array(std::vector<float>{1, 2}, {3}); }, "shape [3] does not hold 2 values");
    CHECK_FALSE(byte_count(ElementType::float64, {INT64_MAX, 2}));
    CHECK_FALSE(byte_count(ElementType::float64, {-1}));
    CHECK(byte_count(ElementType::float64, {0, 7}) == 0);
    CHECK(to_text(std::vector<std::int64_t>{1, 2}) == "[1, 2]");
}
