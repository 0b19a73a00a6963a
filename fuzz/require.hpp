#pragma once
// What all fuzzers share. An input may be refused with clebsch::Error while it is read; any other exception, or an Error after that, is a
// finding.
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"

/// The value that `read` returns, or nothing if it refuses the input.
template <class Read>
auto accepted(Read read) -> std::optional<decltype(read())> {
    try {
        return read();
    } catch (const clebsch::Error&) { return std::nullopt; }
}

/// Stops the fuzzer: a property that must hold for every input does not.
inline void require(bool holds, const char* property) {
    if (holds) return;
    std::fprintf(stderr, "property violated: %s\n", property);
    std::abort();
}
