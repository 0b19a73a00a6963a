#pragma once
// The border of the C interface: exceptions become statuses with a message, and nothing else crosses it.
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "clebsch/clebsch.h"

namespace clebsch::api {

/// Remembers the message for clebsch_last_error() of this thread and returns the status.
clebsch_status failed(clebsch_status status, std::string_view message) noexcept;
/// The status of the exception being handled, with its message remembered.
clebsch_status failed_with_current_exception() noexcept;

/// Memory for something of this size could not be had.
class OutOfMemory : public std::runtime_error {
 public:
    explicit OutOfMemory(const std::string& sizes) : std::runtime_error("out of memory: " + sizes) {}
};

/// Runs `body`; CLEBSCH_OK unless it throws.
template <class Body>
clebsch_status guarded(const Body& body) noexcept {
    try {
        body();
        return CLEBSCH_OK;
    } catch (...) { return failed_with_current_exception(); }
}

/// The same for what takes memory as large as its arguments: `sizes()` is text that says how large, for the message if there is not enough.
template <class Body, class Sizes>
clebsch_status guarded(const Body& body, const Sizes& sizes) noexcept {
    return guarded([&] {
        try {
            body();
        } catch (const std::bad_alloc&) { throw OutOfMemory(sizes()); } catch (const std::length_error&) {
            throw OutOfMemory(sizes());
        }
    });
}

/// Throws unless `pointer` is given.
inline void require(const void* pointer, const char* argument) {
    if (pointer == nullptr) fail(std::string(argument) + ": expected a pointer, got NULL");
}

/// Throws unless a struct's `size` field is at least `expected` bytes (the first version's size).
void require_size(std::size_t size, std::size_t expected, const char* name);

/// What clebsch_last_error() returns.
const char* last_error_text() noexcept;

/// A copy of `text` that clebsch_free releases.
char* copy_text(std::string_view text);

}  // namespace clebsch::api
