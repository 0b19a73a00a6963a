#pragma once
// JSON text to values, with errors that say where. Duplicate keys, deep nesting and numbers that a double cannot hold are errors.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace clebsch {

/// Deepest nesting of arrays and objects that is accepted.
inline constexpr int json_depth_limit = 64;

/// The value of one JSON text (UTF-8). `file` is named in errors; `offset` is the position of `text` in it.
/// Throws Error(parse) with file, line (of `text`) and byte.
nlohmann::json parse_json(std::string_view text, std::string_view file, std::int64_t offset = 0);
nlohmann::json read_json(const std::filesystem::path& path);

/// Typed look-ups in a JSON object. Every failure names the file, the key, what was expected and what came.
/// Refers to the value and the name it was made with; both must outlive it.
class JsonObject {
 public:
    /// Throws unless `value` is an object.
    JsonObject(const nlohmann::json& value, std::string_view file);

    bool has(std::string_view key) const;
    const nlohmann::json& at(std::string_view key) const;  ///< throws when missing
    double number(std::string_view key) const;             ///< finite, integer or not
    std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most) const;
    std::string text(std::string_view key) const;
    bool boolean(std::string_view key) const;
    std::vector<std::int64_t> integers(std::string_view key) const;
    std::vector<std::string> keys() const;  ///< in alphabetical order

    [[noreturn]] void reject(std::string_view key, const std::string& expected) const;  ///< shows the value
    [[noreturn]] void reject(std::string_view key, const std::string& expected, const std::string& got) const;

 private:
    const nlohmann::json& value_;
    std::string_view file_;
};

}  // namespace clebsch
