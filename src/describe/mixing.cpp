// A path that couples and mixes channels at once, as a coupling per channel followed by a linear map.
#include <algorithm>
#include <map>
#include <optional>

#include "describe/rewrites.hpp"
#include "describe/simplify.hpp"
#include "describe/text.hpp"

namespace clebsch {
namespace {

/// Where a path that can be split has its matrix, and the letters it maps from (in the matrix's order) and to.
struct Mixing {
    std::size_t matrix;
    std::string from;
    char to;

    std::int64_t extent(const Path& path) const {
        std::int64_t extent = 1;
        for (const char letter : from) extent *= path.extent(letter);
        return extent;
    }
};

std::optional<Mixing> find_mixing(const Path& path) {
    const std::string& out = path.output().channels;
    const std::size_t letters = path.extents.size();
    if (out.size() != 1 || letters < 2 || letters > 3) return std::nullopt;
    std::optional<Mixing> found;
    std::string met;  // letters of the other factors
    for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
        const Factor& factor = path.factors[f];
        if (factor.channels.size() != letters) {
            if (factor.channels.find_first_of("()" + out) != std::string::npos) return std::nullopt;
            met += factor.channels;
        } else {
            if (found || factor.axis >= 0 || (factor.channels.front() != out[0] && factor.channels.back() != out[0])) return std::nullopt;
            found = Mixing{f, factor.channels, out[0]};
            std::erase(found->from, out[0]);
            if (found->from.size() + 1 != letters) return std::nullopt;
        }
    }
    if (!found || path.factors.size() <= 3) return std::nullopt;  // x and the matrix alone are a linear map already
    for (const char letter : found->from)
        if (met.find(letter) == std::string::npos) return std::nullopt;
    return found;
}

/// Multiplications per row, terms times letters: together, and in two steps.
bool gains(const Path& path, const Mixing& mixing, double least_gain) {
    const auto terms = static_cast<double>(reduced_entries(path).size());
    const auto from = static_cast<double>(mixing.extent(path)), to = static_cast<double>(path.extent(mixing.to));
    const double components = path.output().axis < 0 ? 1 : path.coefficients.shape()[static_cast<std::size_t>(path.output().axis)];
    const double together = terms * from * to, in_steps = terms * from + components * from * to;
    return together > least_gain * in_steps;
}

}  // namespace

Program split_mixing(const Polynomial& polynomial, double least_gain) {
    Operand products{"products", {}, Layout::ir_mul, Role::input, polynomial.rows.empty() ? shared_row() : each_row()};
    const int products_operand = static_cast<int>(polynomial.operands.size());
    std::map<std::string, int> known;  // text of a product, its segment
    std::vector<Path> steps, maps;
    for (const Path& path : polynomial.paths) {
        const std::optional<Mixing> mixing = find_mixing(path);
        if (!mixing || !gains(path, *mixing, least_gain)) {
            maps.push_back(path);
            continue;
        }
        const int components = path.output().axis < 0 ? 1 : path.coefficients.shape()[static_cast<std::size_t>(path.output().axis)];
        Path step = path;
        step.scale = 1;
        step.factors.erase(step.factors.begin() + static_cast<std::ptrdiff_t>(mixing->matrix));
        std::erase_if(step.extents, [&](const auto& extent) { return extent.first == mixing->to; });
        std::string text = step.coefficients.to_text() + ' ' + std::to_string(path.output().axis);
        for (const char letter : mixing->from) text += ' ' + std::to_string(path.extent(letter));
        for (std::size_t f = 0; f + 1 < step.factors.size(); ++f) {
            const Factor& factor = step.factors[f];
            text += ' ' + std::to_string(factor.operand) + '.' + std::to_string(factor.segment) + '[';
            for (const char letter : factor.channels) text += std::to_string(mixing->from.find(letter));
            text += ']' + std::to_string(factor.axis);
        }
        const auto [segment, is_new] = known.try_emplace(text, static_cast<int>(products.segments.size()));
        step.factors.back() = {products_operand, segment->second, mixing->from, path.output().axis};
        if (is_new) {
            const Factor& out = path.output();
            const auto& irrep =
                polynomial.operands[static_cast<std::size_t>(out.operand)].segments[static_cast<std::size_t>(out.segment)].irrep;
            products.segments.push_back({mixing->extent(path), components, irrep});
            steps.push_back(std::move(step));
        }
        Path map{{path.factors[mixing->matrix], {products_operand, segment->second, mixing->from, components > 1 ? 0 : -1}, path.output()},
                 components > 1 ? Coefficients::identity(components) : Coefficients(),
                 path.scale,
                 path.extents};
        map.factors.back().axis = components > 1 ? 1 : -1;
        maps.push_back(std::move(map));
    }
    if (steps.empty()) return as_program(polynomial);

    Program program = as_program(polynomial);
    program.nodes.clear();
    while (std::ranges::any_of(polynomial.operands, [&](const Operand& operand) { return operand.name == products.name; }))
        products.name += '_';
    program.values.push_back({products.name, polynomial.rows, products.segments, products.layout});
    for (const bool first : {true, false}) {
        Polynomial step = polynomial;
        step.operands.push_back(products);
        step.operands.back().role = first ? Role::output : Role::input;
        step.paths = first ? steps : maps;
        if (first) {  // its only output are the products
            for (Operand& operand : step.operands)
                if (operand.role == Role::output && operand.name != products.name) operand.role = Role::input;
        }
        const OperandSelection selection = drop_unused(step);
        program.nodes.push_back(PolynomialNode{selection.polynomial, selection.kept});
    }
    return program;
}

}  // namespace clebsch
