#pragma once
// Which operation a user asks for: by name and options, by the label of a named problem, or as text in a file; and which derivative of it.
#include <string>
#include <vector>

#include "describe/operations/registry.hpp"

namespace CLI {
class App;
}

namespace clebsch::tool {

struct OperationArguments {
    std::string name;
    std::vector<std::string> options;      ///< key=value
    std::string text_file;                 ///< "-": standard input
    std::vector<std::string> derivatives;  ///< applied one after the other: "x,y" reverse, "forward:x,y"
};

/// Declares the positional NAME and KEY=VALUE, --text and (if asked for) --derivative.
void add_operation_arguments(CLI::App& command, OperationArguments& arguments, bool derivatives);

struct Request {
    std::string title;
    std::string kind;  ///< of a named problem, else empty
    Description description;
};

/// Builds it. Throws Error that lists what there is for an unknown name.
Request read_request(const OperationArguments& arguments);

/// One --derivative applied.
Description derived(const Description& description, const std::string& derivative);
Description reverse(const Description& description, const std::vector<std::string>& inputs);

/// Operations and named problems, for people.
std::string available_operations();
std::vector<std::string> split(const std::string& text, char separator);
std::string text_of(const Description& description);

}  // namespace clebsch::tool
