#include "emit/text.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "base/error.hpp"

namespace clebsch {

void SourceText::line(std::string_view text) {
    if (text.starts_with('}')) --depth_;
    if (!text.starts_with('#')) text_.append(static_cast<std::size_t>(depth_) * 4, ' ');
    text_ += text;
    text_ += '\n';
    if (text.ends_with('{')) ++depth_;
}

std::string literal(double value, GpuNumber type) {
    std::array<char, 40> digits{};
    if (!std::isfinite(value)) fail("a coefficient that is not finite cannot be written into a kernel");
    const bool single = type != GpuNumber::float64;
    const auto result = single ? std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(value))
                               : std::to_chars(digits.data(), digits.data() + digits.size(), value);
    std::string text(digits.data(), result.ptr);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
    return single ? text + "f" : text;
}

std::string literal(std::int64_t value) { return std::to_string(value); }

const char* type_name(GpuNumber type) {
    switch (type) {
        case GpuNumber::float32:
            return "float";
        case GpuNumber::float64:
            return "double";
        case GpuNumber::bfloat16:
            return "Bfloat16";
        case GpuNumber::float16:
            return "Float16";
    }
    return "";
}

std::string identifier(std::string_view name) {
    std::string text(name);
    for (char& letter : text)
        if (letter == '.') letter = '_';
    return text;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
    std::string text;
    for (const std::string& part : parts) text.append(text.empty() ? "" : separator).append(part);
    return text;
}

void begin_kernel(SourceText& source, const std::string& name, const std::string& bounds) {
    source.line("extern \"C\" __global__ void __launch_bounds__(" + bounds + ") " + name + "(const __grid_constant__ Arguments a) {");
}

std::string argument_name(const GpuProblem& problem, const KernelArgument& argument) {
    using Kind = KernelArgument::Kind;
    const Polynomial& polynomial = problem.polynomial;
    const auto operand = [&] {  // numbered: names may differ in '.' and '_' only
        return "o" + std::to_string(argument.which) + "_" + identifier(polynomial.operands[static_cast<std::size_t>(argument.which)].name);
    };
    const auto index = [&] {
        return "i" + std::to_string(argument.which) + "_" + identifier(polynomial.indices[static_cast<std::size_t>(argument.which)].name);
    };
    switch (argument.kind) {
        case Kind::data:
            return operand();
        case Kind::stride:
            return operand() + "_stride";
        case Kind::sums:
            return operand() + "_sums";
        case Kind::sums_stride:
            return operand() + "_sums_stride";
        case Kind::parts:
            return operand() + "_parts";
        case Kind::part_targets:
            return "part_targets";
        case Kind::part_count:
            return "part_count";
        case Kind::output_rows:
            return operand() + "_rows";
        case Kind::index:
            return index();
        case Kind::index_rows:
            return index() + "_rows";
        case Kind::index_wide:
            return index() + "_wide";
        case Kind::rows:
            return "rows";
        case Kind::reach:
            return "reach";
        case Kind::chunk:
            return "chunk";
        case Kind::aligned:
            return "aligned";
        case Kind::error:
            return "error";
        case Kind::table:
            return "table";
        case Kind::constant:
            return "constant";
    }
    return "";
}

std::string look_up(const std::string& index, const std::string& row) {
    return "look_up(" + joined({index, index + "_wide", row, index + "_rows", "a.error"}, ", ") + ")";
}

std::string look_up(const GpuProblem& problem, const std::vector<std::string>& chain, std::string row) {
    for (const std::string& via : chain)
        row = look_up("a." + argument_name(problem, {KernelArgument::Kind::index, problem.polynomial.find_index(via)}), row);
    return row;
}

void write_arguments(SourceText& source, const GpuProblem& problem, const std::vector<KernelArgument>& arguments) {
    using Kind = KernelArgument::Kind;
    source.line("struct Arguments {");
    for (const KernelArgument& argument : arguments) {
        std::string type = "i64 ";
        switch (argument.kind) {
            case Kind::data: {
                const bool output = problem.polynomial.operands[static_cast<std::size_t>(argument.which)].role == Role::output;
                type = std::string(output ? "" : "const ") + type_name(problem.storage[static_cast<std::size_t>(argument.which)]) + "* ";
                break;
            }
            case Kind::part_targets:
                type = "i64* ";
                break;
            case Kind::sums:
            case Kind::parts:
                type = std::string(type_name(problem.compute)) + "* ";
                break;
            case Kind::index:
                type = "const void* ";
                break;
            case Kind::error:
                type = "unsigned* ";
                break;
            default:
                break;
        }
        source.line(type + argument_name(problem, argument) + ";");
    }
    source.line("};");
}

}  // namespace clebsch
