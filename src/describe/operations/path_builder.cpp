#include "describe/operations/path_builder.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace clebsch {
namespace {

/// Without its single letters of extent 1; a pair "(u<v)" is kept as it is.
std::string without_units(const std::string& channels, const std::vector<std::pair<char, std::int64_t>>& kept) {
    std::string text;
    bool in_pair = false;
    for (char c : channels) {
        if (c == '(') in_pair = true;
        const bool letter = c >= 'a' && c <= 'z';
        if (in_pair || !letter || std::ranges::find(kept, c, &std::pair<char, std::int64_t>::first) != kept.end()) text += c;
        if (c == ')') in_pair = false;
    }
    return text;
}

bool paired(const std::vector<Factor>& factors, char letter) {
    return std::ranges::any_of(factors, [&](const Factor& factor) {
        const std::size_t at = factor.channels.find(letter);
        if (at == std::string::npos) return false;
        return (at + 1 < factor.channels.size() && factor.channels[at + 1] == '<') || (at > 0 && factor.channels[at - 1] == '<');
    });
}

}  // namespace

Operand make_operand(const OperandOptions& options, std::vector<Segment> segments, Role role) {
    return {options.name, std::move(segments), options.layout, role, options.rows};
}

bool add_path(Polynomial& polynomial, std::vector<Factor> factors, Coefficients coefficients, double scale,
              const std::vector<std::pair<char, std::int64_t>>& extents) {
    if (scale == 0) return false;
    std::vector<std::pair<char, std::int64_t>> kept;
    for (const auto& [letter, extent] : extents) {
        const bool pair = paired(factors, letter);
        if (extent == 0 || (pair && extent < 2)) return false;
        if (extent != 1) kept.emplace_back(letter, extent);
    }
    std::ranges::sort(kept);
    for (Factor& factor : factors) factor.channels = without_units(factor.channels, kept);
    polynomial.paths.push_back({std::move(factors), std::move(coefficients), scale, std::move(kept)});
    return true;
}

std::int64_t channel_product(std::initializer_list<std::int64_t> counts) {
    std::int64_t product = 1;
    for (std::int64_t count : counts)
        if (__builtin_mul_overflow(product, count, &product)) {
            std::string text;
            for (const std::int64_t factor : counts) text += (text.empty() ? "" : " x ") + std::to_string(factor);
            fail("channels: expected fewer than 2^63 in a segment, got " + text);
        }
    return product;
}

std::vector<bool> output_mask(const Polynomial& polynomial, std::string_view output) {
    const int number = polynomial.find_operand(output);
    const Operand& operand = polynomial.operands[static_cast<std::size_t>(number)];
    std::vector<bool> mask(static_cast<std::size_t>(operand.size()), false);
    for (const Path& path : polynomial.paths) {
        const Factor& out = path.output();
        if (out.operand != number) continue;
        const std::int64_t first = operand.offset(out.segment), count = operand.segments[static_cast<std::size_t>(out.segment)].size();
        std::fill_n(mask.begin() + first, count, true);
    }
    return mask;
}

}  // namespace clebsch
