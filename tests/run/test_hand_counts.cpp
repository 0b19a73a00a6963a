// What `explain` predicts limits from, multiply-adds and bytes, against counts made by hand for the problems whose speed is promised.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "describe/derivative.hpp"
#include "describe/operations/named_problems.hpp"
#include "run/program_plan.hpp"

using namespace clebsch;

namespace {

/// `rows`: of every space of the description.
Work work_of(const Description& description, const std::map<std::string, std::int64_t>& rows) {
    return std::visit(
        [&](const auto& value) {
            using Plan = std::conditional_t<std::is_same_v<std::decay_t<decltype(value)>, Polynomial>, PolynomialPlan, ProgramPlan>;
            const Plan plan(value);
            std::vector<std::int64_t> counts;
            for (const std::string& space : plan.spaces()) counts.push_back(rows.at(space));
            return plan.work(counts);
        },
        description);
}

/// The first derivatives to all inputs.
Description gradients(const char* label, const std::vector<std::string>& inputs) {
    return std::visit([&](const auto& value) -> Description { return vjp(value, inputs); }, named_problem(label));
}

/// Non-zero entries of the real 3j symbol: m3 is |m1| + |m2| or their difference in size, and the number of sines (negative m) has the
/// parity of l1 + l2 + l3, for products of sines and cosines give only these.
/// Two exceptions up to l = 3. With two equal degrees and an odd sum the symbol is antisymmetric in them, and of the products of equal |m|
/// = a those that give 2 a are symmetric: four entries an a. And (3, 3, 2) vanishes at m, -m, 0 with 3 m^2 = 3 (3 + 1).
int nonzeros(int l1, int l2, int l3) {
    int count = 0;
    for (int a = -l1; a <= l1; ++a)
        for (int b = -l2; b <= l2; ++b)
            for (int c = -l3; c <= l3; ++c) {
                const int m1 = std::abs(a), m2 = std::abs(b), m3 = std::abs(c);
                const bool couples = m3 == m1 + m2 || m3 == std::abs(m1 - m2);
                if (couples && ((a < 0) + (b < 0) + (c < 0) + l1 + l2 + l3) % 2 == 0) ++count;
            }
    for (const auto& [one, other, third] : {std::tuple{l1, l2, l3}, {l1, l3, l2}, {l2, l3, l1}}) {
        if (one != other) continue;
        if ((l1 + l2 + l3) % 2 != 0) count -= 4 * std::min(one, third / 2);
        if (one == 3 && third == 2) count -= 2;
    }
    return count;
}

struct Block {
    int channels, degree, parity;
};
struct Convolution {
    const char* label;
    std::vector<Block> in, edge;
    bool both_parities;  ///< of the output; else natural ones, or even ones if all of `in` are
    int out_degree;
    std::size_t paths;
};

/// Paths in1 x edge -> out by hand: every coupling whose irrep the output's filter has.
std::vector<std::array<int, 4>> paths_of(const Convolution& problem) {
    std::vector<std::array<int, 4>> paths;  // channels, l1, l2, l3
    for (const Block& in : problem.in)
        for (const Block& edge : problem.edge)
            for (int l3 = std::abs(in.degree - edge.degree); l3 <= std::min(in.degree + edge.degree, problem.out_degree); ++l3) {
                const bool even = std::ranges::all_of(problem.in, [](const Block& block) { return block.parity == 1; });
                const int wanted = even || l3 % 2 == 0 ? 1 : -1;
                if (problem.both_parities || in.parity * edge.parity == wanted) paths.push_back({in.channels, in.degree, edge.degree, l3});
            }
    return paths;
}

constexpr double edges = 18'000, nodes = 400;
const std::map<std::string, std::int64_t> graph = {{"edge", 18'000}, {"node", 400}};

double numbers(const std::vector<Block>& blocks) {
    double count = 0;
    for (const Block& block : blocks) count += block.channels * (2 * block.degree + 1);
    return count;
}

}  // namespace

TEST_CASE("convolutions: multiply-adds and bytes of a call are those counted by hand") {
    const std::vector<Block> natural = {{1, 0, 1}, {1, 1, -1}, {1, 2, 1}, {1, 3, -1}}, even = {{1, 0, 1}, {1, 1, 1}, {1, 2, 1}, {1, 3, 1}};
    const std::vector<Convolution> problems = {
        {"mace-large", {{128, 0, 1}, {128, 1, -1}, {128, 2, 1}}, natural, false, 3, 17},
        {"nequix-main", {{128, 0, 1}, {64, 1, -1}, {32, 2, 1}, {32, 3, -1}}, natural, false, 3, 23},
        {"SevenNet_l3i5-main", {{128, 0, 1}, {64, 1, 1}, {32, 2, 1}, {32, 3, 1}}, even, false, 3, 34},
        {"nequip-lips",
         {{32, 0, -1}, {32, 0, 1}, {32, 1, -1}, {32, 1, 1}, {32, 2, -1}, {32, 2, 1}},
         {{1, 0, 1}, {1, 1, -1}, {1, 2, 1}},
         true,
         2,
         30},
    };
    for (const Convolution& problem : problems) {
        CAPTURE(problem.label);
        const auto paths = paths_of(problem);
        CHECK(paths.size() == problem.paths);
        double multiply_adds = 0, weights = 0, out = 0;
        std::set<std::tuple<int, int, int>> matrices;  // coefficients folded with y: once for all paths of the same degrees
        for (const auto& [channels, l1, l2, l3] : paths) {
            const int rows = 2 * l3 + 1, columns = 2 * l1 + 1;
            // y_0 x is a multiple: one for w y_0, one a component. Else a matrix, and the weight on its smaller side (on x's if z's is
            // larger than three numbers, which then stay in registers).
            const int per_channel = l2 == 0 ? columns + 1 : rows * columns + (columns <= rows || rows > 3 ? columns : rows);
            multiply_adds += channels * per_channel;
            if (matrices.insert({l1, l2, l3}).second) multiply_adds += l2 == 0 ? 1 : nonzeros(l1, l2, l3);
            weights += channels;
            out += channels * rows;
        }
        const double y = numbers(problem.edge), x = numbers(problem.in);
        const Work forward = work_of(named_problem(problem.label), graph);
        CHECK(forward.multiply_adds == edges * multiply_adds);
        // Arrays once in float32, two indices an edge of 8 bytes each.
        CHECK(forward.bytes == 4 * (edges * (y + weights) + nodes * (x + out)) + 2 * 8 * edges);
        // Backward reads the same inputs and the cotangent of out, and writes a gradient of every input.
        const Work backward = work_of(gradients(problem.label, {"x", "y", "weights"}), graph);
        CHECK(backward.bytes == 4 * (edges * 2 * (y + weights) + nodes * (2 * x + out)) + 2 * 8 * edges);
        // The product once for dx and dw and once for dy; 2 (2 l1 + 1) for dx and dw, the weight on the smaller side for dy; each matrix is
        // folded once, each path's sum over channels unfolded once. What multiplies y_0 shares less or more, by one a channel at most.
        double least = 0, sharing = 0;
        for (const auto& [channels, l1, l2, l3] : paths) {
            const int rows = 2 * l3 + 1, columns = 2 * l1 + 1;
            least += l2 == 0 ? channels * 4 * columns : channels * (2 * rows * columns + 2 * columns + std::min(rows, columns));
            sharing += l2 == 0 ? channels : 0;
            least += l2 == 0 ? 1 : nonzeros(l1, l2, l3);
        }
        for (const auto& [l1, l2, l3] : matrices) least += l2 == 0 ? 1 : nonzeros(l1, l2, l3);
        CHECK(backward.multiply_adds >= edges * least);
        CHECK(backward.multiply_adds <= edges * (least + sharing));
    }
}

TEST_CASE("fully connected tetris-poly-2, shared and per-row weights, as counted by hand") {
    const double rows = 10'000;
    // 64x0e+24x1e+24x1o+16x2e+16x2o times 0e+1o+2e to 1x0o+6x0e: the scalar products 0e 0e, 1o 1o, 2e 2e to 6x0e, 1e 1o, 2o 2e to 1x0o.
    // y_0 x or x . y of every channel, then the matrix
    const double to_six = 64 + 64 * 6 + 24 * 3 + 24 * 6 + 16 * 5 + 16 * 6;
    const double to_one = 24 * 3 + 24 + 16 * 5 + 16;
    const double x = 64 + 2 * 24 * 3 + 2 * 16 * 5, y = 9, out = 7, weights = 64 * 6 + 24 * 6 + 24 + 16 * 6 + 16;
    for (const bool shared : {true, false}) {
        CAPTURE(shared);
        const char* label = shared ? "tetris-poly-2" : "tetris-poly-2-per-row";
        const Work work = work_of(named_problem(label), {{"row", 10'000}});
        CHECK(work.multiply_adds == rows * (to_six + to_one));
        CHECK(work.bytes == 4 * (rows * (x + y + out) + (shared ? 1 : rows) * weights));
        const Work backward = work_of(gradients(label, {"x", "y", "weights"}), {{"row", 10'000}});
        CHECK(backward.bytes == 4 * (rows * (2 * x + 2 * y + out) + (shared ? 1 : rows) * 2 * weights));
    }
}

TEST_CASE("linear 128x0e+128x1o+128x2e, as counted by hand") {
    const double rows = 2'000, components = 1 + 3 + 5, x = 128 * components, weights = 3 * 128 * 128;
    const Work forward = work_of(named_problem("linear-128"), {{"row", 2'000}});
    CHECK(forward.multiply_adds == rows * 128 * 128 * components);
    CHECK(forward.bytes == 4 * (rows * 2 * x + weights));
    const Work backward = work_of(gradients("linear-128", {"x", "weights"}), {{"row", 2'000}});
    CHECK(backward.multiply_adds == 2 * rows * 128 * 128 * components);
    CHECK(backward.bytes == 4 * (rows * 3 * x + 2 * weights));
}

TEST_CASE("normalised harmonics cost at most a quarter more than the recurrence counted by hand") {
    for (const auto& [given_label, lmax] : {std::pair{"harmonics-3", 3}, {"harmonics-6", 6}}) {
        const auto& label = given_label;
        CAPTURE(label);
        // v . v, v / |v|, sqrt(3) of it; then r Y_(l-1) coupled to Y_l: one product an entry of the 3j symbol.
        double count = 3 + 3 + 3;
        for (int l = 2; l <= lmax; ++l) count += nonzeros(1, l - 1, l);
        const Work work = work_of(named_problem(label), {{"row", 1'000}});
        CHECK(work.bytes == 4 * 1'000 * (3 + (lmax + 1) * (lmax + 1)));
        CHECK(work.multiply_adds >= 1'000 * count);
        CHECK(work.multiply_adds <= 1.25 * 1'000 * count);
    }
}

TEST_CASE("symmetric contraction of correlation 3 costs what its monomials and coefficients do, within a tenth") {
    // 0e+1o+2e+3o to 0e+1o: 2 + 7 + 20 = 29 couplings of one, two and three factors. Of the 16 components of a channel all 136 products of
    // two are made; 355 of three have a coefficient that is not zero. 552 such coefficients are added up into 8 + 4 + 1 = 13 sums for 0e
    // and 3 (12 + 3 + 1) = 48 for the components of 1o, each of which meets its weight.
    const double per_channel = 136 + 355 + 552 + 13 + 48;
    const Work work = work_of(named_problem("symmetric-contraction-128"), {{"node", 500}, {"element", 10}});
    CHECK(work.multiply_adds >= 0.9 * 500 * 128 * per_channel);
    CHECK(work.multiply_adds <= 1.1 * 500 * 128 * per_channel);
    // x and out per node, weights per element, the element of every node.
    CHECK(work.bytes == 4 * 128 * (500.0 * (16 + 4) + 10.0 * 29) + 8 * 500);
}
