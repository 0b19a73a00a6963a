#include "describe/operations/registry.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "describe/operations/operation_table.hpp"
#include "describe/operations/text_fields.hpp"

namespace clebsch {
namespace {

const OperationEntry& find_entry(std::string_view name) {
    const auto& table = operation_table();
    const auto found = std::ranges::find_if(table, [&](const OperationEntry& entry) { return entry.info.name == name; });
    if (found != table.end()) return *found;
    std::string names;
    for (const OperationEntry& entry : table) names += (names.empty() ? "" : ", ") + entry.info.name;
    throw Error(ErrorKind::not_found, "no operation is called '" + std::string(name) + "'; there are " + names);
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
    return text;
}

std::string padded(std::string text, std::size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text;
}

}  // namespace

const OptionInfo& OptionValues::info(std::string_view option) const {
    const auto found = std::ranges::find(operation_.options, option, &OptionInfo::name);
    if (found == operation_.options.end()) fail(operation_.name + ": option '" + std::string(option) + "' is not in the table");
    return *found;
}

std::string OptionValues::text(std::string_view option) const {
    const auto found = given_.find(option);
    return found != given_.end() ? std::string(trimmed(found->second)) : info(option).default_value;
}

std::string OptionValues::where(std::string_view option) const { return operation_.name + ", option " + std::string(option); }

Irreps OptionValues::irreps(std::string_view option) const {
    try {
        return Irreps(std::string_view(text(option)));
    } catch (const Error& error) { throw Error(error.kind(), where(option) + ": " + error.what()); }
}

std::vector<Irrep> OptionValues::irrep_list(std::string_view option) const {
    std::vector<Irrep> list;
    for (const IrrepBlock& block : irreps(option)) list.push_back(block.irrep);
    return list;
}

std::int64_t OptionValues::integer(std::string_view option) const { return parse_integer<std::int64_t>(text(option), where(option)); }

int OptionValues::small_integer(std::string_view option) const { return parse_integer<int>(text(option), where(option)); }

double OptionValues::number(std::string_view option) const { return parse_number(text(option), where(option)); }

bool OptionValues::boolean(std::string_view option) const {
    const std::string value = text(option);
    if (value == "true" || value == "1" || value == "yes") return true;
    if (value == "false" || value == "0" || value == "no") return false;
    fail(where(option) + ": expected true or false, got '" + value + "'");
}

std::string OptionValues::choice(std::string_view option) const {
    std::string value = text(option);
    const OptionInfo& about = info(option);
    if (std::ranges::find(about.choices, value) == about.choices.end())
        fail(where(option) + ": expected " + joined(about.choices, " or ") + ", got '" + value + "'");
    return value;
}

std::vector<std::int64_t> OptionValues::integers(std::string_view option) const {
    std::vector<std::int64_t> list;
    for (const std::string& field : split_fields(text(option), ',')) list.push_back(parse_integer<std::int64_t>(field, where(option)));
    return list;
}

std::vector<double> OptionValues::numbers(std::string_view option) const {
    std::vector<double> list;
    for (const std::string& field : split_fields(text(option), ',')) list.push_back(parse_number(field, where(option)));
    return list;
}

bool OptionValues::empty(std::string_view option) const { return text(option).empty(); }

const std::vector<OperationInfo>& operations() {
    static const std::vector<OperationInfo> list = [] {
        std::vector<OperationInfo> infos;
        for (const OperationEntry& entry : operation_table()) infos.push_back(entry.info);
        return infos;
    }();
    return list;
}

Description build_operation(std::string_view name, const OptionTexts& options) {
    const OperationEntry& entry = find_entry(name);
    std::vector<std::string> known;
    for (const OptionInfo& option : entry.info.options) known.push_back(option.name);
    for (const auto& [key, value] : options)  // first: a name that is mistyped is often one that is required
        if (std::ranges::find(known, key) == known.end())
            fail(entry.info.name + ": there is no option '" + key + "' (value '" + value + "'); there are " + joined(known, ", "));
    for (const OptionInfo& option : entry.info.options) {
        if (!option.required || options.contains(option.name)) continue;
        std::string message = entry.info.name;
        fail(
            message.append(": option ").append(option.name).append(" (").append(option.type).append(") is required: ").append(option.help));
    }
    return entry.build(OptionValues(entry.info, options));
}

OptionTexts parse_option_lines(std::string_view text) {
    OptionTexts options;
    int number = 0;
    for (const std::string& line : split_fields(text, '\n')) {
        ++number;
        if (line.empty() || line.front() == '#') continue;
        const auto equals = line.find('=');
        if (equals == std::string::npos)
            throw Error(ErrorKind::parse, "options, line " + std::to_string(number) + ": expected key=value, got '" + line + "'");
        const std::string key(trimmed(std::string_view(line).substr(0, equals)));
        if (key.empty()) throw Error(ErrorKind::parse, "options, line " + std::to_string(number) + ": expected a key before '='");
        if (!options.emplace(key, trimmed(std::string_view(line).substr(equals + 1))).second)
            throw Error(ErrorKind::parse, "options, line " + std::to_string(number) + ": '" + key + "' is given twice");
    }
    return options;
}

std::string operations_json() {
    auto quoted = [](const std::string& text) {
        std::string result = "\"";
        for (char c : text) {
            if (c == '"' || c == '\\') result += '\\';
            result += c;
        }
        return result + "\"";
    };
    auto list = [](const auto& items, const auto& write) {
        std::string result = "[";
        for (const auto& item : items) result += (result.size() > 1 ? "," : "") + write(item);
        return result + "]";
    };
    auto option_json = [&](const OptionInfo& option) {
        return "{\"name\":" + quoted(option.name) + ",\"type\":" + quoted(option.type) + ",\"default\":" + quoted(option.default_value) +
               ",\"required\":" + (option.required ? "true" : "false") + ",\"choices\":" + list(option.choices, quoted) +
               ",\"help\":" + quoted(option.help) + "}";
    };
    return list(operations(), [&](const OperationInfo& operation) {
        return "{\"name\":" + quoted(operation.name) + ",\"help\":" + quoted(operation.help) +
               ",\"options\":" + list(operation.options, option_json) + "}";
    });
}

std::string operation_help(std::string_view name) {
    std::string text;
    if (name.empty()) {
        for (const OperationInfo& operation : operations()) text += padded(operation.name, 24) + operation.help + "\n";
        return text;
    }
    const OperationInfo& operation = find_entry(name).info;
    text = operation.name + ": " + operation.help + "\n";
    for (const OptionInfo& option : operation.options) {
        std::string about = option.choices.empty() ? option.type : joined(option.choices, "|");
        if (option.required) about += ", required";
        else if (!option.default_value.empty()) about += ", default " + option.default_value;
        text += "  " + padded(option.name, 22) + option.help + " (" + about + ")\n";
    }
    return text;
}

}  // namespace clebsch
