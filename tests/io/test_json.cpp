#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "hostile.hpp"
#include "io/json.hpp"

using namespace clebsch;
using namespace clebsch::testing;

TEST_CASE("JSON text becomes the value it means") {
    const nlohmann::json value =
        parse_json(R"( {"a": [1, -2, 3.5, true, null, {"b": "c\u00e9\n"}], "d": {}, "e": [], "f": 18446744073709551615} )", "x.json");
    CHECK(value["a"].size() == 6);
    CHECK(value["a"][2] == 3.5);
    CHECK(value["a"][5]["b"] == "c\xc3\xa9\n");
    CHECK(value["d"].is_object());
    CHECK(value["e"].is_array());
    CHECK(value["f"] == 18446744073709551615u);
    CHECK(parse_json("3", "x.json") == 3);
    CHECK(parse_json("[[[]],[{\"a\":[]}]]", "x.json").dump() == "[[[]],[{\"a\":[]}]]");
}

TEST_CASE("JSON errors name file, line and byte") {
    const std::pair<std::string, const char*> cases[] = {
        {"", "line 1, byte"},
        {"{\n\"a\": 1,\n}", "line 3, byte 11"},
        {"[1, 2", "line 1"},
        {"{\"a\": 1} x", "JSON: syntax error"},
        {"[1e999]", "number '1e999' is out of range"},
        {"{\"a\": 1, \"b\": {\"a\": 1, \"a\": 2}}", "key 'a' appears twice in one object"},
        {"\"\xff\"", "JSON: syntax error"},
        {"\"\\ud800\"", "JSON"},
        {"[NaN]", "JSON"},
        {"[01]", "JSON"},
        {"{'a': 1}", "JSON"},
        {"[1,]", "JSON"},
        {"\"a\nb\"", "JSON"},
        {std::string("[1\0]", 4), "JSON"},
        {"nul", "JSON"},
    };
    for (const auto& [given_text, part] : cases) {
        const auto& text = given_text;
        CAPTURE(text);
        check_rejected([&] { parse_json(text, "x.json"); }, part, "file 'x.json', line");
    }
    check_rejected([] { parse_json("[1,", "x.json", 1000); }, "byte 1003");
    check_rejected([] { parse_json("{\"\x1b[31m" + std::string(500, 'k') + "\": 1, ", "x.json"); }, "JSON");
}

TEST_CASE("JSON nesting is bounded, so that no input exhausts the stack") {
    const auto nested = [](std::size_t depth, const char* open, const char* close) {
        std::string out;
        for (std::size_t i = 0; i < depth; ++i) out += open;
        out += "1";
        for (std::size_t i = 0; i < depth; ++i) out += close;
        return out;
    };
    CHECK(parse_json(nested(64, "[", "]"), "x.json").is_array());
    check_rejected([&] { parse_json(nested(65, "[", "]"), "x.json"); }, "nested deeper than 64 levels");
    check_rejected([&] { parse_json(nested(65, "{\"a\":", "}"), "x.json"); }, "nested deeper than 64 levels");
    check_rejected([&] { parse_json(std::string(10'000'000, '['), "x.json"); }, "nested deeper than 64 levels");
}

TEST_CASE("JSON survives truncation and damage") {
    check_survives_damage("{\"a\": [1, -2.5e3, true, null, \"x\\u00e9\\n\"], \"b\": {\"c\": false}}",
                          [](const std::string& text) { parse_json(text, "x.json"); });
}

TEST_CASE("typed look-ups say what was expected and what came") {
    const nlohmann::json value = parse_json(
        R"({"n": 1.5, "i": 7, "big": 18446744073709551615, "t": "text", "b": true, "l": [1, 2], "m": [1, 2.5], "o": {}})", "x.json");
    const JsonObject json(value, "x.json");
    CHECK(json.number("n") == 1.5);
    CHECK(json.number("i") == 7.0);
    CHECK(json.integer("i", 0, 7) == 7);
    CHECK(json.text("t") == "text");
    CHECK(json.boolean("b"));
    CHECK(json.integers("l") == std::vector<std::int64_t>{1, 2});
    CHECK(json.has("o"));
    CHECK_FALSE(json.has("p"));
    CHECK(json.keys().size() == 8);
    check_rejected([&] { json.number("p"); }, "JSON key 'p' is missing", "x.json");
    check_rejected([&] { json.number("t"); }, "'t': expected a number, got string \"text\"", "x.json");
    check_rejected([&] { json.integer("i", 0, 6); }, "'i': expected an integer from 0 to 6, got number 7", "x.json");
    check_rejected([&] { json.integer("n", 0, 6); }, "got number 1.5", "x.json");
    check_rejected([&] { json.integer("big", 0, INT64_MAX); }, "got number 18446744073709551615", "x.json");
    check_rejected([&] { json.text("n"); }, "expected a string", "x.json");
    check_rejected([&] { json.boolean("i"); }, "expected true or false", "x.json");
    check_rejected([&] { json.integers("m"); }, "entry 1 is not one", "x.json");
    check_rejected([&] { json.integers("o"); }, "expected a list of integers, got object", "x.json");
    const nlohmann::json list = nlohmann::json::array();
    check_rejected([&] { JsonObject(list, "x.json"); }, "expected a JSON object, got array", "x.json");
    check_rejected([] { read_json("/nonexistent.json"); }, "cannot open file '/nonexistent.json'");
}
