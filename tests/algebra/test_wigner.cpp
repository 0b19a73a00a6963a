#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <thread>
#include <vector>

#include "algebra/exact.hpp"
#include "algebra/wigner.hpp"
#include "base/error.hpp"

using namespace clebsch;

namespace {

std::vector<double> dense(int l1, int l2, int l3, SignTable table = SignTable::e3nn_0_5) {
    const int n2 = 2 * l2 + 1, n3 = 2 * l3 + 1;
    std::vector<double> values((2 * l1 + 1) * n2 * n3);
    for (const CouplingEntry& entry : wigner_3j(l1, l2, l3, table)) values[(entry.i * n2 + entry.j) * n3 + entry.k] = entry.value;
    return values;
}

double element(int l1, int l2, int l3, int i, int j, int k) { return dense(l1, l2, l3)[(i * (2 * l2 + 1) + j) * (2 * l3 + 1) + k]; }

bool triangle(int l1, int l2, int l3) { return l3 >= std::abs(l1 - l2) && l3 <= l1 + l2; }

/// Sums of at most 25 products of correctly rounded numbers, of magnitude up to 1.
constexpr double sum_tolerance = 25 * 1.2e-16;

/// Largest deviation from: sum over (i, j) of C[i, j, k] C'[i, j, k'] = delta_kk' / (2 l3 + 1) for C = C', 0 between different l3.
double orthogonality_error(int l1, int l2, int l3, int other) {
    std::vector<double> sums((2 * l3 + 1) * (2 * other + 1));
    std::map<std::pair<int, int>, std::vector<CouplingEntry>> by_pair;
    for (const CouplingEntry& entry : wigner_3j(l1, l2, other)) by_pair[{entry.i, entry.j}].push_back(entry);
    for (const CouplingEntry& entry : wigner_3j(l1, l2, l3)) {
        for (const CouplingEntry& partner : by_pair[{entry.i, entry.j}])
            sums[entry.k * (2 * other + 1) + partner.k] += entry.value * partner.value;
    }
    double error = 0.0;
    for (int k = 0; k <= 2 * l3; ++k) {
        for (int n = 0; n <= 2 * other; ++n) {
            const double expected = l3 == other && k == n && triangle(l1, l2, l3) ? 1.0 / (2 * l3 + 1) : 0.0;
            error = std::max(error, std::abs(sums[k * (2 * other + 1) + n] - expected));
        }
    }
    return error;
}

double permutation_error(int l1, int l2, int l3, SignTable table) {
    double error = 0.0;
    const double sign = (l1 + l2 + l3) % 2 == 0 ? 1.0 : -1.0;
    const auto reference = dense(l1, l2, l3, table), cyclic = dense(l2, l3, l1, table), swapped = dense(l2, l1, l3, table);
    for (int i = 0; i <= 2 * l1; ++i) {
        for (int j = 0; j <= 2 * l2; ++j) {
            for (int k = 0; k <= 2 * l3; ++k) {
                const double value = reference[(i * (2 * l2 + 1) + j) * (2 * l3 + 1) + k];
                error = std::max(error, std::abs(value - cyclic[(j * (2 * l3 + 1) + k) * (2 * l1 + 1) + i]));
                error = std::max(error, std::abs(value - sign * swapped[(j * (2 * l1 + 1) + i) * (2 * l3 + 1) + k]));
            }
        }
    }
    return error;
}

}  // namespace

TEST_CASE("an exact root converts to the nearest double") {
    const auto root = [](long factor, int numerator, int denominator) {
        ExactRoot value{factor, {}};
        value.square.multiply(numerator).multiply(denominator, -1);
        return to_double(value);
    };
    CHECK(root(1, 1, 1) == 1.0);
    CHECK(root(-3, 4, 9) == -2.0);
    CHECK(root(0, 4, 9) == 0.0);
    // IEEE square roots of numbers that are exact doubles are correctly rounded, so they are an oracle.
    for (int n = 1; n <= 40; ++n) {
        for (int power = -3; power <= 3; ++power) {
            ExactRoot value{1, {}};
            value.square.multiply(n).multiply(2, power);
            CHECK(to_double(value) == std::sqrt(std::ldexp(static_cast<double>(n), power)));
        }
    }
    // Division too: n/d = sqrt(n^2 / d^2).
    for (int n = 1; n <= 40; ++n) {
        for (int d = 1; d <= 40; ++d) {
            ExactRoot value{1, {}};
            value.square.multiply(n, 2).multiply(d, -2);
            CHECK(to_double(value) == static_cast<double>(n) / d);
        }
    }
    // More bits than a double has: 2^53 + 1 is a tie and goes to the even neighbour, one quarter more goes up.
    CHECK(root((1L << 53) + 1, 1, 1) == 9007199254740992.0);
    CHECK(root((1L << 53) + 3, 1, 1) == 9007199254740996.0);
    CHECK(root((1L << 55) + 5, 1, 1) == std::ldexp(1.0, 55) + 8.0);
    CHECK(root((1L << 53) - 1, 1, 1) == 9007199254740991.0);
    CHECK_THROWS_AS(PrimePowers().multiply(41), std::logic_error);
    CHECK(binomial(24, 12) == 2704156);
    CHECK(binomial(5, 6) == 0);
    CHECK(binomial(5, -1) == 0);
}

TEST_CASE("couplings equal e3nn's: one row per sorted triple") {
    struct Row {
        int l1, l2, l3;
        std::size_t nonzeros;
        int i, j, k;
        double first, checksum;
        int sign_0_4;
    };
    const std::vector<Row> rows = {
        {0, 0, 0, 1, 0, 0, 0, 1.0000000000, 0.8414709848, 1},      {0, 1, 1, 3, 0, 0, 0, 0.5773502692, 0.1701250299, 1},
        {1, 1, 1, 6, 0, 1, 2, 0.4082482905, -0.0401339029, 1},     {1, 1, 2, 11, 0, 0, 2, -0.1825741858, -0.0559188415, 1},
        {0, 2, 2, 5, 0, 0, 0, 0.4472135955, 0.8658726387, 1},      {1, 2, 2, 16, 0, 0, 1, -0.1825741858, 1.4404207281, -1},
        {2, 2, 2, 25, 0, 0, 2, -0.2390457219, -0.1927054601, 1},   {1, 2, 3, 21, 0, 0, 4, -0.0690065559, -0.6586313266, 1},
        {2, 2, 3, 28, 0, 1, 0, 0.1889822365, 1.1918230578, 1},     {0, 3, 3, 7, 0, 0, 0, 0.3779644730, 0.0179067346, 1},
        {1, 3, 3, 26, 0, 0, 1, -0.1336306210, -0.5177251728, -1},  {2, 3, 3, 41, 0, 0, 4, -0.1091089451, 0.3576493947, 1},
        {3, 3, 3, 42, 0, 1, 2, 0.1543033500, -0.1655079251, 1},    {2, 2, 4, 37, 0, 0, 4, 0.0398409536, -0.5061356578, 1},
        {1, 3, 4, 31, 0, 0, 6, -0.0445435403, 0.4021224512, 1},    {2, 3, 4, 50, 0, 0, 3, 0.0487950036, -0.3512912904, 1},
        {3, 3, 4, 67, 0, 0, 4, 0.0805822964, 0.4902033458, 1},     {0, 4, 4, 9, 0, 0, 0, 0.3333333333, 0.0469180558, 1},
        {1, 4, 4, 36, 0, 0, 1, -0.1054092553, -0.4494449218, -1},  {2, 4, 4, 61, 0, 0, 6, -0.0778498944, 0.1347495972, 1},
        {3, 4, 4, 76, 0, 0, 3, 0.0710669055, -0.2897836670, 1},    {4, 4, 4, 97, 0, 0, 4, 0.1042977031, 0.0302778690, 1},
        {4, 4, 5, 104, 0, 1, 4, -0.0763381021, -0.1006036974, -1}, {1, 5, 5, 46, 0, 0, 1, -0.0870388280, -1.8009558619, -1},
        {5, 5, 5, 126, 0, 1, 4, -0.0886968594, -0.5531049258, -1}, {2, 4, 6, 73, 0, 0, 8, 0.0088147648, -1.1014703703, 1},
        {3, 4, 6, 100, 0, 0, 5, -0.0129034944, -0.7452575653, -1}, {3, 5, 6, 109, 0, 0, 8, 0.0223495078, 1.3602583277, 1},
        {4, 5, 6, 144, 0, 0, 5, -0.0241402275, 0.6155787808, -1},  {1, 6, 6, 56, 0, 0, 1, -0.0741249317, 0.0851763555, -1},
        {5, 6, 6, 184, 0, 0, 5, -0.0336336397, -0.9363474159, -1}, {6, 6, 6, 217, 0, 0, 6, -0.0511827251, 0.2887652685, 1},
    };
    for (const Row& row : rows) {
        INFO("triple ", row.l1, " ", row.l2, " ", row.l3);
        const auto entries = wigner_3j(row.l1, row.l2, row.l3);
        REQUIRE(entries.size() == row.nonzeros);
        CHECK(std::array{entries[0].i, entries[0].j, entries[0].k} == std::array{row.i, row.j, row.k});
        CHECK(std::abs(entries[0].value - row.first) < 6e-11);
        const auto values = dense(row.l1, row.l2, row.l3);
        double checksum = 0.0;
        for (std::size_t i = 0; i < values.size(); ++i) checksum += values[i] * std::sin(1.0 + static_cast<double>(i));
        CHECK(std::abs(checksum - row.checksum) < 6e-11);
        CHECK(wigner_3j(row.l1, row.l2, row.l3, SignTable::e3nn_0_4)[0].value == row.sign_0_4 * entries[0].value);
    }
}

TEST_CASE("single elements of e3nn's tables") {
    CHECK(std::abs(element(1, 1, 1, 0, 1, 2) - .408248290464) < 1e-12);
    const std::vector<std::pair<std::array<int, 3>, double>> golden112 = {
        {{0, 0, 2}, -.182574185835}, {{0, 0, 4}, -.316227766017}, {{0, 1, 1}, .316227766017},  {{0, 2, 0}, .316227766017},
        {{1, 1, 2}, .365148371670},  {{1, 2, 3}, .316227766017},  {{2, 2, 2}, -.182574185835}, {{2, 2, 4}, .316227766017}};
    for (const auto& [at, value] : golden112) CHECK(std::abs(element(1, 1, 2, at[0], at[1], at[2]) - value) < 1e-12);
    CHECK(std::abs(element(2, 2, 2, 2, 2, 2) - .239045721867) < 1e-12);
    CHECK(std::abs(element(2, 2, 2, 0, 0, 2) + .239045721867) < 1e-12);
    CHECK(std::abs(element(2, 2, 2, 0, 1, 3) - .207019667803) < 1e-12);
    CHECK(std::abs(element(2, 2, 1, 0, 4, 1) + .365148371670) < 1e-12);
    CHECK(wigner_3j(2, 2, 1).size() == 16);
    // (0, l, l) is the identity over sqrt(2l+1), to the last bit.
    for (int l = 0; l <= 12; ++l) {
        for (const CouplingEntry& entry : wigner_3j(0, l, l)) {
            CHECK(entry.j == entry.k);
            CHECK(std::abs(entry.value * std::sqrt(2.0 * l + 1.0) - 1.0) < 2.3e-16);
        }
        CHECK(wigner_3j(0, l, l).size() == static_cast<std::size_t>(2 * l + 1));
    }
}

TEST_CASE("couplings to different degrees are orthogonal, all triples up to 6") {
    for (int l1 = 0; l1 <= 6; ++l1) {
        for (int l2 = 0; l2 <= 6; ++l2) {
            for (int l3 = 0; l3 <= 6; ++l3) {
                for (int other = 0; other <= 6; ++other) CHECK(orthogonality_error(l1, l2, l3, other) < sum_tolerance);
            }
        }
    }
}

TEST_CASE("couplings are orthogonal, normalised and sorted, sampled up to degree 12") {
    for (const auto& pair : {std::array{12, 12}, {12, 11}, {7, 12}, {9, 8}, {1, 12}, {6, 10}}) {
        const int l1 = pair[0], l2 = pair[1];
        for (int l3 = std::abs(l1 - l2); l3 <= std::min(12, l1 + l2); l3 += 2) {
            INFO("triple ", l1, " ", l2, " ", l3);
            CHECK(orthogonality_error(l1, l2, l3, l3) < sum_tolerance);
            if (l3 + 1 <= std::min(12, l1 + l2)) CHECK(orthogonality_error(l1, l2, l3, l3 + 1) < sum_tolerance);
            const auto entries = wigner_3j(l1, l2, l3);
            double norm = 0.0;
            for (const CouplingEntry& entry : entries) norm += entry.value * entry.value;
            CHECK(std::abs(norm - 1.0) < 1e-14);
            CHECK(std::is_sorted(entries.begin(), entries.end(), [](const CouplingEntry& a, const CouplingEntry& b) {
                return std::array{a.i, a.j, a.k} < std::array{b.i, b.j, b.k};
            }));
            CHECK(std::none_of(entries.begin(), entries.end(), [](const CouplingEntry& entry) { return entry.value == 0.0; }));
        }
    }
}

TEST_CASE("cyclic index orders are equal and odd ones differ by (-1)^(l1+l2+l3), in both sign tables, to the last bit") {
    for (const SignTable table : {SignTable::e3nn_0_5, SignTable::e3nn_0_4}) {
        for (int l1 = 0; l1 <= 5; ++l1) {
            for (int l2 = 0; l2 <= 5; ++l2) {
                for (int l3 = 0; l3 <= 5; ++l3) {
                    if (triangle(l1, l2, l3)) CHECK(permutation_error(l1, l2, l3, table) == 0.0);
                }
            }
        }
        CHECK(permutation_error(12, 5, 8, table) == 0.0);
        CHECK(permutation_error(12, 12, 11, table) == 0.0);
    }
}

TEST_CASE("the sign tables of e3nn 0.4 and 0.5 differ on 44 of the 203 sorted triples up to degree 11, and on these") {
    const std::vector<std::array<int, 3>> different = {
        {1, 2, 2},   {1, 3, 3},  {1, 4, 4},   {1, 5, 5},  {1, 6, 6},   {1, 7, 7},  {1, 8, 8},   {1, 9, 9},  {1, 10, 10},
        {1, 11, 11}, {3, 4, 6},  {3, 5, 7},   {3, 6, 8},  {3, 7, 9},   {3, 8, 10}, {3, 9, 11},  {4, 4, 5},  {4, 5, 6},
        {4, 6, 7},   {4, 7, 8},  {4, 8, 9},   {4, 9, 10}, {4, 10, 11}, {5, 5, 5},  {5, 6, 6},   {5, 7, 7},  {5, 8, 8},
        {5, 9, 9},   {5, 6, 10}, {5, 10, 10}, {5, 7, 11}, {5, 11, 11}, {6, 6, 9},  {6, 7, 10},  {6, 8, 11}, {7, 7, 9},
        {7, 8, 10},  {7, 9, 11}, {8, 8, 9},   {8, 9, 10}, {8, 10, 11}, {9, 9, 9},  {9, 10, 10}, {9, 11, 11}};
    int triples = 0, flipped = 0;
    for (int l1 = 0; l1 <= 11; ++l1) {
        for (int l2 = l1; l2 <= 11; ++l2) {
            for (int l3 = l2; l3 <= std::min(11, l1 + l2); ++l3) {
                ++triples;
                const auto entries = wigner_3j(l1, l2, l3), old = wigner_3j(l1, l2, l3, SignTable::e3nn_0_4);
                REQUIRE(entries.size() == old.size());
                const double sign = old[0].value / entries[0].value;
                for (std::size_t n = 0; n < entries.size(); ++n) CHECK(old[n].value == sign * entries[n].value);
                CHECK(std::abs(sign) == 1.0);
                const bool expected = std::find(different.begin(), different.end(), std::array{l1, l2, l3}) != different.end();
                INFO("triple ", l1, " ", l2, " ", l3);
                CHECK((sign < 0.0) == expected);
                flipped += sign < 0.0;
                // The rule of 0.4 looks at the middle element first; it is positive in both wherever it exists.
                if ((l1 + l2 + l3) % 2 == 0) CHECK(element(l1, l2, l3, l1, l2, l3) > 0.0);
            }
        }
    }
    CHECK(triples == 203);
    CHECK(flipped == 44);
}

TEST_CASE("ordered triples whose sign differs: 9 of 65 up to 4, 34 of 175 up to 6, 70 of 369 up to 8") {
    for (const auto& [lmax, expected_flips, expected_triples] : {std::array{4, 9, 65}, {6, 34, 175}, {8, 70, 369}}) {
        int triples = 0, flips = 0;
        for (int l1 = 0; l1 <= lmax; ++l1) {
            for (int l2 = 0; l2 <= lmax; ++l2) {
                for (int l3 = 0; l3 <= lmax; ++l3) {
                    if (!triangle(l1, l2, l3)) continue;
                    ++triples;
                    flips += wigner_3j(l1, l2, l3)[0].value != wigner_3j(l1, l2, l3, SignTable::e3nn_0_4)[0].value;
                }
            }
        }
        CHECK(triples == expected_triples);
        CHECK(flips == expected_flips);
    }
}

TEST_CASE("degrees out of range are refused, forbidden triangles are empty") {
    CHECK_THROWS_AS(wigner_3j(13, 1, 12), Error);
    CHECK_THROWS_AS(wigner_3j(1, -1, 1), Error);
    CHECK_THROWS_AS(wigner_3j(1, 1, 1, static_cast<SignTable>(7)), Error);
    CHECK(wigner_3j(1, 1, 3).empty());
    CHECK(wigner_3j(5, 1, 3, SignTable::e3nn_0_4).empty());
}

TEST_CASE("tables may be asked for by many threads at once, and stay where they are") {
    std::vector<std::thread> threads;
    std::array<const CouplingEntry*, 8> first{};
    for (std::size_t t = 0; t < first.size(); ++t) {
        threads.emplace_back([&first, t] { first[t] = wigner_3j(10, 11, 12, t % 2 ? SignTable::e3nn_0_4 : SignTable::e3nn_0_5).data(); });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t t = 0; t < first.size(); ++t) CHECK(first[t] == first[t % 2]);
}
