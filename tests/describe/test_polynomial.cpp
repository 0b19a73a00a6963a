#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "describe/polynomial.hpp"
#include "describe/reference.hpp"
#include "describe/text.hpp"
#include "support/random_descriptions.hpp"

using namespace clebsch;

namespace {

template <class Action>
std::string error_of(Action&& action) {
    try {
        action();
    } catch (const Error& error) { return error.what(); }
    return "no error";
}

/// x (4x1o, gathered) times y (2x0e) to out (8x1o, scattered).
Polynomial example() {
    Polynomial polynomial;
    polynomial.rows = "edge";
    polynomial.indices = {{"sender", "edge", "node", false}, {"graph", "node", "graph", true}};
    polynomial.operands = {{"x", segments_of(Irreps("4x1o")), Layout::mul_ir, Role::input, row_of("sender")},
                           {"y", segments_of(Irreps("2x0e")), Layout::mul_ir, Role::input, each_row()},
                           {"out", segments_of(Irreps("8x1o")), Layout::ir_mul, Role::output, row_of({"sender", "graph"})}};
    Path path;
    path.factors = {{0, 0, "u", 0}, {1, 0, "v", -1}, {2, 0, "uv", 1}};
    path.coefficients = Coefficients::identity(3);
    path.extents = {{'u', 4}, {'v', 2}};
    polynomial.paths = {path};
    return polynomial;
}

template <class Change>
std::string error_with(Change&& change) {
    Polynomial polynomial = example();
    change(polynomial);
    return error_of([&] { validate(polynomial); });
}

/// What a polynomial means, the naive way: dense loops over letters and all coefficient entries, positions found by counting.
std::map<std::string, ReferenceArray> naive(const Polynomial& polynomial, const ReferenceInputs& inputs) {
    const auto rows_in = [&](const std::string& space) { return space.empty() ? 1 : inputs.rows.at(space); };
    std::map<std::string, ReferenceArray> outputs;
    for (const Operand& operand : polynomial.operands)
        if (operand.role == Role::output)
            outputs[operand.name].resize(static_cast<std::size_t>(rows_in(polynomial.space_of(operand)) * operand.size()));
    const auto row_of_operand = [&](const Operand& operand, std::int64_t row) -> std::int64_t {
        if (operand.rows.kind == Addressing::Kind::shared) return 0;
        for (const std::string& index : operand.rows.via) {
            if (row == -1) return -1;
            row = inputs.indices.at(index)[static_cast<std::size_t>(row)];
        }
        return row;
    };
    for (const Path& path : polynomial.paths) {
        std::map<char, std::int64_t> letters;
        for (const auto& [letter, extent] : path.extents) letters[letter] = 0;
        bool any = std::ranges::all_of(path.extents, [](const auto& extent) { return extent.second > 0; });
        // Position of the letters' values among all channels of a factor; -1 when a restriction of the factor fails.
        const auto channel = [&](const std::string& channels) -> std::int64_t {
            std::int64_t flat = 0;
            for (std::size_t i = 0; i < channels.size(); ++i) {
                if (channels[i] != '(') {
                    flat = flat * path.extent(channels[i]) + letters[channels[i]];
                    continue;
                }
                const std::int64_t n = path.extent(channels[i + 1]), u = letters[channels[i + 1]], v = letters[channels[i + 3]];
                if (u >= v) return -1;
                std::int64_t position = 0;  // count the pairs before (u, v) in the order of numpy.triu_indices(n, 1)
                for (std::int64_t a = 0; a < n; ++a)
                    for (std::int64_t b = a + 1; b < n; ++b) position += a < u || (a == u && b < v);
                flat = flat * (n * (n - 1) / 2) + position;
                i += 4;
            }
            return flat;
        };
        while (any) {
            std::vector<std::int64_t> channels;
            for (const Factor& factor : path.factors) channels.push_back(channel(factor.channels));
            for (std::int64_t row = 0; std::ranges::find(channels, -1) == channels.end() && row < rows_in(polynomial.rows); ++row) {
                for (const CoefficientEntry& entry : path.coefficients.entries()) {
                    long double product = static_cast<long double>(path.scale) * entry.value;
                    for (std::size_t f = 0; f < path.factors.size(); ++f) {
                        const Factor& factor = path.factors[f];
                        const Operand& operand = polynomial.operands[static_cast<std::size_t>(factor.operand)];
                        const Segment& segment = operand.segments[static_cast<std::size_t>(factor.segment)];
                        const std::int64_t operand_row = row_of_operand(operand, row);
                        if (operand_row == -1) break;
                        const std::int64_t component = factor.axis < 0 ? 0 : entry.index[static_cast<std::size_t>(factor.axis)];
                        const std::int64_t within = operand.layout == Layout::mul_ir ? channels[f] * segment.components + component
                                                                                     : component * segment.multiplicity + channels[f];
                        const auto at = static_cast<std::size_t>(operand_row * operand.size() + operand.offset(factor.segment) + within);
                        if (operand.role == Role::input) product *= inputs.arrays.at(operand.name)[at];
                        else if (std::ranges::all_of(path.factors, [&](const Factor& other) {
                                     return row_of_operand(polynomial.operands[static_cast<std::size_t>(other.operand)], row) != -1;
                                 }))
                            outputs[operand.name][at] += product;
                    }
                }
            }
            any = false;
            for (auto& [letter, value] : letters) {
                if (++value < path.extent(letter)) {
                    any = true;
                    break;
                }
                value = 0;
            }
        }
    }
    return outputs;
}

}  // namespace

TEST_CASE("the example is valid and answers about itself") {
    const Polynomial polynomial = example();
    CHECK_NOTHROW(validate(polynomial));
    CHECK(polynomial.operands[0].size() == 12);
    CHECK(polynomial.find_operand("y") == 1);
    CHECK(polynomial.find_index("graph") == 1);
    CHECK(polynomial.space_of(polynomial.operands[0]) == "node");
    CHECK(polynomial.space_of(polynomial.operands[1]) == "edge");
    CHECK(polynomial.space_of(polynomial.operands[2]) == "graph");
    CHECK(polynomial.is_sorted(polynomial.operands[1]));
    CHECK(!polynomial.is_sorted(polynomial.operands[2]));
    CHECK(irreps_of(polynomial.operands[0]) == Irreps("4x1o"));
    CHECK(!irreps_of({"plain", {{2, 3, std::nullopt}}, Layout::mul_ir, Role::input, each_row()}));
    CHECK(error_of([&] { polynomial.find_operand("z"); }) == "operand 'z' does not exist: there are 'x', 'y', 'out'");
    CHECK(error_of([&] { polynomial.find_index("receiver"); }) == "index 'receiver' does not exist: there are 'sender', 'graph'");
}

TEST_CASE("what is wrong with a polynomial is named") {
    const auto message = [](auto&& change, const std::string& expected) {
        const std::string error = error_with(change);
        INFO(error);
        CHECK(error.find(expected) != std::string::npos);
    };
    message([](Polynomial& p) { p.rows = "a b"; }, "row space 'a b': expected a name");
    message([](Polynomial& p) { p.indices[1].name = "sender"; }, "index 'sender': the name is used twice");
    message([](Polynomial& p) { p.indices[0].to = "9"; }, "index 'sender': space '9': expected a name");
    message([](Polynomial& p) { p.operands[1].name = "x"; }, "operand 'x': the name is used twice");
    message([](Polynomial& p) { p.operands[1].name = ""; }, "operand '': expected a name");
    message([](Polynomial& p) { p.operands[0].rows = row_of("receiver"); },
            "operand 'x': index 'receiver' is not among the polynomial's indices");
    message([](Polynomial& p) { p.operands[0].rows = row_of("graph"); },
            "operand 'x': index 'graph' expects rows of 'node', got rows of 'edge'");
    message(
        [](Polynomial& p) {
            p.operands[2].rows = row_of({"sender", "sender"});
        },
        "operand 'out': index 'sender' expects rows of 'edge', got rows of 'node'");
    message([](Polynomial& p) { p.operands[0].rows.via.clear(); }, "operand 'x': indexed without the name of an index");
    message([](Polynomial& p) { p.operands[1].rows.via = {"sender"}; },
            "operand 'y': only indexed operands go through indices, got 'sender'");
    message([](Polynomial& p) { p.operands[0].segments[0].multiplicity = -1; },
            "operand 'x', segment 0: expected a multiplicity of at least 0, got -1");
    message([](Polynomial& p) { p.operands[1].segments[0].components = 0; },
            "operand 'y', segment 0: expected at least 1 component, got 0");
    message([](Polynomial& p) { p.operands[0].segments[0].components = 5; }, "operand 'x', segment 0: irrep 1o has 3 components, got 5");
    message(
        [](Polynomial& p) {
            p.operands[0].segments.push_back({std::int64_t{1} << 62, 4, std::nullopt});
        },
        "operand 'x', segment 1: a row of more than 2^48");
    message([](Polynomial& p) { p.paths[0].factors.clear(); }, "path 0: expected an output factor, got no factors");
    message([](Polynomial& p) { p.paths[0].scale = NAN; }, "path 0: expected a finite scale");
    message([](Polynomial& p) { p.paths[0].factors[0].operand = 3; }, "path 0, factor 0: expected an operand number below 3, got 3");
    message([](Polynomial& p) { p.paths[0].factors[0].operand = -1; }, "path 0, factor 0: expected an operand number below 3, got -1");
    message([](Polynomial& p) { p.paths[0].factors[1].segment = 1; },
            "path 0, factor 1 (operand 'y', segment 1): the operand has 1 segments");
    message([](Polynomial& p) { p.paths[0].factors.pop_back(); },
            "path 0, factor 1 (operand 'y', segment 0): the last factor is to be an output");
    message([](Polynomial& p) { std::swap(p.paths[0].factors[1], p.paths[0].factors[2]); }, "only the last factor may be an output");
    message([](Polynomial& p) { p.paths[0].factors[1].channels = "w"; },
            "factor 1 (operand 'y', segment 0): letter 'w' of channels 'w' has no extent");
    message([](Polynomial& p) { p.paths[0].factors[1].channels = "v+"; }, "channels 'v+': expected a letter a-z at character 2, got '+'");
    message([](Polynomial& p) { p.paths[0].factors[1].channels = "(u<v"; }, "channels '(u<v': expected ')' at character 5, got the end");
    message([](Polynomial& p) { p.paths[0].factors[1].channels = "vv"; }, "expected a letter not used before");
    message([](Polynomial& p) { p.paths[0].extents[1].second = 3; },
            "path 0, factor 1 (operand 'y', segment 0): channels 'v' with v = 3 are 3, the segment has 2");
    message([](Polynomial& p) { p.paths[0].factors[1].channels = ""; }, "channels '' are 1, the segment has 2");
    message([](Polynomial& p) { p.paths[0].factors[2].channels = "(u<v)"; }, "the letters of (u<v) need equal extents, got 4 and 2");
    message([](Polynomial& p) { std::swap(p.paths[0].extents[0], p.paths[0].extents[1]); },
            "extents are to be sorted by letter without repeats, got 'u' after 'v'");
    message([](Polynomial& p) { p.paths[0].extents.push_back({'w', 2}); }, "path 0: letter 'w' has an extent but no factor uses it");
    message([](Polynomial& p) { p.paths[0].extents.push_back({'w', -2}); }, "letter 'w': expected an extent of at least 0, got -2");
    message(
        [](Polynomial& p) {
            p.paths[0].extents = {{'u', std::int64_t{1} << 40}, {'v', std::int64_t{1} << 40}};
        },
        "the product of all extents exceeds 2^63");
    message([](Polynomial& p) { p.paths[0].factors[1].axis = 1; }, "axis 1 of identity(3) has extent 3, the segment has 1 components");
    message([](Polynomial& p) { p.paths[0].factors[2].axis = 0; }, "axis 0 is already used by factor 0");
    message([](Polynomial& p) { p.paths[0].factors[2].axis = 2; }, "axis 2 does not exist, identity(3) has 2");
    message([](Polynomial& p) { p.paths[0].factors[0].axis = -1; },
            "factor 0 (operand 'x', segment 0): a factor without an axis needs a segment of one component, got 3");
    message(
        [](Polynomial& p) {
            p.operands[0].segments = {{4, 1, std::nullopt}};
            p.paths[0].factors[0].axis = -1;
        },
        "path 0: axis 0 of identity(3) belongs to no factor");
    message([](Polynomial& p) { p.paths[0].coefficients = Coefficients::identity(5); },
            "axis 0 of identity(5) has extent 5, the segment has 3 components");
}

TEST_CASE("channels: letters and restricted pairs, parsed and written") {
    CHECK(parse_channels("").empty());
    CHECK(parse_channels("u(v<w)x") == std::vector<ChannelGroup>{{'u', 0}, {'v', 'w'}, {'x', 0}});
    CHECK(to_text(parse_channels("u(v<w)x")) == "u(v<w)x");
    for (const char* wrong : {"U", "(u)", "(u<u)", "(u<v)u", "(u<v", "(", "u)", "u,v", "<"})
        CHECK(error_of([&] { parse_channels(wrong); }) != "no error");
    Path path;
    path.extents = {{'u', 5}, {'v', 5}, {'w', 3}};
    path.factors = {{0, 0, "(u<v)w", -1}, {1, 0, "u", -1}};
    CHECK(channel_count(path, path.factors[0]) == 30);
    CHECK(restrictions(path) == std::vector<ChannelGroup>{{'u', 'v'}});
}

TEST_CASE("the hash is FNV-1a with 128 bits: published values") {
    CHECK(to_text(hash_text("")) == "6c62272e07bb014262b821756295c58d");
    CHECK(to_text(hash_text("a")) == "d228cb696f1a8caf78912b704e4a8964");
    CHECK(to_text(hash_text("foobar")) == "343e1662793c64bf6f0d3597ba446f18");
}

TEST_CASE("reduced entries: one entry per monomial, the same polynomial in random numbers") {
    int reduced_somewhere = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        random::Engine engine(seed);
        const Polynomial polynomial = random::polynomial(engine);
        for (const Path& path : polynomial.paths) {
            INFO("seed ", seed, "\n", to_text(polynomial));
            // A number per (operand, segment, channels, component) stands for the factor's value.
            std::map<std::tuple<int, int, std::string, int>, double> values;
            const auto value = [&](const Factor& factor, int component) {
                const auto key = std::tuple(factor.operand, factor.segment, factor.channels, component);
                const auto found = values.find(key);
                return found != values.end() ? found->second : values[key] = std::normal_distribution<double>()(engine);
            };
            const std::size_t inputs = path.factors.size() - 1;
            std::map<int, double> expected, reduced;
            double size = 1e-300;
            for (const CoefficientEntry& entry : path.coefficients.entries()) {
                const auto component = [&](const Factor& factor) {
                    return factor.axis < 0 ? 0 : entry.index[static_cast<std::size_t>(factor.axis)];
                };
                double product = entry.value * path.scale;
                for (std::size_t f = 0; f < inputs; ++f) product *= value(path.factors[f], component(path.factors[f]));
                expected[component(path.output())] += product;
                size += std::abs(product);
            }
            const std::vector<CoefficientEntry> entries = reduced_entries(path);
            for (const CoefficientEntry& entry : entries) {
                REQUIRE(entry.index.size() == path.factors.size());
                double product = entry.value;
                for (std::size_t f = 0; f < inputs; ++f) {
                    product *= value(path.factors[f], entry.index[f]);
                    for (std::size_t g = f + 1; g < inputs; ++g) {
                        const Factor &a = path.factors[f], &b = path.factors[g];
                        const bool identical = a.operand == b.operand && a.segment == b.segment && a.channels == b.channels;
                        if (identical) CHECK(entry.index[f] <= entry.index[g]);
                    }
                }
                reduced[entry.index.back()] += product;
            }
            reduced_somewhere += entries.size() < path.coefficients.entries().size();
            for (std::size_t i = 1; i < entries.size(); ++i) CHECK(entries[i - 1].index < entries[i].index);
            for (const auto& [component, number] : expected) CHECK(std::abs(reduced[component] - number) <= 1e-14 * size);
        }
    }
    CHECK(reduced_somewhere > 30);
}

TEST_CASE("the reference equals dense loops over letters, rows and all coefficients on random polynomials") {
    random::Limits limits;
    limits.path_work = 1500;
    limits.work = 20'000;
    limits.rows = 12;
    int nonzero = 0;
    for (std::uint64_t seed = 0; seed < 250; ++seed) {
        random::Engine engine(seed);
        const Polynomial polynomial = random::polynomial(engine, limits);
        const ReferenceInputs inputs = random::inputs(engine, polynomial, limits);
        INFO("seed ", seed, "\n", to_text(polynomial));
        const auto expected = naive(polynomial, inputs), computed = evaluate(polynomial, inputs);
        REQUIRE(computed.size() == expected.size());
        for (const auto& [name, array] : expected) {
            long double size = 0, difference = 0;
            REQUIRE(computed.at(name).size() == array.size());
            for (std::size_t i = 0; i < array.size(); ++i) {
                size = std::max(size, std::fabs(array[i]));
                difference = std::max(difference, std::fabs(array[i] - computed.at(name)[i]));
            }
            nonzero += size > 0;
            CHECK(difference <= 1e-15L * size);  // sums over identical factors are rounded to double
        }
    }
    CHECK(nonzero > 250);
}
