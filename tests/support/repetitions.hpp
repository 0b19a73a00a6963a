#pragma once
// How many random descriptions a test meets, and from which seed on: CLEBSCH_TEST_REPETITIONS (sanitizer builds are slow) and
// CLEBSCH_TEST_SEED in the environment replace a test's own numbers.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace clebsch::testing {

inline int repetitions(int usual) {
    const char* text = std::getenv("CLEBSCH_TEST_REPETITIONS");
    return text == nullptr ? usual : std::atoi(text);
}

/// Of a table of cases that takes seconds, slow builds meet one in `part`.
inline int one_in(int part) { return std::getenv("CLEBSCH_TEST_REPETITIONS") == nullptr ? 1 : part; }

inline std::uint64_t first_seed(std::uint64_t usual) {
    const char* text = std::getenv("CLEBSCH_TEST_SEED");
    return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

/// For messages: what a coverage lacks, one line.
inline std::string joined(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += (text.empty() ? "" : "  ") + item;
    return text;
}

}  // namespace clebsch::testing
