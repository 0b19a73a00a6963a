#include "describe/operations/symmetric_contraction.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/error.hpp"
#include "describe/symmetric.hpp"

namespace clebsch {
namespace {

constexpr int largest_correlation = 8;

std::int64_t common_channels(const Irreps& in, const Irreps& out) {
    if (in.size() == 0 || out.size() == 0)
        fail("symmetric contraction: expected input and output irreps, got '" + to_text(in) + "' and '" + to_text(out) + "'");
    const std::int64_t channels = in[0].multiplicity;
    for (const Irreps* irreps : {&in, &out})
        for (const IrrepBlock& block : *irreps)
            if (block.multiplicity != channels)
                fail("symmetric contraction: expected one multiplicity throughout, got '" + to_text(in) + "' to '" + to_text(out) + "'");
    return channels;
}

Polynomial without_paths(const Irreps& in, const Irreps& out, const ContractionOptions& options) {
    Polynomial polynomial;
    polynomial.rows = options.rows;
    polynomial.operands = {make_operand(options.x, segments_of(in), Role::input), make_operand(options.weights, {}, Role::input),
                           make_operand(options.out, segments_of(out), Role::output)};
    for (const Index& index : options.indices) {  // shared weights need no species
        const bool used = std::ranges::any_of(polynomial.operands,
                                              [&](const Operand& operand) { return std::ranges::count(operand.rows.via, index.name) > 0; });
        if (used) polynomial.indices.push_back(index);
    }
    return polynomial;
}

/// Calls `visit` with every non-decreasing list of `length` numbers below `count`, in lexicographic order.
template <class Visit>
void for_each_choice(int count, int length, Visit&& visit) {
    std::vector<int> choice(static_cast<std::size_t>(length), 0);
    for (;;) {
        visit(choice);
        std::size_t at = choice.size();
        while (at > 0 && choice[at - 1] == count - 1) --at;
        if (at == 0) return;
        std::fill(choice.begin() + static_cast<std::ptrdiff_t>(at) - 1, choice.end(), choice[at - 1] + 1);
    }
}

void check_correlation(int correlation) {
    if (correlation < 1 || correlation > largest_correlation)
        fail("symmetric contraction: expected a correlation of 1 to " + std::to_string(largest_correlation) + ", got " +
             std::to_string(correlation));
}

/// Segment and component within it of a component of all irreps in a row (one channel).
struct Place {
    int segment, component;
};
std::vector<Place> places_of(const Irreps& irreps) {
    std::vector<Place> places;
    for (std::size_t i = 0; i < irreps.size(); ++i)
        for (int m = 0; m < irreps[i].irrep.dim(); ++m) places.push_back({static_cast<int>(i), m});
    return places;
}

}  // namespace

Polynomial symmetric_contraction(const Irreps& in, const Irreps& out, int correlation, const ContractionOptions& options) {
    check_correlation(correlation);
    const std::int64_t channels = common_channels(in, out);
    // Segments in the order of their irreps, as names of symmetric coefficients list them.
    std::vector<int> order(in.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int i) { return in[static_cast<std::size_t>(i)].irrep; });
    for (std::size_t i = 1; i < order.size(); ++i)
        if (in[static_cast<std::size_t>(order[i - 1])].irrep == in[static_cast<std::size_t>(order[i])].irrep)
            fail("symmetric contraction: expected distinct input irreps, got '" + to_text(in) + "'; merge equal ones, or give a basis");

    Polynomial polynomial = without_paths(in, out, options);
    for (std::size_t k = 0; k < out.size(); ++k) {
        for (int nu = 1; nu <= correlation; ++nu) {
            for_each_choice(static_cast<int>(order.size()), nu, [&](const std::vector<int>& choice) {
                std::vector<Irrep> irreps;
                std::vector<Factor> factors;
                for (int c : choice) {
                    const int segment = order[static_cast<std::size_t>(c)];
                    factors.push_back({0, segment, "u", static_cast<int>(factors.size())});
                    irreps.push_back(in[static_cast<std::size_t>(segment)].irrep);
                }
                const std::size_t couplings = symmetric_couplings(irreps, out[k].irrep)->size();
                const std::string name = "symmetric(" + symmetric_text(irreps, out[k].irrep) + ";";
                for (std::size_t r = 0; r < couplings; ++r) {
                    std::vector<Segment>& weights = polynomial.operands[1].segments;
                    std::vector<Factor> all = factors;
                    all.push_back({1, static_cast<int>(weights.size()), "u", -1});
                    all.push_back({2, static_cast<int>(k), "u", nu});
                    weights.push_back({channels, 1, {}});
                    add_path(polynomial, std::move(all), Coefficients::named(name + std::to_string(r) + ")"), 1.0, {{'u', channels}});
                }
            });
        }
    }
    validate(polynomial);
    return polynomial;
}

Polynomial symmetric_contraction(const Irreps& in, const Irreps& out, const ContractionBases& bases, const ContractionOptions& options) {
    const std::int64_t channels = common_channels(in, out);
    const std::vector<Place> places = places_of(in);
    Polynomial polynomial = without_paths(in, out, options);
    polynomial.operands[1].layout = Layout::ir_mul;  // (parameter, channel) in C order
    for (const auto& [key, basis] : bases) {
        const auto [k, nu] = key;
        const std::string where =
            "symmetric contraction, basis of output segment " + std::to_string(k) + " and correlation " + std::to_string(nu) + ": ";
        if (k < 0 || static_cast<std::size_t>(k) >= out.size())
            fail(where + "there are " + std::to_string(out.size()) + " output segments");
        check_correlation(nu);
        if (basis.parameters < 1) fail(where + "expected at least one parameter, got " + std::to_string(basis.parameters));
        const int dim = out[static_cast<std::size_t>(k)].irrep.dim();

        // Entries by the segments they join, with factors sorted by component: equal factors commute.
        std::map<std::vector<int>, std::vector<CoefficientEntry>> by_segments;
        for (const CoefficientEntry& entry : basis.entries) {
            if (entry.index.size() != static_cast<std::size_t>(nu) + 2)
                fail(where + "expected entries with " + std::to_string(nu + 2) + " indices, got " + std::to_string(entry.index.size()));
            std::vector<int> components(entry.index.begin(), entry.index.end() - 2);
            const int parameter = entry.index[static_cast<std::size_t>(nu)], m = entry.index[static_cast<std::size_t>(nu) + 1];
            const bool inside =
                std::ranges::all_of(components, [&](int i) { return i >= 0 && static_cast<std::size_t>(i) < places.size(); });
            if (!inside || parameter < 0 || parameter >= basis.parameters || m < 0 || m >= dim)
                fail(where + "expected components below " + std::to_string(places.size()) + ", parameters below " +
                     std::to_string(basis.parameters) + " and output components below " + std::to_string(dim) + ", got an entry outside");
            std::ranges::sort(components);
            std::vector<int> segments;
            CoefficientEntry sorted{{}, entry.value};
            for (int i : components) {
                segments.push_back(places[static_cast<std::size_t>(i)].segment);
                sorted.index.push_back(places[static_cast<std::size_t>(i)].component);
            }
            sorted.index.push_back(parameter);
            sorted.index.push_back(m);
            by_segments[segments].push_back(std::move(sorted));
        }
        const int weight = static_cast<int>(polynomial.operands[1].segments.size());
        polynomial.operands[1].segments.push_back({channels, basis.parameters, {}});
        for (auto& [segments, entries] : by_segments) {
            std::vector<int> shape;
            std::vector<Factor> factors;
            for (int segment : segments) {
                factors.push_back({0, segment, "u", static_cast<int>(shape.size())});
                shape.push_back(in[static_cast<std::size_t>(segment)].irrep.dim());
            }
            factors.push_back({1, weight, "u", nu});
            factors.push_back({2, k, "u", nu + 1});
            shape.push_back(basis.parameters);
            shape.push_back(dim);
            add_path(polynomial, std::move(factors), Coefficients::literal(std::move(shape), std::move(entries)), 1.0, {{'u', channels}});
        }
    }
    validate(polynomial);
    return polynomial;
}

}  // namespace clebsch
