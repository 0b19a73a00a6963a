#include "support/coverage.hpp"

#include <algorithm>

namespace clebsch {
namespace {

std::string addressing_text(const Polynomial& polynomial, const Operand& operand) {
    switch (operand.rows.kind) {
        case Addressing::Kind::each:
            return "each";
        case Addressing::Kind::shared:
            return "shared";
        case Addressing::Kind::indexed:
            break;
    }
    const std::string sorted = polynomial.is_sorted(operand) ? "sorted" : "unsorted";
    return operand.rows.via.size() == 1 ? sorted : sorted + " chain of " + std::to_string(operand.rows.via.size());
}

std::string family(const Coefficients& coefficients) {
    if (coefficients.name().empty()) return "literal of rank " + std::to_string(coefficients.rank());
    return coefficients.name().substr(0, coefficients.name().find('('));
}

std::string range(std::size_t rows) { return rows <= 1 ? std::to_string(rows) : rows < 8 ? "2-7" : rows < 32 ? "8-31" : "32+"; }

}  // namespace

std::string channel_mode(const Path& path) {
    static constexpr std::string_view names = "uvwxyzabcdefghijklmnopqrst";
    std::string known, text;
    for (std::size_t f = 0; f < path.factors.size(); ++f) {
        if (f + 1 == path.factors.size()) text += "->";
        else if (f > 0) text += ',';
        for (const char c : path.factors[f].channels) {
            if (c < 'a' || c > 'z') {
                text += c;
                continue;
            }
            if (known.find(c) == std::string::npos) known += c;
            text += names[known.find(c)];
        }
    }
    return text;
}

void Coverage::add(const Polynomial& polynomial) {
    count("iteration space", polynomial.rows.empty() ? "''" : polynomial.rows);
    count("outputs", std::to_string(std::ranges::count(polynomial.operands, Role::output, &Operand::role)));
    for (const Operand& operand : polynomial.operands) {
        count(operand.role == Role::input ? "input rows" : "output rows", addressing_text(polynomial, operand));
        count("layout", operand.layout == Layout::mul_ir ? "mul_ir" : "ir_mul");
        for (const Segment& segment : operand.segments) count("segment", segment.irrep ? "irrep" : "plain");
    }
    for (const Path& path : polynomial.paths) {
        count("mode", channel_mode(path));
        count("coefficients", family(path.coefficients));
        count("inputs of a path", std::to_string(path.factors.size() - 1));
        for (const auto& [letter, extent] : path.extents) count("channels", std::to_string(extent));
        int largest_power = 0;
        for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
            int same = 0;
            for (std::size_t g = 0; g + 1 < path.factors.size(); ++g)
                same += path.factors[g].operand == path.factors[f].operand && path.factors[g].segment == path.factors[f].segment &&
                        path.factors[g].channels == path.factors[f].channels;
            largest_power = std::max(largest_power, same);
        }
        count("power of an operand", std::to_string(largest_power));
    }
}

void Coverage::add(const Program& program) {
    count("nodes of a program", std::to_string(program.nodes.size()));
    for (const Node& node : program.nodes) {
        if (const auto* function = std::get_if<FunctionNode>(&node))
            count("function", clebsch::to_text(function->function).substr(0, clebsch::to_text(function->function).find('(')));
        else add(std::get<PolynomialNode>(node).polynomial);
    }
}

void Coverage::add(const ReferenceInputs& inputs) {
    for (const auto& [space, rows] : inputs.rows) count("rows of a space", range(static_cast<std::size_t>(rows)));
    for (const auto& [name, values] : inputs.indices)
        if (!values.empty()) count("index", std::ranges::find(values, -1) == values.end() ? "without masks" : "with masked rows");
}

long Coverage::count_of(const std::string& category, const std::string& item) const {
    const auto found = counts_.find(category);
    if (found == counts_.end()) return 0;
    const auto counted = found->second.find(item);
    return counted == found->second.end() ? 0 : counted->second;
}

std::vector<std::string> Coverage::missing(const std::string& category, const std::vector<std::string>& items) const {
    std::vector<std::string> result;
    for (const std::string& item : items)
        if (count_of(category, item) == 0) result.push_back(item);
    return result;
}

std::string Coverage::to_text() const {
    std::string text;
    for (const auto& [category, items] : counts_) {
        std::vector<std::pair<long, std::string>> sorted;
        for (const auto& [item, times] : items) sorted.emplace_back(-times, item);
        std::ranges::sort(sorted);
        text += category + ":";
        for (const auto& [negative, item] : sorted) text += "  " + (item.empty() ? "''" : item) + " " + std::to_string(-negative);
        text += "\n";
    }
    return text;
}

}  // namespace clebsch
