#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "model/random.hpp"

using namespace clebsch;

TEST_CASE("Philox4x32-10 gives the numbers its authors publish") {
    using Four = std::array<std::uint32_t, 4>;
    CHECK(philox({0, 0, 0, 0}, {0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    const std::uint32_t ones = 0xffffffff;
    CHECK(philox({ones, ones, ones, ones}, {ones, ones}) == Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the portable logarithm and exponential agree with the system's") {
    for (int i = 1; i < 20000; ++i) {
        const double x = i * 1.000123e-4, large = x * 1e30, small = x * 1e-30;
        CHECK(std::abs(portable_log(x) - std::log(x)) <= 3e-16 * std::max(1.0, std::abs(std::log(x))));
        CHECK(std::abs(portable_log(large) - std::log(large)) <= 3e-16 * std::log(large));
        CHECK(std::abs(portable_log(small) - std::log(small)) <= 3e-16 * -std::log(small));
        CHECK(std::abs(portable_exp(-x) - std::exp(-x)) <= 3e-16);
        CHECK(std::abs(portable_exp(x * 100) / std::exp(x * 100) - 1) <= 3e-16 * (1 + x * 100));
    }
    CHECK(portable_log(1.0) == 0.0);
    CHECK(portable_exp(0.0) == 1.0);
}

TEST_CASE("normal numbers: moments, tails and independence of what the arguments differ in") {
    constexpr int count = 400'000;  // pairs
    double sum = 0, square = 0, cube = 0, fourth = 0, product = 0;
    int beyond_two = 0;
    for (int i = 0; i < count; ++i) {
        const auto [a, b] = normal_pair(7, RandomPurpose::friction, 3, static_cast<std::uint32_t>(i));
        product += a * b;
        for (const double z : {a, b}) {
            sum += z, square += z * z, cube += z * z * z, fourth += z * z * z * z;
            beyond_two += std::abs(z) > 2;
        }
    }
    const double n = 2.0 * count;
    CHECK(std::abs(sum / n) < 4 * std::sqrt(1 / n));
    CHECK(std::abs(square / n - 1) < 4 * std::sqrt(2 / n));
    CHECK(std::abs(cube / n) < 4 * std::sqrt(15 / n));
    CHECK(std::abs(fourth / n - 3) < 4 * std::sqrt(96 / n));
    CHECK(std::abs(beyond_two / n - 0.0455003) < 4 * std::sqrt(0.0455 * 0.9545 / n));
    CHECK(std::abs(product / count) < 4 * std::sqrt(1.0 / count));

    std::set<double> different;
    const std::uint64_t far = std::uint64_t{1} << 40;
    for (const std::uint64_t seed : {std::uint64_t{7}, std::uint64_t{8}, far})
        for (const RandomPurpose purpose : {RandomPurpose::friction, RandomPurpose::rescaling, RandomPurpose::initial_velocities})
            for (const std::uint64_t step : {std::uint64_t{3}, std::uint64_t{4}, far})
                for (const std::uint32_t index : {5U, 6U})
                    for (const double z : normal_pair(seed, purpose, step, index)) different.insert(z);
    CHECK(different.size() == 3 * 3 * 3 * 2 * 2);
}
