#include "describe/harmonics_chain.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "algebra/harmonics.hpp"
#include "describe/rewrites.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

/// A vector as a node reads it.
struct Vector {
    int value = 0;
    int segment = 0;
    Addressing::Kind kind = Addressing::Kind::each;
    std::vector<std::string> via;
    int operand = 0;  ///< of the node at hand; not part of what the vector is

    auto identity() const { return std::tie(value, segment, kind, via); }
    friend bool operator==(const Vector& a, const Vector& b) { return a.identity() == b.identity(); }
    friend bool operator<(const Vector& a, const Vector& b) { return a.identity() < b.identity(); }
};

/// Which product of vectors a value holds: harmonic(vectors.size()) of them.
struct ChainKey {
    std::string rows;
    std::vector<Vector> vectors;        ///< equal ones side by side; a single one stands for its squared length
    std::vector<std::int64_t> extents;  ///< of the channels they share

    friend bool operator<(const ChainKey& a, const ChainKey& b) {
        return std::tie(a.rows, a.vectors, a.extents) < std::tie(b.rows, b.vectors, b.extents);
    }
    ChainKey prefix(std::size_t length) const {
        return {rows, {vectors.begin(), vectors.begin() + static_cast<std::ptrdiff_t>(length)}, extents};
    }
};

/// A path with harmonic(l), taken apart.
struct HarmonicPath {
    int degree = 0;
    ChainKey key;          ///< all vectors that are inputs
    std::string channels;  ///< of every one of them
    bool output_is_vector = false;
};

Coefficients recurrence(int degree) {
    std::vector<CoefficientEntry> entries;
    for (const RecurrenceEntry& entry : harmonic_recurrence(degree)) entries.push_back({{entry.i, entry.n, entry.m}, entry.value});
    return Coefficients::literal({3, 2 * degree - 1, 2 * degree + 1}, std::move(entries));
}

/// Of one vector r, Y_l needs only three terms a number, with y the polar axis ('component' size, e3nn's signs):
///     Y_l^m = a (y Y_(l-1)^m - b r^2 Y_(l-2)^m),  a^2 = (4 l^2 - 1) / (l^2 - m^2),  b^2 = ((l-1)^2 - m^2) / (4 (l-1)^2 - 1)   for |m| < l,
///     Y_l^(+-l) = sqrt((2l+1) / 2l) (z Y_(l-1)^(+-(l-1)) -+ x Y_(l-1)^(-+(l-1))),
/// the recurrence of Legendre functions and that of cos(m phi), sin(m phi). Axes: vector, Y_(l-1), Y_l.
Coefficients from_previous_degree(int l) {
    std::vector<CoefficientEntry> entries;
    for (int m = 1 - l; m < l; ++m) entries.push_back({{1, m + l - 1, m + l}, std::sqrt((4.0 * l * l - 1) / (l * l - m * m))});
    const double edge = std::sqrt((2.0 * l + 1) / (2.0 * l));
    entries.push_back({{2, 2 * l - 2, 2 * l}, edge});
    entries.push_back({{0, 0, 2 * l}, -edge});
    entries.push_back({{2, 0, 0}, edge});
    entries.push_back({{0, 2 * l - 2, 0}, edge});
    return Coefficients::literal({3, 2 * l - 1, 2 * l + 1}, std::move(entries));
}
/// The part with r^2. Axes: Y_(l-2), Y_l.
Coefficients from_degree_before(int l) {
    std::vector<CoefficientEntry> entries;
    const int k = l - 1;
    for (int m = 1 - k; m < k; ++m)
        entries.push_back({{m + k - 1, m + l}, -std::sqrt((4.0 * l * l - 1) / (l * l - m * m) * ((k * k - m * m) / (4.0 * k * k - 1)))});
    return Coefficients::literal({2 * l - 3, 2 * l + 1}, std::move(entries));
}

/// Equal vectors side by side, the most frequent first; else in order of appearance.
void sort_by_frequency(std::vector<Vector>& vectors) {
    std::vector<Vector> distinct;
    for (const Vector& vector : vectors)
        if (std::ranges::find(distinct, vector) == distinct.end()) distinct.push_back(vector);
    const auto frequency = [&](const Vector& vector) { return std::ranges::count(vectors, vector); };
    std::ranges::stable_sort(distinct, [&](const Vector& a, const Vector& b) { return frequency(a) > frequency(b); });
    std::vector<Vector> sorted;
    for (const Vector& vector : distinct)
        for (const Vector& other : vectors)
            if (other == vector) sorted.push_back(other);
    vectors = std::move(sorted);
}

std::optional<HarmonicPath> harmonic_path(const PolynomialNode& node, const Path& path) {
    const int degree = static_cast<int>(path.coefficients.rank()) - 1;
    if (degree < 3 || path.coefficients.name() != Coefficients::harmonic(degree).name()) return std::nullopt;
    HarmonicPath result;
    result.degree = degree;
    result.key.rows = node.polynomial.rows;
    bool first = true;
    for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
        const Factor& factor = path.factors[f];
        if (factor.axis < 0 || factor.axis == degree) continue;
        if (first) result.channels = factor.channels;
        first = false;
        if (factor.channels != result.channels) return std::nullopt;
        const Operand& operand = node.polynomial.operands[at(factor.operand)];
        result.key.vectors.push_back(
            {node.arguments[at(factor.operand)], factor.segment, operand.rows.kind, operand.rows.via, factor.operand});
    }
    for (const char letter : result.channels) {
        if (letter < 'a' || letter > 'z') return std::nullopt;  // (u<v)
        result.key.extents.push_back(path.extent(letter));
    }
    const int output_axis = path.output().axis;
    result.output_is_vector = output_axis >= 0 && output_axis < degree;
    sort_by_frequency(result.key.vectors);
    return result;
}

class ChainRewrite {
 public:
    explicit ChainRewrite(const Program& program) : program_(program) {
        for (const Node& node : program_.nodes)
            if (const auto* polynomial = std::get_if<PolynomialNode>(&node)) collect(*polynomial);
    }

    bool changes() const { return !needed_.empty(); }

    Program run() {
        result_ = without_nodes(program_);
        for (const Value& value : program_.values) names_.insert(value.name);
        for (const Node& node : program_.nodes) {
            if (const auto* polynomial = std::get_if<PolynomialNode>(&node)) rewrite(*polynomial);
            else result_.nodes.push_back(node);
        }
        return simplified(std::move(result_));
    }

 private:
    void collect(const PolynomialNode& node) {
        for (const Path& path : node.polynomial.paths) {
            const auto harmonic = harmonic_path(node, path);
            if (!harmonic) continue;
            for (std::size_t length = 2; length < at(harmonic->degree); ++length) needed_.insert(harmonic->key.prefix(length));
        }
    }

    std::string fresh_name(const std::string& base) {
        std::string name = base;
        for (int n = 2; !names_.insert(name).second; ++n) name = base + "_" + std::to_string(n);
        return name;
    }

    /// A node under construction that computes one link of a chain.
    struct Link {
        PolynomialNode node;
        std::string channels;
        std::vector<std::pair<char, std::int64_t>> extents;
        std::int64_t multiplicity = 1;

        Factor read(const PolynomialNode& reader, const Vector& vector, int axis) {
            Operand operand = reader.polynomial.operands[at(vector.operand)];
            operand.name = "vector_" + std::to_string(node.arguments.size());
            return bind(std::move(operand), vector.value, vector.segment, axis);
        }
        Factor read(int chain, int degree, int axis) {
            return bind(chain_operand("harmonics_" + std::to_string(degree), degree, multiplicity, Role::input), chain, 0, axis);
        }
        Factor bind(Operand operand, int value, int segment, int axis) {
            node.polynomial.operands.push_back(std::move(operand));
            node.arguments.push_back(value);
            return {static_cast<int>(node.arguments.size()) - 1, segment, channels, axis};
        }
        void add(std::vector<Factor> factors, Coefficients coefficients) {
            node.polynomial.paths.push_back({std::move(factors), std::move(coefficients), 1.0, extents});
        }
    };

    Link begin_link(const ChainKey& key, const PolynomialNode& reader, const std::string& channels) const {
        Link link;
        link.node.polynomial.rows = key.rows;
        link.node.polynomial.indices = reader.polynomial.indices;
        link.channels = channels;
        for (std::size_t i = 0; i < channels.size(); ++i) {
            link.multiplicity *= key.extents[i];
            link.extents.emplace_back(channels[i], key.extents[i]);
        }
        std::ranges::sort(link.extents);
        return link;
    }

    /// A new value for the output of a link, which is its last operand.
    int finish_link(Link link, const std::string& name) {
        const Operand& output = link.node.polynomial.operands.back();
        const int value = link.node.arguments.back() = static_cast<int>(result_.values.size());
        result_.values.push_back({fresh_name(name), link.node.polynomial.rows, output.segments, output.layout});
        result_.nodes.emplace_back(std::move(link.node));
        return value;
    }

    /// The value that holds `key`, computed from the vectors that `reader` reads.
    int chain_value(const ChainKey& key, const PolynomialNode& reader, const std::string& channels) {
        if (const auto known = values_.find(key); known != values_.end()) return known->second;
        const std::size_t length = key.vectors.size();
        const int degree = static_cast<int>(length);
        const bool one_vector = key.vectors.front() == key.vectors.back();
        Link link = begin_link(key, reader, channels);
        const Factor last = link.read(reader, key.vectors.back(), 0);
        std::vector<Factor> factors = {last};
        std::optional<Factor> square, before;
        if (degree == 2) {
            factors.push_back(one_vector ? Factor{last.operand, last.segment, channels, 1} : link.read(reader, key.vectors[0], 1));
        } else {
            factors.push_back(link.read(chain_value(key.prefix(length - 1), reader, channels), degree - 1, 1));
            if (one_vector) {
                square = link.bind(scalar_operand("squared_length", link.multiplicity, Role::input),
                                   squared_length(key.prefix(1), reader, channels), 0, -1);
                before = degree > 3 ? link.read(chain_value(key.prefix(length - 2), reader, channels), degree - 2, 0)
                                    : Factor{last.operand, last.segment, channels, 0};
            }
        }
        const Factor output = link.bind(chain_operand("harmonics", degree, link.multiplicity, Role::output), -1, 0, 2);
        factors.push_back(output);
        link.add(factors, degree == 2 ? Coefficients::harmonic(2) : one_vector ? from_previous_degree(degree) : recurrence(degree));
        if (square) {
            link.add({*square, *before, {output.operand, 0, channels, 1}}, from_degree_before(degree));
            if (degree == 3) link.node.polynomial.paths.back().scale = std::sqrt(3.0);  // Y_1 is sqrt(3) r
        }
        const int value = finish_link(std::move(link), "harmonics_" + std::to_string(degree));
        values_.emplace(key, value);
        return value;
    }

    int squared_length(const ChainKey& key, const PolynomialNode& reader, const std::string& channels) {
        if (const auto known = values_.find(key); known != values_.end()) return known->second;
        Link link = begin_link(key, reader, channels);
        const Factor vector = link.read(reader, key.vectors[0], 0);
        const Factor output = link.bind(scalar_operand("squared_length", link.multiplicity, Role::output), -1, 0, -1);
        link.add({vector, {vector.operand, vector.segment, channels, 1}, output}, Coefficients::identity(3));
        const int value = finish_link(std::move(link), "squared_length");
        values_.emplace(key, value);
        return value;
    }

    static Operand scalar_operand(const std::string& name, std::int64_t multiplicity, Role role) {
        return {name, {{multiplicity, 1, std::nullopt}}, Layout::ir_mul, role, each_row()};
    }

    static Operand chain_operand(const std::string& name, int degree, std::int64_t multiplicity, Role role) {
        return {name, {{multiplicity, 2 * degree + 1, std::nullopt}}, Layout::ir_mul, role, each_row()};
    }

    void rewrite(const PolynomialNode& node) {
        PolynomialNode changed = node;
        std::map<int, int> operand_of;  // chain value -> operand of `changed`
        for (Path& path : changed.polynomial.paths) {
            const auto harmonic = harmonic_path(node, path);
            if (!harmonic) continue;
            const int degree = harmonic->degree;
            // Of one vector, or where it is itself a link of some chain, the value is read from there; else the last vector stays in the
            // product.
            const bool one_vector = harmonic->key.vectors.front() == harmonic->key.vectors.back();
            const bool whole = !harmonic->output_is_vector && (one_vector || needed_.contains(harmonic->key));
            const ChainKey key = whole ? harmonic->key : harmonic->key.prefix(at(degree - 1));
            const int value = chain_value(key, node, harmonic->channels);
            const auto [known, is_new] = operand_of.try_emplace(value, static_cast<int>(changed.polynomial.operands.size()));
            if (is_new) {
                std::int64_t multiplicity = 1;
                for (const std::int64_t extent : key.extents) multiplicity *= extent;
                const auto taken = [&](const std::string& name) {
                    return std::ranges::find(changed.polynomial.operands, name, &Operand::name) != changed.polynomial.operands.end();
                };
                std::string name = result_.values[at(value)].name;
                while (taken(name)) name += "_";
                changed.polynomial.operands.push_back(chain_operand(name, whole ? degree : degree - 1, multiplicity, Role::input));
                changed.arguments.push_back(value);
            }
            // Axes: whole: 0 chain, 1 degree; else 0 last vector, 1 chain, 2 degree.
            std::vector<Factor> factors;
            factors.push_back({known->second, 0, harmonic->channels, whole ? 0 : 1});
            if (!whole && !harmonic->output_is_vector) {
                const Vector& last = harmonic->key.vectors.back();
                factors.push_back({last.operand, last.segment, harmonic->channels, 0});
            }
            for (std::size_t f = 0; f < path.factors.size(); ++f) {
                Factor factor = path.factors[f];
                const bool output = f + 1 == path.factors.size();
                if (factor.axis >= 0 && factor.axis < degree && !output) continue;
                if (factor.axis >= 0) factor.axis = factor.axis < degree ? 0 : whole ? 1 : 2;
                factors.push_back(std::move(factor));
            }
            path.factors = std::move(factors);
            path.coefficients = whole ? Coefficients::identity(2 * degree + 1) : recurrence(degree);
        }
        result_.nodes.emplace_back(std::move(changed));
    }

    const Program& program_;
    Program result_;
    std::set<ChainKey> needed_;
    std::map<ChainKey, int> values_;
    std::set<std::string> names_;
};

}  // namespace

Program with_harmonic_chains(Program program) {
    ChainRewrite rewrite(program);
    return rewrite.changes() ? rewrite.run() : std::move(program);
}

}  // namespace clebsch
