#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/error.hpp"
#include "describe/text.hpp"
#include "describe/text_cursor.hpp"
#include "describe/text_random.hpp"

using namespace clebsch;

namespace {

const std::string convolution =
    "clebsch polynomial 0\n"
    "basis e3nn-0.5\n"
    "rows edge\n"
    "index sender: edge -> node\n"
    "index receiver: edge -> node sorted\n"
    "index graph: node -> graph\n"
    "input x: 128x0e+64x1o ir_mul @ sender\n"
    "input y: 1x0e+1x1o mul_ir @ each\n"
    "input w.0: 128x(1)+64x(1) mul_ir @ shared\n"
    "output z: 128x1o+64x(3) ir_mul @ receiver -> graph\n"
    "path u=128: z.0[u|k] += 1.7320508075688772 * cg(0e,1o,1o)[i,j,k] * x.0[u|i] * y.1[|j] * w.0.0[u]\n"
    "path u=64: z.1[u|j] += {3,3; 0,1: 0.1; 2,0: -1e-300}[i,j] * x.1[u|i] * y.0 * w.0.1[u]\n"
    "path u=128: z.0[u|i] += -2 * {3; 1: 1}[i]\n";

template <class Parse>
std::string message_of(Parse&& parse) {
    try {
        parse();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::parse);
        return error.what();
    }
    return "accepted";
}

std::string error_with(const std::string& from, const std::string& to) {
    std::string text = convolution;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    return message_of([&] { parse_polynomial(text); });
}

bool contains(const std::string& text, const std::string& part) {
    const bool found = text.find(part) != std::string::npos;
    if (!found) MESSAGE("message was: " << text);
    return found;
}

}  // namespace

TEST_CASE("canonical text of a polynomial reads back to itself") { CHECK(to_text(parse_polynomial(convolution)) == convolution); }

TEST_CASE("blanks, comments, empty lines and the names of axes do not change what a text means") {
    std::string text =
        "\n  # a comment\n clebsch   polynomial 0 # version\r\n\n basis e3nn-0.5\n" + convolution.substr(convolution.find("rows"));
    const auto replace = [&](const std::string& from, const std::string& to) { text.replace(text.find(from), from.size(), to); };
    replace("128x0e+64x1o ir_mul @ sender", "128 x 0e + 64x1o\tir_mul@sender   # gathered");
    replace("z.0[u|k] +=", "z.0[ u | m3 ]+=");
    replace("cg(0e,1o,1o)[i,j,k] *", "cg( 0e, 1o , 1o ) [ n1 , n2,\n m3] *\n   # continued\n  ");
    replace("x.0[u|i] * y.1[|j]", "x.0[u|n1]*y.1[ |n2]");
    replace("{3,3; 0,1: 0.1; 2,0: -1e-300}", "{ 3, 3;2,0:-0.1e-299\n;0,1: 1e-1 }");
    CHECK(to_text(parse_polynomial(text)) == convolution);
    CHECK(hash_of(parse_polynomial(text)) == hash_text(convolution));
}

TEST_CASE("every double survives: shortest text, exact round trip") {
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t bits = random();
        double value = 0;
        static_assert(sizeof value == sizeof bits);
        std::memcpy(&value, &bits, sizeof value);
        if (!std::isfinite(value)) continue;
        const std::string text = number_text(value);
        CHECK(TextCursor(text, "number").number("a number") == value);
    }
    CHECK(number_text(0.1) == "0.1");
    CHECK(number_text(std::numeric_limits<double>::denorm_min()) == "5e-324");
}

TEST_CASE("random polynomials: parse(to_text(p)) == p, and the text is canonical") {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        testing::RandomDescription random(seed);
        const Polynomial p = random.polynomial();
        const std::string text = to_text(p);
        CAPTURE(seed);
        CAPTURE(text);
        validate(p);
        const Polynomial back = parse_polynomial(text);
        CHECK(back == p);
        CHECK(to_text(back) == text);
    }
}

TEST_CASE("names that are words of the grammar are written in quotes") {
    CHECK(name_text("layer.0.w") == "layer.0.w");
    CHECK(name_text("each") == "\"each\"");
    CHECK(name_text("") == "\"\"");
    for (const std::string name : {"shared", "a b", "quote\"back\\slash", "tab\tend\x7f", "h\xc3\xa9"}) {
        const std::string text = name_text(name);
        CAPTURE(text);
        TextCursor cursor(text, "name");
        CHECK(cursor.name("a name") == name);
        CHECK(cursor.at_end());
    }
}

TEST_CASE("errors say line, column, what was expected and what came") {
    CHECK(contains(message_of([] { parse_polynomial(""); }),
                   "polynomial text, line 1, column 1: expected 'clebsch polynomial 0', the first line, found the end"));
    CHECK(contains(error_with("polynomial 0", "polynomial 1"), "line 1, column 20: version 1 is newer than this library"));
    CHECK(contains(error_with("e3nn-0.5", "e3nn-0.4"), "line 2, column 7: expected 'e3nn-0.5'"));
    CHECK(contains(error_with("rows edge", "row edge"), "line 3, column 1: expected 'rows', found 'row'"));
    CHECK(contains(error_with("edge -> node", "edge > node"), "line 4, column 20: expected '->', found '>'"));
    CHECK(contains(error_with("64x1o ir_mul", "64x1q ir_mul"), "line 7"));
    CHECK(contains(error_with("64x1o ir_mul", "64x13o ir_mul"), "line 7, column 20: irreps: the degree is above 12"));
    CHECK(
        contains(error_with("ir_mul @ sender", "rows @ sender"), "line 7, column 23: expected the layout, mul_ir or ir_mul, found 'rows'"));
    CHECK(contains(error_with("x: 128x0e", "x: 99999999999999999999x0e"), "line 7, column 10: this number does not fit in 64 bits"));
    CHECK(contains(error_with("y.1[|j]", "q.1[|j]"), "line 11, column 79: no operand is called 'q'"));
    CHECK(contains(error_with("y.1[|j]", "y[|j]"), "line 11, column 79: expected a factor such as x.0[u|i], found 'y'"));
    CHECK(contains(error_with("y.1[|j]", "y.1[|q]"), "line 11, column 84: no axis of the coefficients is called 'q'"));
    CHECK(contains(error_with("[i,j,k]", "[i,j]"), "expected ',' and another axis, the coefficients have 3, found ']'"));
    CHECK(contains(error_with("[i,j,k]", "[i,j,j]"), "two axes are called 'j'"));
    CHECK(contains(error_with("cg(0e,1o,1o)", "cg(0e,1o,3o)"), "line 11, column 46: "));
    CHECK(contains(error_with("1.7320508075688772", "1e400"), "line 11, column 25: this number is outside the range of float64"));
    CHECK(contains(error_with("1.7320508075688772", "-inf"), "line 11, column 25: expected a number, found '-'"));
    CHECK(contains(error_with("{3; 1: 1}[i]", "{3; 1: 1"), "expected ';' and another entry, or '}', found the end of the text"));
    CHECK(contains(error_with("{3; 1: 1}[i]", "{3; 1,2: 1}[i]"), "line 13, column 33: expected 1 indices, one per axis, found 2"));
    CHECK(contains(error_with("path u=64:", "path u=65:"), "polynomial text: path 1"));
    CHECK(contains(error_with("path u=64:", "paht u=64:"),
                   "line 12, column 1: expected a line that begins with index, input, output or path"));
    CHECK(contains(error_with("output z", "output \"z"), "line 10, column 8: the closing quote of this name is missing"));
    CHECK(contains(error_with("rows edge", "rows each"), "'each' is a keyword, as a name it is written in quotes"));
    CHECK(contains(error_with("rows edge", "rows \xff"), "expected the name of the iteration space, found byte 255"));
}

TEST_CASE("every truncation and every changed byte of a text is read or refused with an error, never anything else") {
    std::mt19937_64 random(11);
    const std::string alphabet = "0123456789abcuvxyz.,:;()[]{}|<>=+-*@#\"\\ \n\t_e";
    for (std::size_t length = 0; length <= convolution.size(); ++length) {
        CHECK_NOTHROW(message_of([&] { parse_polynomial(convolution.substr(0, length)); }));
    }
    for (int i = 0; i < 5000; ++i) {
        std::string text = convolution;
        for (int changes = 0; changes < 1 + i % 3; ++changes) text[random() % text.size()] = alphabet[random() % alphabet.size()];
        CAPTURE(text);
        CHECK_NOTHROW(message_of([&] {
            const Polynomial p = parse_polynomial(text);
            CHECK(parse_polynomial(to_text(p)) == p);
        }));
    }
}
