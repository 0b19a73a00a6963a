#pragma once
/// What all of clebsch.hpp stands on: errors as exceptions, texts and handles with owners; and the library's settings.
#include <clebsch/clebsch.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace clebsch {

/// A call that failed: the status and the library's message.
class Failure : public std::runtime_error {
 public:
    Failure(clebsch_status status, const char* message) : std::runtime_error(message), status_(status) {}
    clebsch_status status() const { return status_; }

 private:
    clebsch_status status_;
};

inline void check(clebsch_status status) {
    if (status != CLEBSCH_OK) throw Failure(status, clebsch_last_error());
}

namespace detail {

/// Text for the library, whose strings end at the first zero.
inline const char* pass(const std::string& text) {
    if (text.find('\0') != std::string::npos) throw std::invalid_argument("clebsch: text has a zero in it");
    return text.c_str();
}

/// Text of the library: `get(&text)` gives it.
template <class Get>
std::string text_from(Get get) {
    char* text = nullptr;
    check(get(&text));
    const std::unique_ptr<char, void (*)(char*)> owner(text, clebsch_free);
    return std::string(text);
}

/// A handle that copies of a value share: `create(&handle)` gives it.
template <class T, class Create>
std::shared_ptr<T> created(void (*destroy)(T*), Create create) {
    T* handle = nullptr;
    check(create(&handle));
    return std::shared_ptr<T>(handle, destroy);
}

}  // namespace detail

inline std::string version() { return clebsch_version(); }
/// Processor, instruction sets, threads, libraries found or not and why. JSON.
inline std::string info() { return detail::text_from(clebsch_info); }
/// Names that Operation::build takes, with their options, defaults and help. JSON.
inline std::string builders() { return detail::text_from(clebsch_builders); }
/// Threads of the library's own pool, the caller included (0: one per core).
inline void set_num_threads(int threads) { check(clebsch_set_num_threads(threads)); }
/// Instruction set of plans prepared from now on: "baseline", "avx2", "avx512", "neon"; "": the best.
inline void force_instruction_set(const std::string& name) { check(clebsch_force_instruction_set(detail::pass(name))); }
/// Path of libvesin.so, tried before the other places it is looked for.
inline void set_vesin_library(const std::string& path) { check(clebsch_set_vesin_library(detail::pass(path))); }

}  // namespace clebsch
