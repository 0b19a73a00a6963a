// Status, messages and the state of the whole library.
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "api/guard.hpp"
#include "base/version.hpp"

namespace clebsch::api {
namespace {

thread_local std::string last_error;

clebsch_status status_of(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::invalid_argument:
            return CLEBSCH_INVALID_ARGUMENT;
        case ErrorKind::parse:
            return CLEBSCH_PARSE_ERROR;
        case ErrorKind::not_found:
            return CLEBSCH_NOT_FOUND;
        case ErrorKind::unsupported:
            return CLEBSCH_UNSUPPORTED;
        case ErrorKind::io:
            return CLEBSCH_IO_ERROR;
    }
    return CLEBSCH_INTERNAL_ERROR;
}

/// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none. Overlong forms and surrogates are not told apart.
std::size_t character_size(std::string_view text) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t size = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
    if (size > text.size()) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
    return size;
}

/// Messages quote what the caller gave, which may be any bytes; what is promised is UTF-8. Other bytes become \xNN.
std::string valid_utf8(std::string_view text) {
    constexpr const char* digits = "0123456789abcdef";
    std::string result;
    while (!text.empty()) {
        const std::size_t size = character_size(text);
        if (size == 0) {
            const auto byte = static_cast<unsigned char>(text.front());
            result += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        } else {
            result += text.substr(0, size);
        }
        text.remove_prefix(size == 0 ? 1 : size);
    }
    return result;
}

}  // namespace

clebsch_status failed(clebsch_status status, std::string_view message) noexcept {
    try {
        last_error = valid_utf8(message);
    } catch (...) { last_error.clear(); }
    return status;
}

clebsch_status failed_with_current_exception() noexcept {
    try {
        throw;
    } catch (const Error& error) { return failed(status_of(error.kind()), error.what()); } catch (const OutOfMemory& error) {
        return failed(CLEBSCH_OUT_OF_MEMORY, error.what());
    } catch (const std::bad_alloc&) { return failed(CLEBSCH_OUT_OF_MEMORY, "out of memory"); } catch (const std::length_error&) {
        return failed(CLEBSCH_OUT_OF_MEMORY, "out of memory: a size beyond what a container holds");
    } catch (const std::exception& error) { return failed(CLEBSCH_INTERNAL_ERROR, error.what()); } catch (...) {
        return failed(CLEBSCH_INTERNAL_ERROR, "an exception of unknown type");
    }
}

void require_size(std::size_t size, std::size_t expected, const char* name) {
    if (size < expected)
        fail(std::string(name) + ".size: expected at least " + std::to_string(expected) + " (sizeof(" + name + ")), got " +
             std::to_string(size));
}

char* copy_text(std::string_view text) {
    char* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy == nullptr) throw std::bad_alloc();
    std::memcpy(copy, text.data(), text.size());
    copy[text.size()] = '\0';
    return copy;
}

const char* last_error_text() noexcept { return last_error.c_str(); }

}  // namespace clebsch::api

const char* clebsch_last_error(void) { return clebsch::api::last_error_text(); }
const char* clebsch_version(void) { return clebsch::version(); }
void clebsch_free(char* text) { std::free(text); }
