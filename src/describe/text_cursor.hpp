#pragma once
// A position in a text that knows its line and column, and the few tokens that descriptions are made of.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/number.hpp"

namespace clebsch {

/// Reads a text from left to right. Blanks are spaces, tabs, carriage returns and comments (`#` to the end of the line); newlines end
/// statements except where `skip_space` says otherwise. Errors are Error(parse): "polynomial text, line 3, column 7: expected ..., found
/// ...".
class TextCursor {
 public:
    TextCursor(std::string_view text, std::string what) : text_(text), what_(std::move(what)) {}

    bool at_end() const { return at_ == text_.size(); }
    std::size_t position() const { return at_; }
    void set_position(std::size_t position) { at_ = position; }
    std::string_view between(std::size_t begin, std::size_t end) const { return text_.substr(begin, end - begin); }
    /// The character here, '\0' at the end.
    char peek() const { return at_end() ? '\0' : text_[at_]; }
    char take() { return text_[at_++]; }

    void skip_blank();  ///< stays on the line
    void skip_space();  ///< blanks and newlines
    /// The end of a statement: blanks, then a newline or the end of the text; further empty lines are skipped too.
    void end_of_line();

    bool accept(std::string_view token);  ///< skips blanks, then takes `token` if it is here; words must end here too
    void expect(std::string_view token);

    /// An identifier or a string in double quotes. `what` is what the error says was expected.
    std::string name(std::string_view what);
    /// The identifier that starts here, empty if none does; nothing is taken. Identifiers may contain dots, as `is_name` says.
    std::string_view peek_word() const;
    double number(std::string_view what);
    std::int64_t integer(std::string_view what);  ///< not negative, fits in 64 bits

    [[noreturn]] void expected(std::string_view what) const;  ///< at the cursor
    [[noreturn]] void error(std::size_t position, const std::string& message) const;

 private:
    std::string_view text_;
    std::string what_;
    std::size_t at_ = 0;
};

/// The name itself if it is an identifier and no keyword of the grammar, else in double quotes (escapes: \" \\ \xHH).
std::string name_text(std::string_view name);

}  // namespace clebsch
