#include "tool/request.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/named_problems.hpp"
#include "describe/text.hpp"

namespace clebsch::tool {
namespace {

std::string read_standard_input(std::int64_t limit) {
    std::string text;
    char piece[65536];
    while (std::cin.read(piece, sizeof piece), std::cin.gcount() > 0) {
        text.append(piece, static_cast<std::size_t>(std::cin.gcount()));
        if (static_cast<std::int64_t>(text.size()) > limit)
            throw Error(ErrorKind::unsupported, "standard input is longer than the limit of " + std::to_string(limit) + " bytes");
    }
    return text;
}

Description read_text(const std::string& file) {
    constexpr std::int64_t limit = std::int64_t{1} << 28;
    const std::string text = file == "-" ? read_standard_input(limit) : read_file(file, limit);
    try {
        if (text.rfind("clebsch program", 0) == 0) return parse_program(text);
        return parse_polynomial(text);
    } catch (const Error& error) {
        throw Error(error.kind(), (file == "-" ? "standard input" : "file " + in_quotes(file)) + ": " + error.what());
    }
}

const NamedProblem* find_problem(const std::string& name) {
    const auto& problems = named_problems();
    const auto found =
        std::ranges::find_if(problems, [&](const NamedProblem& problem) { return name == problem.label || name == problem.published; });
    return found == problems.end() ? nullptr : &*found;
}

OptionTexts option_texts(const std::vector<std::string>& words) {
    OptionTexts options;
    for (const std::string& word : words) {
        const auto equals = word.find('=');
        if (equals == std::string::npos || equals == 0) fail("option '" + word + "': expected key=value");
        if (!options.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
            fail("option '" + word.substr(0, equals) + "' is given twice");
    }
    return options;
}

}  // namespace

void add_operation_arguments(CLI::App& command, OperationArguments& arguments, bool derivatives) {
    command.add_option("name", arguments.name, "An operation (with its options) or the label of a named problem");
    command.add_option("options", arguments.options, "Options of the operation, as key=value");
    command.add_option("--text", arguments.text_file, "Read the operation from a file of its canonical text instead (-: standard input)");
    if (derivatives)
        command
            .add_option(
                "--derivative", arguments.derivatives,
                "Take the gradients of these inputs (x,y) or, as forward:x,y, the derivative along them; again for higher derivatives")
            ->take_all()
            ->allow_extra_args(false);
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        if (end > begin) words.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

Description reverse(const Description& description, const std::vector<std::string>& inputs) {
    return std::visit([&](const auto& value) -> Description { return vjp(value, inputs); }, description);
}

Description derived(const Description& description, const std::string& derivative) {
    static const std::string forward = "forward:";
    const bool is_forward = derivative.rfind(forward, 0) == 0;
    const std::vector<std::string> inputs = split(is_forward ? derivative.substr(forward.size()) : derivative, ',');
    if (inputs.empty()) fail("--derivative " + derivative + ": expected names of inputs, such as x,y");
    if (!is_forward) return reverse(description, inputs);
    return std::visit([&](const auto& value) -> Description { return jvp(value, inputs); }, description);
}

std::string text_of(const Description& description) {
    return std::visit([](const auto& value) { return to_text(value); }, description);
}

std::string available_operations() {
    std::string text = "Operations (clebsch explain NAME without options shows what NAME needs):\n" + operation_help();
    text += "\nNamed problems:\n";
    for (const NamedProblem& problem : named_problems()) {
        std::string label = problem.label;
        label.resize(std::max<std::size_t>(label.size() + 1, 28), ' ');
        text += label + problem.summary + "\n";
    }
    return text;
}

Request read_request(const OperationArguments& arguments) {
    Request request;
    if (!arguments.text_file.empty()) {
        if (!arguments.name.empty()) fail("expected a name or --text, got both");
        request.title = arguments.text_file;
        request.description = read_text(arguments.text_file);
    } else if (const NamedProblem* problem = find_problem(arguments.name)) {
        if (!arguments.options.empty())
            fail("'" + arguments.name + "' is a named problem, which takes no options; got '" + arguments.options.front() + "'");
        request.title = problem->label + ": " + problem->summary;
        request.kind = problem->kind;
        request.description = named_problem(problem->label);
    } else {
        const auto& known = operations();
        if (std::ranges::find(known, arguments.name, &OperationInfo::name) == known.end())
            throw Error(ErrorKind::not_found,
                        "no operation or named problem is called '" + arguments.name + "'; `clebsch explain` lists them");
        request.title = arguments.name;
        for (const std::string& option : arguments.options) request.title += " " + option;
        request.description = build_operation(arguments.name, option_texts(arguments.options));
    }
    for (const std::string& derivative : arguments.derivatives) {
        request.description = derived(request.description, derivative);
        request.title += ", derivative " + derivative;
    }
    return request;
}

}  // namespace clebsch::tool
