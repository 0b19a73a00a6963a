#pragma once
// Every operation by name, with options as text: what the C interface, the program and Python build from.
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "describe/program.hpp"

namespace clebsch {

using Description = std::variant<Polynomial, Program>;
using OptionTexts = std::map<std::string, std::string, std::less<>>;

struct OptionInfo {
    std::string name;
    std::string type;           ///< irreps, segments, integer, number, boolean, choice, list (comma separated), text
    std::string default_value;  ///< as text
    bool required = false;
    std::vector<std::string> choices = {};
    std::string help;
};

struct OperationInfo {
    std::string name;
    std::string help;
    std::vector<OptionInfo> options;
};

/// What can be built, in the order of docs/operations.md.
const std::vector<OperationInfo>& operations();

/// Throws Error(not_found) for an unknown operation (listing those there are) and Error(invalid_argument) for an unknown, missing or
/// malformed option, naming it, what was expected and what came.
Description build_operation(std::string_view name, const OptionTexts& options);

/// The same as JSON: [{"name", "help", "options": [{"name", "type", "default", "required", "choices", "help"}]}].
std::string operations_json();

/// "key=value" lines; blank lines and lines that begin with # are skipped. A key twice is an error.
OptionTexts parse_option_lines(std::string_view text);

/// A page a person can read: the options of one operation, or (name empty) the list of operations.
std::string operation_help(std::string_view name = "");

}  // namespace clebsch
