#include "describe/text_cursor.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.hpp"

namespace clebsch {
namespace {

// Words with a meaning where a name could stand.
constexpr std::array<std::string_view, 7> keywords = {"each", "shared", "sorted", "mul_ir", "ir_mul", "polynomial", "end"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '.'; }
bool is_keyword(std::string_view word) { return std::find(keywords.begin(), keywords.end(), word) != keywords.end(); }

int hexadecimal(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

}  // namespace

void TextCursor::skip_blank() {
    while (!at_end()) {
        const char c = text_[at_];
        if (c == '#') {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (c == ' ' || c == '\t' || c == '\r') {
            ++at_;
        } else {
            return;
        }
    }
}

void TextCursor::skip_space() {
    for (skip_blank(); peek() == '\n'; skip_blank()) ++at_;
}

void TextCursor::end_of_line() {
    skip_blank();
    if (!at_end() && peek() != '\n') expected("the end of the line");
    skip_space();
}

bool TextCursor::accept(std::string_view token) {
    skip_blank();
    if (text_.substr(at_, token.size()) != token) return false;
    const std::size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
}

void TextCursor::expect(std::string_view token) {
    if (!accept(token)) expected("'" + std::string(token) + "'");
}

std::string_view TextCursor::peek_word() const {
    std::size_t end = at_;
    if (end < text_.size() && is_letter(text_[end])) {
        while (end < text_.size() && is_word(text_[end])) ++end;
    }
    return text_.substr(at_, end - at_);
}

std::string TextCursor::name(std::string_view what) {
    skip_blank();
    if (const std::string_view word = peek_word(); !word.empty()) {
        if (is_keyword(word))
            error(at_, "expected " + std::string(what) + "; '" + std::string(word) + "' is a keyword, as a name it is written in quotes");
        at_ += word.size();
        return std::string(word);
    }
    if (peek() != '"') expected(what);
    const std::size_t begin = at_++;
    std::string result;
    while (true) {
        if (at_end() || peek() == '\n') error(begin, "the closing quote of this name is missing");
        const char c = take();
        if (c == '"') return result;
        if (c != '\\') {
            result += c;
            continue;
        }
        const char escape = peek();
        if (escape == '"' || escape == '\\') {
            result += take();
        } else if (escape == 'x' && at_ + 2 < text_.size() && hexadecimal(text_[at_ + 1]) >= 0 && hexadecimal(text_[at_ + 2]) >= 0) {
            result += static_cast<char>(hexadecimal(text_[at_ + 1]) * 16 + hexadecimal(text_[at_ + 2]));
            at_ += 3;
        } else {
            error(at_ - 1, "expected one of the escapes \\\" \\\\ \\xHH (two lower-case hexadecimal digits)");
        }
    }
}

double TextCursor::number(std::string_view what) {
    skip_blank();
    double value = 0;
    const char* const begin = text_.data() + at_;
    const char* const last = text_.data() + text_.size();
    // from_chars also reads "inf" and "nan", which no description contains.
    const bool starts = !at_end() && (is_digit(*begin) || *begin == '-' || *begin == '.');
    const auto [end, status] = std::from_chars(begin, last, value);
    if (!starts || status == std::errc::invalid_argument || (*begin == '-' && begin + 1 < last && is_letter(begin[1]))) expected(what);
    if (status == std::errc::result_out_of_range) error(at_, "this number is outside the range of float64");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
}

std::int64_t TextCursor::integer(std::string_view what) {
    skip_blank();
    if (!is_digit(peek())) expected(what);
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (status != std::errc()) error(at_, "this number does not fit in 64 bits");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
}

void TextCursor::expected(std::string_view what) const {
    std::string found;
    if (at_end()) {
        found = "the end of the text";
    } else if (peek() == '\n') {
        found = "the end of the line";
    } else {
        std::string_view word = peek_word();
        if (word.empty()) word = text_.substr(at_, 1);
        const auto byte = static_cast<unsigned char>(word[0]);
        found = byte < 0x20 || byte >= 0x7f ? "byte " + std::to_string(int{byte}) : "'" + std::string(word.substr(0, 40)) + "'";
    }
    error(at_, "expected " + std::string(what) + ", found " + found);
}

void TextCursor::error(std::size_t position, const std::string& message) const {
    const std::string_view before = text_.substr(0, position);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = newline == std::string_view::npos ? position + 1 : position - newline;
    throw Error(ErrorKind::parse, what_ + ", line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + message);
}

std::string name_text(std::string_view name) {
    const bool plain = !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), is_word) && !is_keyword(name);
    if (plain) return std::string(name);
    std::string result = "\"";
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            constexpr std::string_view digits = "0123456789abcdef";
            result += "\\x";
            result += digits[byte / 16];
            result += digits[byte % 16];
        } else {
            result += c;
        }
    }
    return result + '"';
}

}  // namespace clebsch
