#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "io/elements.hpp"
#include "io/xyz.hpp"

using namespace clebsch;

namespace {

void check_rejected(const std::string& content, const std::string& part, ErrorKind kind = ErrorKind::parse) {
    CAPTURE(content.substr(0, 200));
    try {
        parse_xyz(content, "some.xyz");
        FAIL_CHECK("accepted");
    } catch (const Error& error) {
        const std::string message = error.what();
        CAPTURE(message);
        CHECK(error.kind() == kind);
        CHECK(message.find("some.xyz") != std::string::npos);
        CHECK(message.find(part) != std::string::npos);
    }
}

}  // namespace

TEST_CASE("the example structures are read with lattice, species and columns") {
    const auto water = read_xyz(CLEBSCH_SOURCE_DIR "/examples/data/water-216.xyz");
    REQUIRE(water.size() == 1);
    CHECK(water[0].atoms() == 648);
    CHECK(water[0].structure.cell[0] == 18.643);
    CHECK(water[0].structure.periodic == std::array<bool, 3>{true, true, true});
    const auto numbers = water[0].atomic_numbers();
    CHECK(std::count(numbers.begin(), numbers.end(), 8) == 216);
    CHECK(std::count(numbers.begin(), numbers.end(), 1) == 432);

    const auto aspirin = read_xyz(CLEBSCH_SOURCE_DIR "/examples/data/aspirin.xyz");
    REQUIRE(aspirin.size() == 2);
    CHECK(aspirin[0].atoms() == 21);
    CHECK_FALSE(aspirin[0].has_lattice);
    CHECK(aspirin[0].structure.periodic == std::array<bool, 3>{false, false, false});
    CHECK(aspirin[0].info_numbers("energy") == std::vector<double>{-17617.63598758549});
    const XyzColumn* forces = aspirin[0].column("forces");
    REQUIRE(forces);
    CHECK(std::get<std::vector<double>>(forces->values).size() == 63);
    CHECK(aspirin[1].info_numbers("energy") == std::vector<double>{-17617.705325999155});
}

TEST_CASE("frames of every column kind, quoting style and number style") {
    const auto frames = parse_xyz(
        "2\n"
        "Lattice=\"4 0 0 0 5 0 0.5 0 6\" Properties=species:S:1:pos:R:3:tags:I:2:fixed:L:1 energy = -1.5 name='a \"b\"' text=\"say "
        "\\\"hi\\\" = 1\" stress=[[1, 2],[3, 4]] old={7 8 9} "
        "converged pbc=\"T F 1\"\n"
        "H 0 1.0d0 -2.5E-1 1 -2 T\n"
        "  Xx\t+1 .5 1e-400 3 +4 False\r\n"
        "0\n"
        "\n"
        "1\n"
        "a plain comment, with \"an open quote\n"
        "8 1 2 3\n"
        "\n"
        "  \n",
        "some.xyz");
    REQUIRE(frames.size() == 3);
    const XyzFrame& first = frames[0];
    CHECK(first.structure.cell == std::array<double, 9>{4, 0, 0, 0, 5, 0, 0.5, 0, 6});
    CHECK(first.structure.periodic == std::array<bool, 3>{true, false, true});
    CHECK(first.structure.positions == std::vector<double>{0, 1, -0.25, 1, 0.5, 0});
    CHECK(first.species == std::vector<std::string>{"H", "Xx"});
    REQUIRE(first.columns.size() == 2);
    CHECK(std::get<std::vector<std::int64_t>>(first.columns[0].values) == std::vector<std::int64_t>{1, -2, 3, 4});
    CHECK(std::get<std::vector<bool>>(first.columns[1].values) == std::vector<bool>{true, false});
    CHECK(first.info_numbers("energy") == std::vector<double>{-1.5});
    CHECK(first.info_numbers("stress") == std::vector<double>{1, 2, 3, 4});
    CHECK(first.info_numbers("old") == std::vector<double>{7, 8, 9});
    CHECK(*first.info_text("name") == "a \"b\"");
    CHECK(*first.info_text("text") == "say \"hi\" = 1");
    CHECK(*first.info_text("converged") == "T");
    CHECK_THROWS_WITH(first.atomic_numbers(), doctest::Contains("atom 1: species 'Xx'"));
    CHECK_THROWS_AS(first.info_numbers("name"), Error);
    CHECK_THROWS_AS(first.info_numbers("absent"), Error);
    CHECK(frames[1].atoms() == 0);
    CHECK(frames[2].comment == "a plain comment, with \"an open quote");
    CHECK(frames[2].atomic_numbers() == std::vector<int>{8});
    CHECK(parse_xyz("", "empty.xyz").empty());
}

TEST_CASE("what is written reads back identical, bits of the numbers included") {
    XyzFrame full;
    full.structure.positions = {0.1, -0.0, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -123456789.123456789};
    full.structure.cell = {4, 0, 0, 1e-17, 5, 0, 0.1, 0, 6};
    full.structure.periodic = {true, false, true};
    full.has_lattice = true;
    full.species = {"C", "Og"};
    full.columns.push_back({"forces", 3, std::vector<double>{1, 2, 3, 0.1, std::numeric_limits<double>::infinity(), 6}});
    full.columns.push_back({"label", 1, std::vector<std::string>{"a=b", "'"}});
    full.columns.push_back({"Z", 1, std::vector<std::int64_t>{6, INT64_MIN}});
    full.columns.push_back({"mask", 2, std::vector<bool>{true, false, false, true}});
    full.info = {{"energy", "-1.5"}, {"two words", "a \"quoted\"\nline \\n"}, {"empty", ""}, {"list", "[1, 2]"}, {"quote", "'"}};
    XyzFrame plain;
    plain.structure.positions = {1, 2, 3};
    plain.species = {"H"};
    plain.comment = "just a comment";
    XyzFrame empty;
    const std::vector<XyzFrame> frames{full, plain, empty};
    const std::string text = format_xyz(frames);
    CAPTURE(text);
    const auto again = parse_xyz(text, "again.xyz");
    REQUIRE(again.size() == 3);
    CHECK(again == frames);
    CHECK(std::signbit(again[0].structure.positions[1]));

    XyzFrame bad = full;
    bad.species = {"C"};
    CHECK_THROWS_WITH(format_xyz({bad}), doctest::Contains("column 'species'"));
    bad = full;
    std::get<std::vector<std::string>>(bad.columns[1].values)[0] = "two words";
    CHECK_THROWS_WITH(format_xyz({bad}), doctest::Contains("has blanks"));
    bad = full;
    bad.info.emplace_back("PBC", "F F F");
    CHECK_THROWS_WITH(format_xyz({bad}), doctest::Contains("key 'PBC'"));
    bad = full;
    bad.info.emplace_back("energy", "2");
    CHECK_THROWS_WITH(format_xyz({bad}), doctest::Contains("key 'energy'"));
    bad = full;
    bad.columns.push_back(bad.columns.front());
    CHECK_THROWS_WITH(format_xyz({bad}), doctest::Contains("two columns are named 'forces'"));
    bad = full;
    bad.has_lattice = false;
    CHECK_THROWS_WITH(format_xyz({bad}), doctest::Contains("has_lattice"));
}

TEST_CASE("damaged extended XYZ is rejected with its line") {
    const std::string properties = "Properties=species:S:1:pos:R:3";
    const std::pair<std::string, std::string> cases[] = {
        {"x\n\n", "line 1: expected the number of atoms"},
        {"-1\n\n", "line 1: expected the number of atoms"},
        {"1 2\n\n", "line 1"},
        {"99999999999999999999\n\nH 0 0 0\n", "line 1"},
        {"1", "line 1: the file ends before the comment line"},
        {"2\n\nH 0 0 0\n", "line 3: the file ends after atom 1 of the 2 that line 1 promises"},
        {"9000000000000000000\n\nH 0 0 0\n", "ends after atom 1"},
        {"1\n\nH 0 0\n", "line 3: an atom with 3 of 4 columns"},
        {"1\n\nH 0 0 0 0\n", "line 3: an atom with more than the 4"},
        {"1\n\nH 0 zero 0\n", "column 'pos': expected a number, got 'zero'"},
        {"1\n\nH 0 nan 0\n", "expected a finite number"},
        {"1\n\nH 0 inf 0\n", "expected a finite number"},
        {"1\n\nH 0 1e999 0\n", "expected a number"},
        {"1\n\nH 0 0x10 0\n", "expected a number"},
        {"1\n\nH 0 1.5.2 0\n", "expected a number"},
        {"1\n\nH 0 0 0\n\n1\n\nH 0 0 0\n", "line 5: text after a blank line"},
        {std::string("1\n\nH\0 0 0 0\n", 12), "zero byte"},
        {"1\nLattice=\"1 0 0 0 1 0 0 0\"\nH 0 0 0\n", "line 2: Lattice: expected 9 numbers"},
        {"1\nLattice=\"1 0 0 0 1 0 0 0 x\"\nH 0 0 0\n", "Lattice: expected a finite number"},
        {"1\nLattice=\"1 0 0 0 1 0 0 0 nan\"\nH 0 0 0\n", "Lattice: expected a finite number"},
        {"1\nLattice=\"1 0 0 0 1 0 0 0 1\nH 0 0 0\n", "a quote without an end"},
        {"1\na=[1 2\nH 0 0 0\n", "a bracket without an end"},
        {"1\n=1\nH 0 0 0\n", "an empty key"},
        {"1\na=1 \"\"\nH 0 0 0\n", "an empty key"},
        {"1\na=\"1\"b\nH 0 0 0\n", "expected a blank after"},
        {"1\na=1 a=2\nH 0 0 0\n", "'a' appears twice"},
        {"1\nlattice=\"1 0 0 0 1 0 0 0 1\" Lattice=\"1 0 0 0 1 0 0 0 1\"\nH 0 0 0\n", "'Lattice' appears twice"},
        {"1\npbc=\"T T T\"\nH 0 0 0\n", "no Lattice"},
        {"1\npbc=\"F F\"\nH 0 0 0\n", "pbc: expected three"},
        {"1\npbc=\"F F 2\"\nH 0 0 0\n", "pbc: expected T or F"},
        {"1\n" + properties + ":x:R\nH 0 0 0\n", "expected name:kind:width"},
        {"1\n" + properties + ":x:Q:1\nH 0 0 0 1\n", "expected S, R, I or L"},
        {"1\n" + properties + ":x:R:0\nH 0 0 0\n", "width of column 'x'"},
        {"1\n" + properties + ":x:R:99999999999\nH 0 0 0\n", "width of column 'x'"},
        {"1\n" + properties + ":pos:R:3\nH 0 0 0 0 0 0\n", "column 'pos' appears twice"},
        {"1\nProperties=species:S:1\nH\n", "no column pos:R:3"},
        {"1\nProperties=species:S:1:pos:R:2\nH 0 0\n", "expected pos:R:3"},
        {"1\n" + properties + ":n:I:1\nH 0 0 0 1.5\n", "column 'n': expected an integer"},
        {"1\n" + properties + ":n:I:1\nH 0 0 0 9223372036854775808\n", "column 'n': expected an integer"},
        {"1\n" + properties + ":f:L:1\nH 0 0 0 maybe\n", "column 'f': expected T or F"},
    };
    for (const auto& [content, part] : cases) check_rejected(content, part);
}

TEST_CASE("atomic numbers come from an integer column before species, and bad ones name the atom") {
    const auto frames = parse_xyz(
        "1\nProperties=species:S:1:pos:R:3:Z:I:1 a=b\nD 0 0 0 1\n1\nProperties=pos:R:3\n0 0 0\n1\n\n0 0 0 0\n1\n\n119 0 0 0\n", "some.xyz");
    CHECK(frames[0].atomic_numbers() == std::vector<int>{1});
    CHECK_THROWS_WITH(frames[1].atomic_numbers(), doctest::Contains("neither"));
    CHECK_THROWS_WITH(frames[2].atomic_numbers(), doctest::Contains("species '0'"));
    CHECK_THROWS_WITH(frames[3].atomic_numbers(), doctest::Contains("species '119'"));
    CHECK(atomic_number("H") == 1);
    CHECK(atomic_number("Fe") == 26);
    CHECK(atomic_number("U") == 92);
    CHECK(atomic_number("Og") == 118);
    CHECK_FALSE(atomic_number("fe"));
    CHECK(chemical_symbol(94) == "Pu");
    CHECK_THROWS_AS(chemical_symbol(0), Error);
    CHECK(atomic_weight(1) == 1.008);
    CHECK(atomic_weight(94) == doctest::Approx(244.064));
    CHECK(atomic_weight(118) > 290);
    CHECK_THROWS_WITH_AS(atomic_weight(119), doctest::Contains("119"), Error);
    CHECK_THROWS_AS(read_xyz("/nonexistent/file.xyz"), Error);
}
