#include "io/json.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"

namespace clebsch {

namespace {

using nlohmann::json;

/// A forward iterator that lets the handler know how far the parser has read.
struct TrackingIterator {
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    const char* at = nullptr;
    const char** furthest = nullptr;

    reference operator*() const { return *at; }
    TrackingIterator& operator++() {
        *furthest = ++at;
        return *this;
    }
    TrackingIterator operator++(int) {
        TrackingIterator before = *this;
        ++*this;
        return before;
    }
    friend bool operator!=(const TrackingIterator& a, const TrackingIterator& b) { return a.at != b.at; }
};

/// Builds the value from the parser's events, refusing what the grammar allows but no file of ours needs.
class Builder : public nlohmann::json_sax<json> {
 public:
    Builder(std::string_view text, std::string_view file, std::int64_t offset)
        : text_(text), file_(file), offset_(offset), furthest(text.data()) {}

    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t&) override { return add(value); }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t&) override { return false; }  // not part of JSON text
    bool start_object(std::size_t) override { return open(json::object()); }
    bool start_array(std::size_t) override { return open(json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& value) override {
        if (open_.back()->contains(value)) reject("key " + in_quotes(value) + " appears twice in one object");
        key_ = std::move(value);
        return true;
    }
    bool parse_error(std::size_t position, const std::string& token, const json::exception& error) override {
        furthest = text_.data() + std::min(position, text_.size());
        // nlohmann's text: "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
        const std::string_view full = error.what();
        const std::size_t start = full.find("syntax error");
        reject(start == std::string_view::npos ? "number " + in_quotes(token) + " is out of range" : printable(full.substr(start), 160));
    }

    json take() { return std::move(root_); }

 private:
    [[noreturn]] void reject(const std::string& message) const {
        const auto read = furthest - text_.data();
        const auto line = 1 + std::count(text_.data(), furthest, '\n');
        throw Error(ErrorKind::parse, "file " + in_quotes(file_, 4096) + ", line " + std::to_string(line) + ", byte " +
                                          std::to_string(offset_ + read) + ": JSON: " + message);
    }
    template <class Value>
    json* place(Value&& value) {
        if (open_.empty()) {
            root_ = std::forward<Value>(value);
            return &root_;
        }
        json& parent = *open_.back();
        if (parent.is_array()) {
            parent.push_back(std::forward<Value>(value));
            return &parent.back();
        }
        json& slot = parent[key_];
        slot = std::forward<Value>(value);
        return &slot;
    }
    template <class Value>
    bool add(Value&& value) {
        place(std::forward<Value>(value));
        return true;
    }
    bool open(json&& container) {
        if (open_.size() >= static_cast<std::size_t>(json_depth_limit))
            reject("nested deeper than " + std::to_string(json_depth_limit) + " levels");
        open_.push_back(place(std::move(container)));
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    std::string_view text_, file_;
    std::int64_t offset_;
    json root_;
    std::vector<json*> open_;  // a container is complete before its parent grows, so these stay valid
    std::string key_;

 public:
    const char* furthest;
};

const char* type_name(const json& value) { return value.type_name(); }

}  // namespace

json parse_json(std::string_view text, std::string_view file, std::int64_t offset) {
    Builder builder(text, file, offset);
    const TrackingIterator first{text.data(), &builder.furthest}, last{text.data() + text.size(), &builder.furthest};
    if (!json::sax_parse(first, last, &builder)) fail_at_byte(file, offset, "JSON: not accepted");
    return builder.take();
}

json read_json(const std::filesystem::path& path) { return parse_json(read_file(path, std::int64_t{1} << 30), path.native()); }

JsonObject::JsonObject(const json& value, std::string_view file) : value_(value), file_(file) {
    if (!value.is_object()) fail_in_file(file, std::string("expected a JSON object, got ") + type_name(value));
}

bool JsonObject::has(std::string_view key) const { return value_.contains(std::string(key)); }

const json& JsonObject::at(std::string_view key) const {
    const auto found = value_.find(std::string(key));
    if (found == value_.end()) fail_in_file(file_, "JSON key " + in_quotes(key) + " is missing");
    return *found;
}

void JsonObject::reject(std::string_view key, const std::string& expected) const {
    const json& value = at(key);
    std::string shown = type_name(value);
    if (!value.is_structured() && !value.is_null()) shown += " " + value.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
    reject(key, expected, shown);
}

void JsonObject::reject(std::string_view key, const std::string& expected, const std::string& got) const {
    fail_in_file(file_, "JSON key " + in_quotes(key) + ": expected " + expected + ", got " + got);
}

double JsonObject::number(std::string_view key) const {
    const json& value = at(key);
    if (!value.is_number()) reject(key, "a number");
    const double number = value.get<double>();
    if (!std::isfinite(number)) reject(key, "a finite number");
    return number;
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t least, std::int64_t most) const {
    const json& value = at(key);
    const std::string expected = "an integer from " + std::to_string(least) + " to " + std::to_string(most);
    if (!value.is_number_integer()) reject(key, expected);
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) reject(key, expected);
    const auto number = value.get<std::int64_t>();
    if (number < least || number > most) reject(key, expected);
    return number;
}

std::string JsonObject::text(std::string_view key) const {
    const json& value = at(key);
    if (!value.is_string()) reject(key, "a string");
    return value.get<std::string>();
}

bool JsonObject::boolean(std::string_view key) const {
    const json& value = at(key);
    if (!value.is_boolean()) reject(key, "true or false");
    return value.get<bool>();
}

std::vector<std::int64_t> JsonObject::integers(std::string_view key) const {
    const json& value = at(key);
    if (!value.is_array()) reject(key, "a list of integers");
    std::vector<std::int64_t> out;
    for (const json& item : value) {
        const bool large = item.is_number_unsigned() && item.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
        if (!item.is_number_integer() || large) reject(key, "a list of integers, entry " + std::to_string(out.size()) + " is not one");
        out.push_back(item.get<std::int64_t>());
    }
    return out;
}

std::vector<std::string> JsonObject::keys() const {
    std::vector<std::string> out;
    for (const auto& item : value_.items()) out.push_back(item.key());
    return out;
}

}  // namespace clebsch
