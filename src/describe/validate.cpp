// What makes a polynomial meaningful; every message names the operand or path, what was expected and what came.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "base/number.hpp"
#include "describe/polynomial.hpp"

namespace clebsch {
namespace {

/// Numbers per row, channels and loops stay far below 2^63, so that byte counts and products of two of them can be computed without
/// overflow.
constexpr std::int64_t largest_size = std::int64_t{1} << 48;

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

void check_name(const char* what, const std::string& name) {
    if (!is_name(name))
        fail(std::string(what) + " " + quoted(name.substr(0, 60)) +
             ": expected a name (a letter or '_', then letters, digits, '_' or '.', at most 255 characters)");
}

template <class T>
void check_distinct(const char* what, const std::vector<T>& items) {
    std::vector<std::string_view> names;
    for (const T& item : items) {
        check_name(what, item.name);
        names.push_back(item.name);
    }
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice != names.end()) fail(std::string(what) + " " + quoted(*twice) + ": the name is used twice, expected distinct names");
}

void check_indices(const Polynomial& polynomial) {
    if (!polynomial.rows.empty()) check_name("row space", polynomial.rows);
    check_distinct("index", polynomial.indices);
    for (const Index& index : polynomial.indices)
        for (const std::string& space : {std::cref(index.from), std::cref(index.to)})
            if (!is_name(space)) check_name(("index " + quoted(index.name) + ": space").c_str(), space);
}

void check_addressing(const Polynomial& polynomial, const Operand& operand) {
    const auto where = [&] { return "operand " + quoted(operand.name) + ": "; };
    const std::vector<std::string>& via = operand.rows.via;
    if (operand.rows.kind != Addressing::Kind::indexed) {
        if (!via.empty()) fail(where() + "only indexed operands go through indices, got " + quoted(via.front()));
        return;
    }
    if (via.empty()) fail(where() + "indexed without the name of an index");
    std::string space = polynomial.rows;
    for (const std::string& name : via) {
        const auto index = std::ranges::find(polynomial.indices, name, &Index::name);
        if (index == polynomial.indices.end()) fail(where() + "index " + quoted(name) + " is not among the polynomial's indices");
        if (index->from != space)
            fail(where() + "index " + quoted(name) + " expects rows of " + quoted(index->from) + ", got rows of " + quoted(space));
        space = index->to;
    }
}

void check_operand(const Polynomial& polynomial, const Operand& operand) {
    check_addressing(polynomial, operand);
    std::int64_t size = 0;
    for (std::size_t i = 0; i < operand.segments.size(); ++i) {
        const Segment& segment = operand.segments[i];
        const auto where = [&] { return "operand " + quoted(operand.name) + ", segment " + std::to_string(i) + ": "; };
        if (segment.multiplicity < 0) fail(where() + "expected a multiplicity of at least 0, got " + std::to_string(segment.multiplicity));
        if (segment.components < 1) fail(where() + "expected at least 1 component, got " + std::to_string(segment.components));
        if (segment.irrep) {
            if (segment.irrep->degree < 0 || segment.irrep->degree > max_degree)
                fail(where() + "expected an irrep of degree 0 to " + std::to_string(max_degree) + ", got " +
                     std::to_string(segment.irrep->degree));
            if (segment.components != segment.irrep->dim())
                fail(where() + "irrep " + to_text(*segment.irrep) + " has " + std::to_string(segment.irrep->dim()) + " components, got " +
                     std::to_string(segment.components));
        }
        if (segment.multiplicity > (largest_size - size) / segment.components)
            fail(where() + "a row of more than 2^48 numbers is not supported (multiplicity " + std::to_string(segment.multiplicity) + ")");
        size += segment.size();
    }
}

/// Checks one path; `where()` names it in messages.
class PathCheck {
 public:
    PathCheck(const Polynomial& polynomial, std::size_t number)
        : polynomial_(polynomial), path_(polynomial.paths[number]), number_(number) {}

    void run() const {
        if (path_.factors.empty()) fail(where() + "expected an output factor, got no factors");
        if (!std::isfinite(path_.scale)) fail(where() + "expected a finite scale, got " + number_text(path_.scale));
        check_extents();
        std::vector<int> factor_of_axis(path_.coefficients.rank(), -1);
        bool used[26] = {};
        for (std::size_t f = 0; f < path_.factors.size(); ++f) {
            check_place(f);
            check_channels(f, used);
            check_axis(f, factor_of_axis);
        }
        for (const auto& [letter, extent] : path_.extents)
            if (!used[letter - 'a']) fail(where() + "letter '" + letter + "' has an extent but no factor uses it");
        for (std::size_t axis = 0; axis < factor_of_axis.size(); ++axis)
            if (factor_of_axis[axis] < 0)
                fail(where() + "axis " + std::to_string(axis) + " of " + path_.coefficients.to_text() + " belongs to no factor");
    }

 private:
    const Polynomial& polynomial_;
    const Path& path_;
    std::size_t number_;

    std::string where() const { return "path " + std::to_string(number_) + ": "; }

    std::string where(std::size_t f) const {
        const Factor& factor = path_.factors[f];
        std::string text = "path " + std::to_string(number_) + ", factor " + std::to_string(f);
        if (factor.operand >= 0 && static_cast<std::size_t>(factor.operand) < polynomial_.operands.size())
            text += " (operand " + quoted(polynomial_.operands[static_cast<std::size_t>(factor.operand)].name) + ", segment " +
                    std::to_string(factor.segment) + ")";
        return text + ": ";
    }

    const Segment& segment(const Factor& factor) const {
        return polynomial_.operands[static_cast<std::size_t>(factor.operand)].segments[static_cast<std::size_t>(factor.segment)];
    }

    void check_extents() const {
        char previous = 0;
        std::int64_t loops = 1;
        for (const auto& [letter, extent] : path_.extents) {
            if (letter < 'a' || letter > 'z')
                fail(where() + "expected letters a-z among the extents, got character " + std::to_string(int{letter}));
            if (letter <= previous)
                fail(where() + "extents are to be sorted by letter without repeats, got '" + letter + "' after '" + previous + "'");
            if (extent < 0) fail(where() + "letter '" + letter + "': expected an extent of at least 0, got " + std::to_string(extent));
            previous = letter;
            if (extent > 0 && __builtin_mul_overflow(loops, extent, &loops)) fail(where() + "the product of all extents exceeds 2^63");
        }
    }

    void check_place(std::size_t f) const {
        const Factor& factor = path_.factors[f];
        const std::size_t operands = polynomial_.operands.size();
        if (factor.operand < 0 || static_cast<std::size_t>(factor.operand) >= operands)
            fail(where(f) + "expected an operand number below " + std::to_string(operands) + ", got " + std::to_string(factor.operand));
        const Operand& operand = polynomial_.operands[static_cast<std::size_t>(factor.operand)];
        const bool last = f + 1 == path_.factors.size();
        if (last && operand.role != Role::output) fail(where(f) + "the last factor is to be an output, the operand is an input");
        if (!last && operand.role != Role::input) fail(where(f) + "only the last factor may be an output");
        if (factor.segment < 0 || static_cast<std::size_t>(factor.segment) >= operand.segments.size())
            fail(where(f) + "the operand has " + std::to_string(operand.segments.size()) + " segments");
    }

    void check_channels(std::size_t f, bool (&used)[26]) const {
        const Factor& factor = path_.factors[f];
        std::int64_t count = 1;
        std::vector<ChannelGroup> groups;
        try {
            groups = parse_channels(factor.channels);
        } catch (const Error& error) { fail(where(f) + error.what()); }
        auto extent = [&](char letter) {
            const auto found = std::ranges::find(path_.extents, letter, &std::pair<char, std::int64_t>::first);
            if (found == path_.extents.end())
                fail(where(f) + "letter '" + letter + "' of channels " + quoted(factor.channels) + " has no extent");
            used[letter - 'a'] = true;
            return found->second;
        };
        const auto letters = [&] {
            std::string text;
            const auto add = [&](char letter) {
                text += (text.empty() ? " with " : ", ") + std::string(1, letter) + " = " + std::to_string(extent(letter));
            };
            for (const ChannelGroup& group : groups) {
                add(group.first);
                if (group.restricted()) add(group.second);
            }
            return text;
        };
        for (const ChannelGroup& group : groups) {
            std::int64_t n = extent(group.first);
            if (group.restricted()) {
                const std::int64_t second = extent(group.second);
                if (n != second)
                    fail(where(f) + "the letters of (" + group.first + '<' + group.second + ") need equal extents, got " +
                         std::to_string(n) + " and " + std::to_string(second));
                if (n > (std::int64_t{1} << 24))
                    fail(where(f) + "an extent of " + std::to_string(n) + " is too large for a pair of letters");
                n = n * (n - 1) / 2;
            }
            if (__builtin_mul_overflow(count, n, &count)) fail(where(f) + "the number of channels exceeds 2^63");
        }
        if (count != segment(factor).multiplicity)
            fail(where(f) + "channels " + quoted(factor.channels) + letters() + " are " + std::to_string(count) + ", the segment has " +
                 std::to_string(segment(factor).multiplicity));
    }

    void check_axis(std::size_t f, std::vector<int>& factor_of_axis) const {
        const Factor& factor = path_.factors[f];
        const int components = segment(factor).components;
        if (factor.axis == -1) {
            if (components != 1)
                fail(where(f) + "a factor without an axis needs a segment of one component, got " + std::to_string(components));
            return;
        }
        if (factor.axis < 0 || static_cast<std::size_t>(factor.axis) >= factor_of_axis.size())
            fail(where(f) + "axis " + std::to_string(factor.axis) + " does not exist, " + path_.coefficients.to_text() + " has " +
                 std::to_string(factor_of_axis.size()));
        int& owner = factor_of_axis[static_cast<std::size_t>(factor.axis)];
        if (owner >= 0) fail(where(f) + "axis " + std::to_string(factor.axis) + " is already used by factor " + std::to_string(owner));
        owner = static_cast<int>(f);
        const int extent = path_.coefficients.shape()[static_cast<std::size_t>(factor.axis)];
        if (extent != components)
            fail(where(f) + "axis " + std::to_string(factor.axis) + " of " + path_.coefficients.to_text() + " has extent " +
                 std::to_string(extent) + ", the segment has " + std::to_string(components) + " components");
    }
};

}  // namespace

void validate(const Polynomial& polynomial) {
    check_indices(polynomial);
    check_distinct("operand", polynomial.operands);
    for (const Operand& operand : polynomial.operands) check_operand(polynomial, operand);
    for (std::size_t p = 0; p < polynomial.paths.size(); ++p) PathCheck(polynomial, p).run();
}

}  // namespace clebsch
