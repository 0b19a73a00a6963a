// Rewrites that keep the meaning: against the reference evaluator on random descriptions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "derivative_support.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/products.hpp"
#include "describe/rewrites.hpp"
#include "describe/text.hpp"

using namespace clebsch;
using namespace clebsch::derivative_testing;

namespace {

using Arrays = std::map<std::string, ReferenceArray>;

void check_equal(const Arrays& expected, const Arrays& got) {
    REQUIRE(expected.size() == got.size());
    for (const auto& [name, array] : expected) {
        long double error = 0, size = 0;
        for (std::size_t i = 0; i < array.size(); ++i) {
            error = std::max(error, std::fabs(array[i] - got.at(name)[i]));
            size = std::max(size, std::fabs(array[i]));
        }
        const std::string& output = name;
        INFO("output ", output);
        CHECK(error <= 1e-14L * (1 + size));
    }
}

template <class Before, class After>
void check_meaning(const Before& before, const After& after, std::uint64_t seed) {
    Source source(seed);
    ReferenceInputs call = random_graph(source);
    call.rows["row"] = 3;
    fill(call, before, source);
    INFO("seed ", seed, "\n", to_text(before), "\nbecame\n", to_text(after));
    validate(after);
    check_equal(evaluate(before, call), evaluate(after, call));
}

/// Number `component` of channel `channel` of a segment, in the operand's row.
std::int64_t position(const Operand& operand, int segment, std::int64_t channel, int component) {
    const Segment& shape = operand.segments[static_cast<std::size_t>(segment)];
    const std::int64_t inside =
        operand.layout == Layout::mul_ir ? channel * shape.components + component : component * shape.multiplicity + channel;
    return operand.offset(segment) + inside;
}

/// Applies `move(position in the whole, position in the block)` to every number of a block's operand, row by row.
template <class Move>
void for_each_number(const Operand& whole, const Operand& part, const std::vector<SegmentPart>& parts, std::int64_t rows, Move&& move) {
    for (std::int64_t row = 0; row < rows; ++row)
        for (std::size_t s = 0; s < parts.size(); ++s)
            for (std::int64_t channel = 0; channel < part.segments[s].multiplicity; ++channel)
                for (int component = 0; component < part.segments[s].components; ++component)
                    move(static_cast<std::size_t>(row * whole.size() +
                                                  position(whole, parts[s].segment, parts[s].first_channel + channel, component)),
                         static_cast<std::size_t>(row * part.size() + position(part, static_cast<int>(s), channel, component)));
}

void check_blocks(const Polynomial& polynomial, const std::vector<ChannelBlock>& blocks, std::uint64_t seed) {
    Source source(seed);
    ReferenceInputs call = random_graph(source);
    fill(call, polynomial, source);
    const Arrays expected = evaluate(polynomial, call);
    Arrays sum;
    for (const auto& [name, array] : expected) sum[name].assign(array.size(), 0);
    for (const ChannelBlock& block : blocks) {
        INFO("seed ", seed, ", channels ", block.begin, " to ", block.end, "\n", to_text(block.polynomial));
        validate(block.polynomial);
        ReferenceInputs block_call = call;
        block_call.arrays.clear();
        auto each_operand = [&](Role role, auto&& visit) {
            for (std::size_t i = 0; i < block.operands.size(); ++i) {
                const Operand &part = block.polynomial.operands[i],
                              &whole = polynomial.operands[static_cast<std::size_t>(block.operands[i])];
                if (part.role != role) continue;
                const std::string space = polynomial.space_of(whole);
                visit(whole, part, block.segments[i], space.empty() ? 1 : call.rows.at(space));
            }
        };
        each_operand(Role::input, [&](const Operand& whole, const Operand& part, const std::vector<SegmentPart>& parts, std::int64_t rows) {
            ReferenceArray& array = block_call.arrays[part.name];
            array.resize(static_cast<std::size_t>(rows * part.size()));
            for_each_number(whole, part, parts, rows,
                            [&](std::size_t from, std::size_t to) { array[to] = call.arrays.at(whole.name)[from]; });
        });
        const Arrays result = evaluate(block.polynomial, block_call);
        each_operand(Role::output,
                     [&](const Operand& whole, const Operand& part, const std::vector<SegmentPart>& parts, std::int64_t rows) {
                         for_each_number(whole, part, parts, rows,
                                         [&](std::size_t to, std::size_t from) { sum.at(whole.name)[to] += result.at(part.name)[from]; });
                     });
    }
    check_equal(expected, sum);
}

}  // namespace

TEST_CASE("operands in another order, and without unused ones, mean the same") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        Source source(seed);
        const Polynomial polynomial = random_polynomial(source);
        std::vector<int> order;
        for (std::size_t i = polynomial.operands.size(); i > 0; --i) order.push_back(static_cast<int>(i) - 1);
        const Polynomial reversed = permuted(polynomial, order);
        CHECK(reversed.operands.front().name == polynomial.operands.back().name);
        check_meaning(polynomial, reversed, seed);
        CHECK(permuted(reversed, order) == polynomial);
        const OperandSelection selection = drop_unused(polynomial);
        check_meaning(polynomial, selection.polynomial, seed);
        CHECK(drop_unused(selection.polynomial).polynomial == selection.polynomial);
    }
    const Polynomial polynomial = convolution("2x0e", "0e", "0e");
    CHECK_THROWS_WITH_AS(permuted(polynomial, std::vector<int>{0, 1, 1, 2}), doctest::Contains("each of the numbers"), Error);
    CHECK_THROWS_WITH_AS(permuted(polynomial, std::vector<int>{0, 1}), doctest::Contains("each of the numbers"), Error);
}

TEST_CASE("blocks of channels add up to the polynomial, and every path of a block reaches all of its channels") {
    const Irreps unequal("7x0e+4x1o+2x2e+1x1e");
    for (const Layout layout : {Layout::mul_ir, Layout::ir_mul}) {
        ConvolutionOptions options;
        options.x.layout = options.out.layout = layout;
        const Polynomial forward = convolution(unequal, "0e+1o+2e", unequal, options);
        const Polynomial gradient = vjp(forward, Names{"x", "y", "weights"});
        for (const Polynomial& polynomial : {forward, gradient}) {
            const std::vector<ChannelBlock> blocks = split_by_channels(polynomial);
            REQUIRE(blocks.size() == 4);  // [0, 1) holds 1x1e, too: it has no letter, so it is the last block
            CHECK(blocks[0].begin == 0);
            CHECK(blocks[0].end == 2);
            CHECK(blocks[1].end == 4);
            CHECK(blocks[2].end == 7);
            CHECK(blocks[3].end == 0);
            for (const ChannelBlock& block : blocks)
                for (const Path& path : block.polynomial.paths)
                    for (const auto& extent : path.extents) CHECK(extent.second == block.end - block.begin);
            check_blocks(polynomial, blocks, 3);
        }
    }
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        Source source(seed);
        const Polynomial polynomial = random_polynomial(source);
        check_blocks(polynomial, split_by_channels(polynomial), seed);
    }
}

TEST_CASE("a fully connected product with one edge channel splits into products per channel and a linear map, and back to the same names") {
    const Irreps in("8x0e+8x1o"), edge("0e+1o+2e");
    for (const bool shared : {true, false}) {
        TensorProductOptions options;
        options.weights.rows = shared ? shared_row() : each_row();
        const Polynomial whole = tensor_product(fully_connected(in, edge, "8x0e+8x1o+8x2e"), options);
        const Program split = split_mixing(whole);
        REQUIRE(split.nodes.size() == 2);
        check_meaning(whole, split, 5);
        const Polynomial& maps = std::get<PolynomialNode>(split.nodes[1]).polynomial;
        const auto left = std::ranges::count_if(maps.paths, [](const Path& path) { return path.factors.size() == 4u; });
        CHECK(left == 4);  // 0e x 1o and the like have as many terms as output components: nothing to gain
        CHECK(to_text(simplified(as_polynomial(split))) == to_text(simplified(whole)));
        check_meaning(vjp(as_program(whole), Names{"x", "y", "weights"}), vjp(split, Names{"x", "y", "weights"}), 7);
    }
}

TEST_CASE("where both inputs of a fully connected product have channels, products of their channels come before the linear map") {
    const Polynomial whole = tensor_product(fully_connected("4x0e+3x1o", "2x0e+3x1o", "5x0e+2x1o"));
    CHECK(split_mixing(whole).nodes.size() == 2);
    const Program split = split_mixing(whole, 0);
    REQUIRE(split.nodes.size() == 2);
    for (const Path& path : std::get<PolynomialNode>(split.nodes[1]).polynomial.paths) CHECK(path.factors.size() == 3);
    check_meaning(whole, split, 5);
    for (const char* name : {"x", "y", "weights"}) {
        const Polynomial gradient = as_polynomial(vjp(as_program(whole), Names{name}));
        const Program in_steps = split_mixing(gradient, 0);
        // W[u,v,w] g[w] y[v]: v and w lie together. u and w do not: W meets x first. Weights: products of two inputs, times the third.
        REQUIRE(in_steps.nodes.size() == 2);
        for (const Node& node : in_steps.nodes)
            for (const Path& path : std::get<PolynomialNode>(node).polynomial.paths) CHECK(path.factors.size() == 3);
        check_meaning(gradient, in_steps, 6);
    }
}

TEST_CASE("what gains nothing stays: linear maps, products without mixing, too little to gain") {
    const Polynomial map = linear("8x0e+8x1o", "8x0e+8x1o");
    CHECK(split_mixing(map).nodes.size() == 1);
    CHECK(split_mixing(convolution("4x1o", "1o", "0e")).nodes.size() == 1);
    const Polynomial product = tensor_product(fully_connected("8x1o", "1o", "8x0e"));
    CHECK(split_mixing(product).nodes.size() == 2);
    CHECK(split_mixing(product, 4.0).nodes.size() == 1);  // 3 * 8 * 8 in one step, 3 * 8 + 8 * 8 in two: 2.2
}

TEST_CASE("powers, transposed matrices, gathers, sums and masks split alike; equal products are made once") {
    Polynomial polynomial;
    polynomial.rows = "edge";
    polynomial.indices = {{"sender", "edge", "node", false}, {"receiver", "edge", "node", true}};
    polynomial.operands = {{"x", {{5, 3, {}}}, Layout::ir_mul, Role::input, row_of("sender")},
                           {"y", {{1, 3, {}}, {1, 1, {}}}, Layout::mul_ir, Role::input, each_row()},
                           {"matrix", {{20, 1, {}}}, Layout::mul_ir, Role::input, row_of("receiver")},
                           {"products", {{4, 3, {}}, {4, 3, {}}}, Layout::mul_ir, Role::output, row_of("receiver")}};
    std::vector<CoefficientEntry> entries;
    Source source(1);
    for (int i = 0; i < 27; ++i) entries.push_back({{i / 9, i / 3 % 3, i % 3, (i + i / 3) % 3}, source.normal()});
    const Coefficients coupling = Coefficients::literal({3, 3, 3, 3}, entries);
    const std::vector<std::pair<char, std::int64_t>> extents = {{'a', 5}, {'z', 4}};
    polynomial.paths = {{{{0, 0, "a", 0}, {2, 0, "za", -1}, {0, 0, "a", 2}, {1, 0, "", 1}, {3, 0, "z", 3}}, coupling, 0.5, extents},
                        {{{0, 0, "a", 0}, {2, 0, "az", -1}, {0, 0, "a", 2}, {1, 0, "", 1}, {3, 1, "z", 3}}, coupling, -2, extents}};
    const Program split = split_mixing(polynomial);
    REQUIRE(split.nodes.size() == 2);
    CHECK(std::get<PolynomialNode>(split.nodes[0]).polynomial.paths.size() == 1);
    CHECK(split.values.back().name == "products_");
    for (std::uint64_t seed = 1; seed <= 10; ++seed) check_meaning(polynomial, split, seed);
    for (std::uint64_t seed = 1; seed <= 10; ++seed) check_meaning(polynomial, as_polynomial(split), seed);
    check_meaning(vjp(as_program(polynomial), Names{"x", "matrix"}), vjp(split, Names{"x", "matrix"}), 11);
}

TEST_CASE("programs of polynomials over the same rows are polynomials") {
    int done = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Source source(seed);
        const Program program = random_chain(source);
        Polynomial polynomial;
        try {
            polynomial = as_polynomial(program);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::unsupported);
            continue;
        }
        ++done;
        check_meaning(program, polynomial, seed);
    }
    MESSAGE(done, " of 200 programs became polynomials");
    CHECK(done > 120);
}

TEST_CASE("programs that are no polynomial say why") {
    Program program = as_program(convolution("4x0e", "0e", "0e"));
    program.nodes.push_back(FunctionNode{{FunctionKind::silu}, 0, 3});
    CHECK_THROWS_WITH_AS(as_polynomial(program), doctest::Contains("silu"), Error);
    CHECK_THROWS_WITH_AS(as_polynomial(Program{}), doctest::Contains("no node"), Error);
}
