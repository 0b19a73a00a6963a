#include "describe/arrangement.hpp"

#include <doctest/doctest.h>

using namespace clebsch;

TEST_CASE("rows of equal memory agree, however their runs are cut") {
    const auto m = Layout::mul_ir, i = Layout::ir_mul;
    CHECK(same_arrangement({{4, 1, {}}, {3, 1, {}}}, m, {{7, 1, {}}}, i));
    CHECK(same_arrangement({{1, 7, {}}}, i, {{7, 1, {}}}, m));
    CHECK(same_arrangement({{2, 3, {}}, {1, 3, {}}}, m, {{3, 3, {}}}, m));
    CHECK(same_arrangement({{2, 3, {}}, {0, 5, {}}}, i, {{2, 3, {}}}, i));
    CHECK(same_arrangement({{1, 3, {}}, {2, 3, {}}}, i, {{1, 3, {}}, {2, 3, {}}}, i));
}

TEST_CASE("rows of equal size and another order do not agree") {
    const auto m = Layout::mul_ir, i = Layout::ir_mul;
    CHECK_FALSE(same_arrangement({{2, 3, {}}}, m, {{2, 3, {}}}, i));
    CHECK_FALSE(same_arrangement({{2, 3, {}}, {1, 3, {}}}, i, {{3, 3, {}}}, i));
    CHECK_FALSE(same_arrangement({{2, 3, {}}}, i, {{3, 2, {}}}, i));
    CHECK_FALSE(same_arrangement({{7, 1, {}}}, m, {{6, 1, {}}}, m));
}
