// A program of polynomials as one polynomial: intermediate values are replaced by the paths that make them.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "describe/derivative_origins.hpp"
#include "describe/rewrites.hpp"
#include "describe/simplify.hpp"

namespace clebsch {
namespace {

[[noreturn]] void unsupported(const std::string& reason) { throw Error(ErrorKind::unsupported, "a program as one polynomial: " + reason); }

std::size_t at(int position) { return static_cast<std::size_t>(position); }

bool is_identity(const Coefficients& coefficients) { return coefficients.rank() == 2 && coefficients.name().starts_with("identity("); }

/// Sum over a of first[.., a, ..] second[.., b = a, ..]: axes of `first` without `a`, then those of `second` without `b`. Axis -1 is one of
/// extent 1.
Coefficients contracted(const Coefficients& first, int a, const Coefficients& second, int b) {
    std::vector<int> shape;
    for (std::size_t i = 0; i < first.rank(); ++i)
        if (static_cast<int>(i) != a) shape.push_back(first.shape()[i]);
    for (std::size_t i = 0; i < second.rank(); ++i)
        if (static_cast<int>(i) != b) shape.push_back(second.shape()[i]);
    std::multimap<int, const CoefficientEntry*> by_component;
    for (const CoefficientEntry& entry : second.entries()) by_component.emplace(b < 0 ? 0 : entry.index[at(b)], &entry);
    std::vector<CoefficientEntry> entries;
    for (const CoefficientEntry& entry : first.entries()) {
        const auto [begin, end] = by_component.equal_range(a < 0 ? 0 : entry.index[at(a)]);
        for (auto other = begin; other != end; ++other) {
            CoefficientEntry product{{}, entry.value * other->second->value};
            for (std::size_t i = 0; i < first.rank(); ++i)
                if (static_cast<int>(i) != a) product.index.push_back(entry.index[i]);
            for (std::size_t i = 0; i < second.rank(); ++i)
                if (static_cast<int>(i) != b) product.index.push_back(other->second->index[i]);
            entries.push_back(std::move(product));
        }
    }
    return Coefficients::literal(std::move(shape), std::move(entries));
}

/// Replaces a letter by other channels wherever it stands alone.
void replace_letter(Path& path, char letter, const std::string& channels) {
    for (Factor& factor : path.factors) {
        std::string replaced;
        for (const ChannelGroup& group : parse_channels(factor.channels)) {
            if (group.restricted() && (group.first == letter || group.second == letter) && channels.size() != 1)
                unsupported("a pair of channels is made of channels that are products themselves");
            auto with = [&](char c) { return c == letter ? channels : std::string(1, c); };
            if (group.restricted()) replaced += '(' + with(group.first) + '<' + with(group.second) + ')';
            else replaced += with(group.first);
        }
        factor.channels = replaced;
    }
}

std::set<char> letters_of(const std::vector<Factor>& factors) {
    std::set<char> letters;
    for (const Factor& factor : factors)
        for (const char c : factor.channels)
            if (c >= 'a' && c <= 'z') letters.insert(c);
    return letters;
}

/// `outer` with its factor f replaced by the inputs of `inner`, whose output it reads.
Path substituted(const Path& outer, std::size_t f, const Path& inner) {
    // Letters of both side by side: the inner ones are renamed to letters that outer leaves free.
    std::map<char, std::int64_t> extents(outer.extents.begin(), outer.extents.end());
    std::map<char, char> renamed;
    for (const auto& [letter, extent] : inner.extents) {
        char free = 'a';
        while (free <= 'z' && extents.contains(free)) ++free;
        if (free > 'z') unsupported("a path needs more than 26 letters");
        extents[free] = extent;
        renamed[letter] = free;
    }
    Path made = inner, result = outer;
    for (Factor& factor : made.factors)
        for (char& c : factor.channels)
            if (c >= 'a' && c <= 'z') c = renamed.at(c);

    // The factor's channels and those the inner path writes are the same numbers: one spelling is to replace the other everywhere.
    const std::string read = outer.factors[f].channels, written = made.output().channels;
    const std::vector<ChannelGroup> reads = parse_channels(read), writes = parse_channels(written);
    std::vector<std::pair<char, char>> equal;  // a letter of the inner path and the outer one it is
    if (reads.size() == 1 && !reads[0].restricted() && writes.size() != 1) {
        if (!writes.empty()) replace_letter(result, reads[0].first, written);
    } else if (writes.size() == 1 && !writes[0].restricted() && reads.size() != 1) {
        if (!reads.empty()) replace_letter(made, writes[0].first, read);
    } else if (reads.size() == 1 && writes.size() == 1 && reads[0].restricted() != writes[0].restricted()) {
        if (reads[0].restricted()) replace_letter(made, writes[0].first, read);
        else replace_letter(result, reads[0].first, written);
    } else {
        if (reads.size() != writes.size()) unsupported("channels '" + read + "' read what channels '" + written + "' write");
        for (std::size_t i = 0; i < reads.size(); ++i) {
            if (reads[i].restricted() != writes[i].restricted() || extents.at(reads[i].first) != extents.at(writes[i].first))
                unsupported("channels '" + read + "' read what channels '" + written + "' write");
            equal.emplace_back(writes[i].first, reads[i].first);
            if (reads[i].restricted()) equal.emplace_back(writes[i].second, reads[i].second);
        }
        for (const auto& [from, to] : equal) replace_letter(made, from, std::string(1, to));
    }

    // Axes: of the outer path without that of the factor, then of the inner one without that of its output.
    const int a = outer.factors[f].axis, b = made.output().axis;
    const int outer_rank = static_cast<int>(outer.coefficients.rank()), kept = outer_rank - (a >= 0 ? 1 : 0);
    Factor* other_end = nullptr;  // of an identity: the axis takes the other tensor's place, and the name stays
    if (is_identity(outer.coefficients) && a >= 0 && b >= 0) {
        for (Factor& factor : result.factors)
            if (factor.axis == 1 - a) other_end = &factor;
        other_end->axis = b;
        result.coefficients = made.coefficients;
    } else if (is_identity(made.coefficients) && a >= 0 && b >= 0) {
        for (Factor& factor : made.factors)
            if (factor.axis == 1 - b) other_end = &factor;
        other_end->axis = a;
    } else if (outer.coefficients == Coefficients()) {
        result.coefficients = made.coefficients;  // no factor of outer has an axis: the output can take one of extent 1
        result.factors.back().axis = b;
    } else if (made.coefficients == Coefficients() && (a < 0 || made.factors.size() > 1)) {
        made.factors.front().axis = a;  // likewise
    } else {
        result.coefficients = contracted(outer.coefficients, a, made.coefficients, b);
        for (Factor& factor : result.factors)
            if (factor.axis > a && a >= 0) --factor.axis;
        for (Factor& factor : made.factors)
            if (factor.axis >= 0) factor.axis += kept - (b >= 0 && factor.axis > b ? 1 : 0);
    }
    std::vector<Factor> both = result.factors;
    both.insert(both.end(), made.factors.begin(), made.factors.end());
    const Path before{both, {}, 1, {}};
    result.factors.erase(result.factors.begin() + static_cast<std::ptrdiff_t>(f));
    result.factors.insert(result.factors.begin() + static_cast<std::ptrdiff_t>(f), made.factors.begin(), made.factors.end() - 1);
    result.scale = outer.scale * inner.scale;
    if (restrictions(before) != restrictions(result)) unsupported("a restriction to pairs of channels would be lost");
    const std::set<char> left = letters_of(result.factors);
    result.extents.clear();
    for (const char letter : letters_of(both)) {
        if (left.contains(letter)) result.extents.emplace_back(letter, extents.at(letter));
        else result.scale *= static_cast<double>(extents.at(letter));  // only the replaced value had this letter: a sum of equal terms
    }
    return result;
}

class Inlining {
 public:
    explicit Inlining(const Program& program) : program_(program), made_(program.values.size()), is_made_(program.values.size(), false) {}

    Polynomial run() {
        for (const Node& node : program_.nodes) {
            const auto* polynomial_node = std::get_if<PolynomialNode>(&node);
            if (polynomial_node == nullptr) unsupported("a node is the function " + to_text(std::get<FunctionNode>(node).function));
            if (&node != &program_.nodes.front() && polynomial_node->polynomial.rows != result_.rows)
                unsupported("nodes run over rows of '" + result_.rows + "' and of '" + polynomial_node->polynomial.rows + "'");
            result_.rows = polynomial_node->polynomial.rows;
            add(*polynomial_node);
        }
        return ordered();
    }

 private:
    /// What a node wrote to a value: the operand as the node saw it, and paths over operands of the result (the last factor is not one of
    /// them).
    struct Made {
        Operand operand;
        std::vector<Path> paths;
    };

    void add(const PolynomialNode& node) {
        std::vector<int> position(node.arguments.size(), -1);
        for (std::size_t i = 0; i < node.arguments.size(); ++i) {
            const Operand& operand = node.polynomial.operands[i];
            const int value = node.arguments[i];
            if (operand.role == Role::output) {
                is_made_[at(value)] = true;
                made_[at(value)].operand = operand;
            } else if (!is_made_[at(value)]) {
                position[i] = input_operand(operand, value);
            } else {
                const Operand& written = made_[at(value)].operand;
                const bool plain = operand.rows.kind != Addressing::Kind::indexed && written.rows.kind != Addressing::Kind::indexed;
                if (!plain || (!result_.rows.empty() &&
                               (operand.rows.kind == Addressing::Kind::shared || written.rows.kind == Addressing::Kind::shared)))
                    unsupported("value '" + program_.values[at(value)].name + "' is not read and written row by row");
                const bool alike = std::ranges::equal(operand.segments, written.segments, [](const Segment& a, const Segment& b) {
                    return a.multiplicity == b.multiplicity && a.components == b.components;
                });
                if (!alike || operand.layout != written.layout)
                    unsupported("value '" + program_.values[at(value)].name + "' is read in other segments than it is written in");
            }
        }
        for (const Path& path : node.polynomial.paths) {
            Path outer = path;
            std::vector<std::pair<int, int>> pending;  // value and segment of factors to replace
            for (Factor& factor : outer.factors) {
                const int value = node.arguments[at(factor.operand)];
                const bool inner = position[at(factor.operand)] < 0 && &factor != &outer.factors.back();
                pending.emplace_back(inner ? value : -1, factor.segment);
                if (!inner) factor.operand = position[at(factor.operand)];
            }
            expand(std::move(outer), pending, made_[at(node.arguments[at(path.output().operand)])].paths);
        }
    }

    /// Replaces the first pending factor by every path that writes its segment, then the next, in all combinations.
    void expand(Path outer, std::vector<std::pair<int, int>> pending, std::vector<Path>& results) const {
        const auto found = std::ranges::find_if(pending, [](const auto& entry) { return entry.first >= 0; });
        if (found == pending.end()) {
            if (results.size() >= most_paths) unsupported("more than 2^20 paths");
            results.push_back(std::move(outer));
            return;
        }
        const auto f = static_cast<std::size_t>(found - pending.begin());
        for (const Path& inner : made_[at(found->first)].paths) {
            if (inner.output().segment != found->second) continue;
            std::vector<std::pair<int, int>> rest = pending;
            rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(f));
            rest.insert(rest.begin() + static_cast<std::ptrdiff_t>(f), inner.factors.size() - 1, {-1, 0});
            expand(substituted(outer, f, inner), std::move(rest), results);
        }
    }

    int input_operand(const Operand& operand, int value) {
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            const Operand& known = result_.operands[i];
            if (inputs_[i] == value && known.rows == operand.rows && known.layout == operand.layout && known.segments == operand.segments)
                return static_cast<int>(i);
        }
        Operand added = operand;
        added.name = unique_name(program_.values[at(value)].name, names_);
        indices_.insert(added.rows.via.begin(), added.rows.via.end());
        result_.operands.push_back(std::move(added));
        inputs_.push_back(value);
        return static_cast<int>(inputs_.size()) - 1;
    }

    /// Operands in the order of the program's inputs, then its outputs.
    Polynomial ordered() {
        std::vector<int> order;
        for (const int input : program_.inputs)
            for (std::size_t i = 0; i < inputs_.size(); ++i)
                if (inputs_[i] == input) order.push_back(static_cast<int>(i));
        for (const int output : program_.outputs) {
            const auto position = static_cast<int>(result_.operands.size());
            Operand operand = made_[at(output)].operand;
            operand.name = unique_name(program_.values[at(output)].name, names_);
            indices_.insert(operand.rows.via.begin(), operand.rows.via.end());
            result_.operands.push_back(std::move(operand));
            order.push_back(position);
            for (Path path : made_[at(output)].paths) {
                path.factors.back().operand = position;
                result_.paths.push_back(std::move(path));
            }
        }
        for (const Index& index : program_.indices)
            if (indices_.contains(index.name)) result_.indices.push_back(index);
        result_.paths = simplified_paths(result_);
        return drop_unused(permuted(result_, order)).polynomial;
    }

    static constexpr std::size_t most_paths = std::size_t{1} << 20;

    const Program& program_;
    Polynomial result_;
    std::vector<int> inputs_;  ///< the value of every input operand of the result
    std::vector<Made> made_;
    std::vector<bool> is_made_;
    std::set<std::string> names_, indices_;
};

}  // namespace

Polynomial as_polynomial(const Program& program) {
    if (program.nodes.empty()) unsupported("there is no node");
    return Inlining(program).run();
}

}  // namespace clebsch
