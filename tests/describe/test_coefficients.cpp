#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <random>

#include "algebra/harmonics.hpp"
#include "algebra/rotation.hpp"
#include "algebra/wigner.hpp"
#include "base/error.hpp"
#include "describe/coefficients.hpp"
#include "describe/symmetric.hpp"

using namespace clebsch;

namespace {

using Entries = std::vector<CoefficientEntry>;

constexpr Irrep scalar{0, Parity::even}, vector_{1, Parity::odd}, tensor{2, Parity::even}, octupole{3, Parity::odd};

/// What `grouped` promises, from all entries.
Entries grouped_from_entries(const Coefficients& coefficients, const std::vector<int>& group) {
    std::map<std::vector<int>, double> sums;
    for (const CoefficientEntry& entry : coefficients.entries()) {
        std::vector<int> index = entry.index;
        for (std::size_t a = 0; a < index.size(); ++a)
            for (std::size_t b = a + 1; b < index.size(); ++b)
                if (group[a] >= 0 && group[a] == group[b] && index[b] < index[a]) std::swap(index[a], index[b]);
        sums[index] += entry.value;
    }
    Entries result;
    for (const auto& [index, value] : sums)
        if (std::abs(value) > 1e-14) result.push_back({index, value});
    return result;
}

double largest_difference(const Entries& a, const Entries& b) {
    std::map<std::vector<int>, double> difference;
    for (const CoefficientEntry& entry : a) difference[entry.index] += entry.value;
    for (const CoefficientEntry& entry : b) difference[entry.index] -= entry.value;
    double largest = 0;
    for (const auto& [index, value] : difference) largest = std::max(largest, std::abs(value));
    return largest;
}

template <class Make>
std::string error_of(Make&& make) {
    try {
        make();
    } catch (const Error& error) { return error.what(); }
    return "no error";
}

/// Times `output` appears in the product of symmetric powers, by counting weights: multisets of components of total weight M, for M = l and
/// l + 1.
std::size_t multiplicity(const std::vector<Irrep>& inputs, int degree) {
    std::map<int, std::size_t> count;
    std::vector<int> components(inputs.size());
    const auto visit = [&](auto&& self, std::size_t axis, int weight) -> void {
        if (axis == inputs.size()) {
            ++count[weight];
            return;
        }
        const int first = axis > 0 && inputs[axis] == inputs[axis - 1] ? components[axis - 1] : 0;
        for (int c = first; c < inputs[axis].dim(); ++c) {
            components[axis] = c;
            self(self, axis + 1, weight + c - inputs[axis].degree);
        }
    };
    visit(visit, 0, 0);
    return count[degree] - count[degree + 1];
}

std::vector<std::vector<Irrep>> sorted_lists(const std::vector<Irrep>& irreps, std::size_t length) {
    std::vector<std::vector<Irrep>> lists = {{}};
    for (std::size_t i = 0; i < length; ++i) {
        std::vector<std::vector<Irrep>> longer;
        for (const auto& list : lists)
            for (const Irrep& irrep : irreps)
                if (list.empty() || list.back() <= irrep) {
                    longer.push_back(list);
                    longer.back().push_back(irrep);
                }
        lists = std::move(longer);
    }
    return lists;
}

Irrep irrep_of(const std::vector<Irrep>& inputs, int degree) {
    int parity = 1;
    for (const Irrep& irrep : inputs) parity *= static_cast<int>(irrep.parity);
    return {degree, static_cast<Parity>(parity)};
}

}  // namespace

TEST_CASE("named tensors have the entries their names say") {
    CHECK(Coefficients().to_text() == "one");
    CHECK(Coefficients().entries() == Entries{{{}, 1.0}});
    CHECK(Coefficients::identity(3).entries() == Entries{{{0, 0}, 1.0}, {{1, 1}, 1.0}, {{2, 2}, 1.0}});
    for (const bool old_signs : {false, true}) {
        const Coefficients cg = Coefficients::cg(vector_, tensor, octupole, old_signs);
        CHECK(cg.to_text() == (old_signs ? "cg04(1o,2e,3o)" : "cg(1o,2e,3o)"));
        CHECK(cg.shape() == std::vector<int>{3, 5, 7});
        Entries expected;
        for (const CouplingEntry& e : wigner_3j(1, 2, 3, old_signs ? SignTable::e3nn_0_4 : SignTable::e3nn_0_5))
            expected.push_back({{e.i, e.j, e.k}, e.value});
        CHECK(cg.entries() == expected);
        CHECK(cg == Coefficients::named(cg.to_text()));
    }
    CHECK(Coefficients::named(" cg( 1o , 1o,2e ) ") == Coefficients::cg(vector_, vector_, tensor));
    CHECK(Coefficients::named("cg(1,1,2)").to_text() == "cg(1,1,2)");
    CHECK(!(Coefficients::cg(vector_, vector_, tensor) == Coefficients::cg(vector_, vector_, scalar)));
}

TEST_CASE("literals are sorted, merged, without zeros, and compare by value") {
    const Coefficients a =
        Coefficients::literal({2, 3}, {{{1, 2}, 0.5}, {{0, 1}, 2.0}, {{1, 2}, -1.5}, {{1, 0}, 3.0}, {{1, 0}, -3.0}, {{0, 0}, 0.0}});
    CHECK(a.to_text() == "{2,3; 0,1: 2; 1,2: -1}");
    CHECK(a == Coefficients::literal({2, 3}, {{{1, 2}, -1.0}, {{0, 1}, 2.0}}));
    CHECK(!(a == Coefficients::literal({2, 4}, {{{1, 2}, -1.0}, {{0, 1}, 2.0}})));
    CHECK(Coefficients::literal({2}, {}).to_text() == "{2}");
    CHECK(error_of([] { Coefficients::literal({2, 0}, {}); }).find("expected extents of at least 1") != std::string::npos);
    CHECK(error_of([] {
              Coefficients::literal({2, 3}, {{{1, 3}, 1.0}});
          }) == "coefficients of shape (2,3), entry (1,3): index 3 is outside [0, 3)");
    CHECK(error_of([] { Coefficients::literal({2, 3}, {{{1}, 1.0}}); }).find("expected 2 indices, got 1") != std::string::npos);
    CHECK(error_of([] { Coefficients::literal({2}, {{{1}, NAN}}); }).find("finite") != std::string::npos);
}

TEST_CASE("what is wrong with a name is said") {
    for (const auto& [given_call, problem] :
         std::vector<std::pair<const char*, const char*>>{{"two", "expected one, identity(n), cg"},
                                                          {"", "expected one, identity(n), cg"},
                                                          {"one(1)", "expected no arguments"},
                                                          {"identity(0)", "at least one component"},
                                                          {"identity(70000)", "expected a whole number from 0 to 65536, got '70000'"},
                                                          {"identity(99999999999999999999)", "expected a whole number"},
                                                          {"identity(2", "expected ')' at the end"},
                                                          {"cg(1o,1o)", "expected three irreps"},
                                                          {"cg(1o,1o,2q)", "2q"},
                                                          {"cg(1o,1o,3e)", "3e does not appear in 1o x 1o"},
                                                          {"cg(1o,1o,2o)", "2o does not appear in 1o x 1o"},
                                                          {"cg(1o,1,2)", "O(3) or of SO(3)"},
                                                          {"harmonic(13)", "from 0 to 12, got '13'"},
                                                          {"harmonic(-1)", "got '-1'"},
                                                          {"symmetric(1o,1o;2e)", "irreps; an irrep; a number"},
                                                          {"symmetric(2e,1o;1o;0)", "non-decreasing"},
                                                          {"symmetric(1o,1o;1e;0)", "there are 0 symmetric couplings"},
                                                          {"symmetric(1o,1o;2e;1)", "there are 1 symmetric couplings, got number 1"},
                                                          {"symmetric(12o,12o,12o;12o;0)", "exceeds 12"},
                                                          {"symmetric(12e,12e,12e,12e,12e,12e;0e;0)", "not supported"}}) {
        const auto& call = given_call;
        const std::string error = error_of([&, text = call] { Coefficients::named(text); });
        INFO(call, ": ", error);
        CHECK(error.find(problem) != std::string::npos);
    }
}

TEST_CASE("grouped adds up all exchanges of axes of a group, whatever the tensor's own symmetry") {
    std::mt19937_64 engine(11);
    std::vector<Coefficients> tensors = {Coefficients::cg(vector_, vector_, tensor),
                                         Coefficients::cg(tensor, tensor, tensor),
                                         Coefficients::identity(4),
                                         Coefficients::cg(vector_, vector_, {1, Parity::even}),
                                         Coefficients::named("symmetric(1o,1o,1o,2e;2o;0)"),
                                         Coefficients::named("symmetric(0e,1o,1o;2e;0)"),
                                         Coefficients::named("symmetric(1o,1o;0e;0)")};
    for (int l = 0; l <= 6; ++l) tensors.push_back(Coefficients::harmonic(l));
    Entries random;
    for (int i = 0; i < 27; ++i) random.push_back({{i / 9, i / 3 % 3, i % 3}, std::normal_distribution<double>()(engine)});
    tensors.push_back(Coefficients::literal({3, 3, 3}, random));
    int checked = 0;
    for (const Coefficients& coefficients : tensors)
        for (int trial = 0; trial < 20; ++trial) {
            std::vector<int> group(coefficients.rank());
            for (std::size_t a = 0; a < group.size(); ++a) {
                group[a] = std::uniform_int_distribution<int>(-1, 2)(engine);
                for (std::size_t b = 0; b < a; ++b)
                    if (group[b] == group[a] && coefficients.shape()[a] != coefficients.shape()[b]) group[a] = -1;
            }
            const Entries entries = coefficients.grouped(group);
            std::string labels;
            for (const int label : group) labels += std::to_string(label) + " ";
            INFO(coefficients.to_text(), " grouped by ", labels);
            CHECK(std::ranges::is_sorted(entries, {}, &CoefficientEntry::index));
            CHECK(largest_difference(entries, grouped_from_entries(coefficients, group)) < 1e-13);
            ++checked;
        }
    CHECK(checked == 300);
}

TEST_CASE("harmonic(l) never writes out 3^l entries to be evaluated on one vector") {
    std::vector<int> group(13, 0);
    group.back() = -1;
    const Entries entries = Coefficients::harmonic(12).grouped(group);
    CHECK(entries.size() == harmonic_monomials(12).size());
    group[0] = -1;  // a tangent in the first place
    const Entries derivative = Coefficients::harmonic(12).grouped(group);
    CHECK(derivative.size() < 3 * entries.size());
}

TEST_CASE("symmetric_in knows exchanges that leave a tensor unchanged") {
    CHECK(Coefficients::cg(tensor, tensor, tensor).symmetric_in(0, 1));
    CHECK(!Coefficients::cg(vector_, vector_, {1, Parity::even}).symmetric_in(0, 1));
    CHECK(!Coefficients::cg(vector_, tensor, vector_).symmetric_in(0, 1));
    CHECK(Coefficients::cg(vector_, tensor, vector_).symmetric_in(0, 2));
    CHECK(Coefficients::harmonic(5).symmetric_in(1, 4));
    CHECK(!Coefficients::harmonic(5).symmetric_in(1, 5));
    CHECK(Coefficients::identity(7).symmetric_in(0, 1));
    CHECK(Coefficients::named("symmetric(1o,1o,2e;0e;0)").symmetric_in(0, 1));
}

TEST_CASE("symmetric couplings: as many as weights say, orthonormal, equal under exchanges, equivariant") {
    std::mt19937_64 engine(5);
    std::normal_distribution<double> normal;
    const Matrix3 rotation = rotation_matrix(Quaternion{0.3, -0.7, 0.2, 0.9});
    std::vector<std::vector<Irrep>> lists;
    for (std::size_t length = 1; length <= 4; ++length)
        for (auto& list : sorted_lists({scalar, vector_, {1, Parity::even}, tensor, octupole}, length))
            if (length < 4 || list.back().degree < 3) lists.push_back(std::move(list));
    lists.push_back({octupole, octupole, octupole, octupole});
    lists.push_back({vector_, vector_, vector_, vector_, vector_, vector_});
    std::size_t bases = 0;
    for (const std::vector<Irrep>& inputs : lists)
        for (int degree = 0; degree <= 3; ++degree) {
            const Irrep output = irrep_of(inputs, degree);
            const auto basis = symmetric_couplings(inputs, output);
            INFO("symmetric(", symmetric_text(inputs, output), ")");
            REQUIRE(basis->size() == multiplicity(inputs, degree));
            if (basis->empty()) continue;
            ++bases;
            std::vector<Entries> tensors;
            for (std::size_t r = 0; r < basis->size(); ++r) {
                const Coefficients coefficients =
                    Coefficients::named("symmetric(" + symmetric_text(inputs, output) + ";" + std::to_string(r) + ")");
                tensors.push_back(coefficients.entries());
                for (std::size_t a = 0; a + 1 < inputs.size(); ++a)
                    if (inputs[a] == inputs[a + 1]) CHECK(coefficients.symmetric_in(static_cast<int>(a), static_cast<int>(a) + 1));
            }
            // Gram matrix over inputs for every pair of output components
            const auto width = static_cast<std::size_t>(output.dim());
            double gram_error = 0;
            for (std::size_t r = 0; r < tensors.size(); ++r)
                for (std::size_t s = 0; s <= r; ++s) {
                    std::map<std::vector<int>, std::vector<double>> rows;
                    for (const CoefficientEntry& e : tensors[s]) {
                        auto& row = rows[std::vector<int>(e.index.begin(), e.index.end() - 1)];
                        row.resize(width);
                        row[static_cast<std::size_t>(e.index.back())] = e.value;
                    }
                    std::vector<double> gram(width * width, 0.0);
                    for (const CoefficientEntry& e : tensors[r]) {
                        const auto row = rows.find(std::vector<int>(e.index.begin(), e.index.end() - 1));
                        if (row == rows.end()) continue;
                        for (std::size_t n = 0; n < width; ++n)
                            gram[static_cast<std::size_t>(e.index.back()) * width + n] += e.value * row->second[n];
                    }
                    for (std::size_t m = 0; m < width; ++m)
                        for (std::size_t n = 0; n < width; ++n)
                            gram_error = std::max(gram_error, std::abs(gram[m * width + n] - (r == s && m == n ? 1.0 : 0.0)));
                }
            CHECK(gram_error < 1e-12);
            // T(D x, D y, ...) = D T(x, y, ...)
            std::vector<std::vector<double>> x, turned;
            for (const Irrep& irrep : inputs) {
                std::vector<double> v(static_cast<std::size_t>(irrep.dim())), w(v.size(), 0.0);
                for (double& number : v) number = normal(engine);
                const std::vector<double> d = wigner_d(irrep, rotation);
                for (std::size_t i = 0; i < v.size(); ++i)
                    for (std::size_t j = 0; j < v.size(); ++j) w[i] += d[i * v.size() + j] * v[j];
                x.push_back(v);
                turned.push_back(w);
            }
            const auto apply = [&](const Entries& entries, const std::vector<std::vector<double>>& arguments) {
                std::vector<double> result(width, 0.0);
                for (const CoefficientEntry& e : entries) {
                    double product = e.value;
                    for (std::size_t a = 0; a < arguments.size(); ++a) product *= arguments[a][static_cast<std::size_t>(e.index[a])];
                    result[static_cast<std::size_t>(e.index.back())] += product;
                }
                return result;
            };
            const std::vector<double> d = wigner_d(output, rotation);
            for (const Entries& entries : tensors) {
                const std::vector<double> before = apply(entries, x), after = apply(entries, turned);
                for (std::size_t m = 0; m < width; ++m) {
                    double expected = 0;
                    for (std::size_t n = 0; n < width; ++n) expected += d[m * width + n] * before[n];
                    CHECK(std::abs(after[m] - expected) < 1e-12);
                }
            }
        }
    CHECK(bases > 200);
}

TEST_CASE("symmetric couplings are quick: correlation 3 over 0e+1o+2e+3o in milliseconds, correlation 4 well under a second") {
    // SO(3) irreps: no other test asks for them, so nothing is in memory yet but the pair couplings.
    const std::vector<Irrep> irreps = {{0, Parity::none}, {1, Parity::none}, {2, Parity::none}, {3, Parity::none}};
    for (std::size_t correlation = 1; correlation <= 4; ++correlation) {
        const auto start = std::chrono::steady_clock::now();
        std::size_t count = 0;
        for (const auto& list : sorted_lists(irreps, correlation))
            for (const int degree : {0, 1}) count += symmetric_couplings(list, {degree, Parity::none})->size();
        const double milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        MESSAGE("correlation ", correlation, ": ", count, " couplings in ", milliseconds, " ms");
        CHECK(milliseconds < 5000);  // sanitizer builds, busy machines
    }
}
