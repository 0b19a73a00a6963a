#include <doctest/doctest.h>

#include <random>
#include <string>

#include "algebra/irreps.hpp"
#include "base/error.hpp"

using namespace clebsch;

namespace {

std::string round_trip(const char* text) { return to_text(Irreps(text)); }

std::string message_of(std::string_view text) {
    try {
        Irreps{text};
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::parse);
        return error.what();
    }
    return "accepted";
}

/// Column of the caret below the printed text, -1 when the message has none.
int caret_column(const std::string& message) {
    const auto line = message.rfind("\n    ");
    return line == std::string::npos ? -1 : static_cast<int>(message.find('^', line) - line - 5);
}

}  // namespace

TEST_CASE("irreps print as e3nn prints them, whatever blanks, zeros and underscores the text had") {
    CHECK(round_trip("128x0e+64x1o") == "128x0e+64x1o");
    CHECK(round_trip("0e") == "1x0e");
    CHECK(round_trip("01o") == "1x1o");
    CHECK(round_trip("1_0e") == "1x10e");
    CHECK(round_trip("1_000x0_1o") == "1000x1o");
    CHECK(round_trip(" 8 x 1 o ") == "8x1o");
    CHECK(round_trip("\t2x0e +\n3x1o ") == "2x0e+3x1o");
    CHECK(round_trip("0x1o") == "0x1o");
    CHECK(round_trip("-0x1o") == "0x1o");
    CHECK(round_trip("0y+1y+2y+3y") == "1x0e+1x1o+1x2e+1x3o");
    CHECK(round_trip("") == "");
    CHECK(round_trip("  \t ") == "");
    CHECK(round_trip("9223372036854775807x0e") == "9223372036854775807x0e");
    CHECK(to_text(parse_irrep(" 12 e")) == "12e");
}

TEST_CASE("a list without parities is one of SO(3)") {
    const Irreps irreps("32x0+16x1");
    CHECK(to_text(irreps) == "32x0+16x1");
    CHECK(irreps.dim() == 80);
    CHECK(irreps[1].irrep == Irrep{1, Parity::none});
    CHECK(irreps != Irreps("32x0e+16x1o"));
    CHECK(round_trip("1") == "1x1");
    CHECK(round_trip("10") == "1x10");
    CHECK(to_text(Irreps::spherical_harmonics(2, Parity::none)) == "1x0+1x1+1x2");
}

TEST_CASE("malformed irreps are refused with a caret under the offending character") {
    struct Case {
        const char* text;
        int column;
    };
    for (const Case& sample : {
             Case{"-1x0e", 0},
             {"+0e", 0},
             {"0e+", 3},
             {"1o++2e", 3},
             {"2x3x0e", 3},
             {"x0e", 0},
             {"2x", 2},
             {"e", 0},
             {"1O", 1},
             {"1p", 1},
             {"1.0x0e", 1},
             {"2*0e", 1},
             {"1x-1e", 2},
             {"1 0e", 1},
             {"1__0e", 1},
             {"_1e", 0},
             {"1_e", 1},
             {"0x", 2},
             {"1eo", 1},
             {"+", 0},
             {"0e+1", 3},
             {"32x0+16x1o", 8},
             {"13e", 0},
             {"2x0e+1x13", 7},
             {"99999999999999999999e", 0},
             {"9223372036854775808x0e", 0},
             {"1_000_000_000_000_000_000_000x0e", 0},
             {"9223372036854775807x1o", 0},
             {"9223372036854775807x0e+1x0e", 23},
             {"--0e", 1},
             {"-", 0},
             {"1o\xc3\xa9", 3},
             {"\xc3\xa9x1o", 0},
             {"1X0e", 1},
             {"1,0e", 1},
             {"(1)", 2},
         }) {
        INFO("text: ", sample.text);
        const std::string message = message_of(sample.text);
        INFO("message: ", message);
        CHECK(message != "accepted");
        CHECK(caret_column(message) == sample.column);
    }
    CHECK(message_of("13e").find("above 12") != std::string::npos);
    CHECK(message_of("0e+1").find("SO(3)") != std::string::npos);
    CHECK(message_of("9223372036854775808x0e").find("64 bits") != std::string::npos);
    // Text with a zero byte, and an error far into a long text: the caret stays below what is printed.
    CHECK(caret_column(message_of(std::string_view("1o\0", 3))) == 2);
    std::string long_text;
    for (int i = 0; i < 1000; ++i) long_text += "1x0e+";
    CHECK(message_of(long_text + "1z" + "+1x0e").size() < 400);
    CHECK(caret_column(message_of(long_text + "1z")) == 51);
    CHECK_THROWS_AS(parse_irrep("2x1o"), Error);
    CHECK_THROWS_AS(parse_irrep(""), Error);
}

TEST_CASE("blocks given as values obey the same rules as text") {
    CHECK_THROWS_AS(Irreps(std::vector<IrrepBlock>{{-1, {0, Parity::even}}}), Error);
    CHECK_THROWS_AS(Irreps(std::vector<IrrepBlock>{{1, {13, Parity::even}}}), Error);
    CHECK_THROWS_AS(Irreps(std::vector<IrrepBlock>{{1, {-1, Parity::even}}}), Error);
    CHECK_THROWS_AS(Irreps(std::vector<IrrepBlock>{{1, {1, static_cast<Parity>(3)}}}), Error);
    CHECK_THROWS_AS(Irreps(std::vector<IrrepBlock>{{1, {1, Parity::odd}}, {1, {1, Parity::none}}}), Error);
    CHECK_THROWS_AS(Irreps(std::vector<IrrepBlock>{{std::int64_t{1} << 62, {1, Parity::odd}}}), Error);
    CHECK_THROWS_AS(Irreps("1o") + Irreps("1"), Error);
    CHECK(to_text(Irreps("1o") + Irreps("") + Irreps("2x0e")) == "1x1o+2x0e");
    CHECK(to_text(Irreps("1o+0e").repeated(2)) == "1x1o+1x0e+1x1o+1x0e");
    CHECK(Irreps("1o").repeated(0) == Irreps());
    CHECK_THROWS_AS(Irreps("1o").repeated(-1), Error);
    CHECK_THROWS_AS(Irreps("1o").repeated(std::int64_t{1} << 62), Error);
    CHECK_THROWS_AS(Irreps::spherical_harmonics(13), Error);
}

TEST_CASE("equality is literal") {
    CHECK(Irreps("1x0e") == Irreps("0e"));
    CHECK(Irreps("2x0e") != Irreps("0e+0e"));
    CHECK(Irreps("0x1o") != Irreps(""));
}

TEST_CASE("sorting is e3nn's: by degree, odd before even, stable, with the permutation and its inverse") {
    auto sorted = Irreps("2o+1e+0e+1e").sorted();
    CHECK(to_text(sorted.irreps) == "1x0e+1x1e+1x1e+1x2o");
    CHECK(sorted.permutation == std::vector<int>{3, 1, 0, 2});
    CHECK(sorted.inverse == std::vector<int>{2, 1, 3, 0});
    const Irreps irreps("2x2o+3x1e+0x0e+1x1e+4x0o+1x1o+5x0e+2x1e");
    sorted = irreps.sorted();
    CHECK(to_text(sorted.irreps) == "4x0o+0x0e+5x0e+1x1o+3x1e+1x1e+2x1e+2x2o");
    CHECK(sorted.permutation == std::vector<int>{7, 4, 1, 5, 0, 3, 2, 6});
    CHECK(sorted.inverse == std::vector<int>{4, 2, 6, 5, 1, 3, 7, 0});
    CHECK(to_text(irreps.regrouped()) == "4x0o+5x0e+1x1o+6x1e+2x2o");
}

TEST_CASE("simplification merges neighbours and looks through blocks of multiplicity zero") {
    CHECK(to_text(Irreps("1x1e+0x0e+1x1e").simplified()) == "2x1e");
    CHECK(to_text(Irreps("0x1e+1x1e").simplified()) == "1x1e");
    CHECK(to_text(Irreps("2x1e+0x1e").simplified()) == "2x1e");
    CHECK(to_text(Irreps("0x0e").simplified()) == "");
    CHECK(to_text(Irreps("1o+1e+1o+1o").simplified()) == "1x1o+1x1e+2x1o");
}

TEST_CASE("sizes, slices, counts and filters") {
    const Irreps irreps("2x0e+0x3o+3x1o+1x0e+1x2e");
    CHECK(irreps.dim() == 17);
    CHECK(irreps.num_irreps() == 7);
    CHECK(irreps.size() == 5);
    CHECK(irreps.lmax() == 2);
    CHECK(irreps.count({0, Parity::even}) == 3);
    CHECK(irreps.count({0, Parity::odd}) == 0);
    CHECK(irreps.slices() == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 2}, {2, 2}, {2, 11}, {11, 12}, {12, 17}});
    CHECK(to_text(irreps.filtered({{0, Parity::even}, {1, Parity::even}})) == "2x0e+1x0e");
    CHECK(to_text(irreps.without({{0, Parity::even}, {1, Parity::even}})) == "0x3o+3x1o+1x2e");
    CHECK(to_text(irreps.up_to_degree(1)) == "2x0e+3x1o+1x0e");
    CHECK_THROWS_AS(Irreps("0x1o").lmax(), Error);
    CHECK_THROWS_AS(Irreps("").lmax(), Error);
    CHECK(to_text(Irreps::spherical_harmonics(3)) == "1x0e+1x1o+1x2e+1x3o");
    CHECK(to_text(Irreps::spherical_harmonics(2, Parity::even)) == "1x0e+1x1e+1x2e");
}

TEST_CASE("products run from |la-lb| to la+lb with the product of the parities") {
    const Irrep vector{1, Parity::odd}, quadrupole{2, Parity::even};
    CHECK(product(vector, quadrupole) == std::vector<Irrep>{{1, Parity::odd}, {2, Parity::odd}, {3, Parity::odd}});
    CHECK(product({1, Parity::none}, {1, Parity::none}) == std::vector<Irrep>{{0, Parity::none}, {1, Parity::none}, {2, Parity::none}});
    CHECK_THROWS_AS(product(vector, {1, Parity::none}), Error);
    for (int a = 0; a <= 4; ++a) {
        for (int b = 0; b <= 4; ++b) {
            for (int c = 0; c <= 9; ++c) {
                const bool triangle = c >= std::abs(a - b) && c <= a + b;
                CHECK(couples({a, Parity::odd}, {b, Parity::even}, {c, Parity::odd}) == triangle);
                CHECK_FALSE(couples({a, Parity::odd}, {b, Parity::even}, {c, Parity::even}));
            }
        }
    }
    CHECK_FALSE(couples(vector, {1, Parity::none}, {1, Parity::none}));
    CHECK_FALSE(couples(vector, vector, {1, Parity::none}));
}

TEST_CASE("any text is either refused with a parse error or read back equal from its printed form") {
    std::mt19937_64 random(31);
    const std::string_view alphabet = "0123x+eoy _1e+0\xc3-";
    int accepted = 0;
    for (int trial = 0; trial < 20000; ++trial) {
        std::string text;
        for (auto length = random() % 10; length > 0; --length) text += alphabet[random() % alphabet.size()];
        INFO("seed 31, text '", text, "'");
        try {
            const Irreps irreps{std::string_view(text)};
            CHECK(Irreps(std::string_view(to_text(irreps))) == irreps);
            ++accepted;
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::parse);
            CHECK(caret_column(error.what()) <= static_cast<int>(text.size()));
        }
    }
    CHECK(accepted > 1000);
    CHECK(accepted < 19000);
}
