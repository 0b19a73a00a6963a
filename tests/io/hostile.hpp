#pragma once
// What the tests of all parsers share.
#include <doctest/doctest.h>

#include <string>

#include "base/error.hpp"

namespace clebsch::testing {

/// Runs `parse`, which must throw an Error whose message holds `part` (and the file's name, if given).
template <class Parse>
void check_rejected(Parse parse, const std::string& part, const std::string& file = "") {
    try {
        parse();
        FAIL_CHECK("accepted, expected: " << part);
    } catch (const Error& error) {
        const std::string message = error.what();
        CAPTURE(message);
        CAPTURE(part);
        CHECK(message.find(part) != std::string::npos);
        CHECK(message.find(file) != std::string::npos);
        CHECK(message.size() < 6000);  // nothing pours a file's content into the message
    }
}

/// Feeds every truncation of `content`, and every copy with one byte replaced, to `parse`: each is accepted or throws Error, nothing else.
/// Every input is a string of its own size, so that a sanitizer sees reads past its end.
template <class Parse>
void check_survives_damage(const std::string& content, Parse parse) {
    const auto attempt = [&](const std::string& damaged) {
        try {
            parse(damaged);
            return true;
        } catch (const Error&) { return false; }
    };
    REQUIRE(attempt(content));
    for (std::size_t size = 0; size < content.size(); ++size) attempt(std::string(content.data(), size));
    for (std::size_t at = 0; at < content.size(); ++at) {
        for (const char byte : {'\0', '\xff', '\x80', '0', '9', '-', '"', '{', '}', '\n', static_cast<char>(content[at] + 1)}) {
            std::string damaged = content;
            damaged[at] = byte;
            attempt(damaged);
        }
    }
}

}  // namespace clebsch::testing
