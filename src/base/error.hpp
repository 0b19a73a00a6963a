#pragma once
#include <stdexcept>
#include <string>

namespace clebsch {

/// What went wrong, as the C ABI reports it (clebsch_status).
enum class ErrorKind {
    invalid_argument,  ///< a value, shape, dtype, layout or index the operation does not accept
    parse,             ///< text or a file that does not follow its grammar
    not_found,         ///< a file, library or symbol that is missing
    unsupported,       ///< a valid request this build or machine cannot serve
    io,                ///< the operating system refused to read or write
};

/// The one exception type of the library. The message names the operand or file, what was expected and what came.
class Error : public std::runtime_error {
 public:
    Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
    ErrorKind kind() const { return kind_; }

 private:
    ErrorKind kind_;
};

[[noreturn]] inline void fail(const std::string& message) { throw Error(ErrorKind::invalid_argument, message); }

}  // namespace clebsch
