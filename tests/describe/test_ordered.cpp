// Rows in the order of an index: the same numbers, forward and in derivatives.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "describe/ordered.hpp"
#include "describe/text.hpp"
#include "support/channelwise.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

/// Inputs of the ordered polynomial with the same rows: as a stable sort puts them.
ReferenceInputs in_order(ReferenceInputs inputs, const std::string& index) {
    const std::vector<std::int64_t>& targets = inputs.indices.at(index);
    std::vector<std::int64_t> rows(targets.size()), sorted;
    std::iota(rows.begin(), rows.end(), 0);
    const auto place = [&](std::int64_t row) { return static_cast<std::uint64_t>(targets[static_cast<std::size_t>(row)]); };  // -1: last
    std::ranges::stable_sort(rows, {}, place);
    for (const std::int64_t row : rows) sorted.push_back(targets[static_cast<std::size_t>(row)]);
    inputs.indices[index + "_order"] = rows;
    inputs.indices[index + "_sorted"] = sorted;
    return inputs;
}

}  // namespace

TEST_CASE("a polynomial in the order of an index gives the same numbers, and so do its derivatives") {
    int met = 0;
    for (std::uint64_t seed = 0; met < 24; ++seed) {
        random::Engine engine(seed);
        random::Limits limits;
        limits.work = 30'000;
        limits.path_work = 2'000;
        Polynomial polynomial = random::gradients(seed % 2 == 0 ? random::polynomial(engine, limits) : random::channelwise(engine, 20, 1),
                                                  static_cast<int>(seed % 3 == 2));
        for (Index& index : polynomial.indices) index.sorted = false;
        const auto own = std::ranges::find(polynomial.indices, polynomial.rows, &Index::from);
        if (own == polynomial.indices.end()) continue;
        ++met;
        const ReferenceInputs inputs = random::inputs(engine, polynomial, limits);
        const Polynomial ordered = in_order_of(polynomial, own->name);
        CAPTURE(to_text(ordered));
        const auto result = evaluate(ordered, in_order(inputs, own->name));
        for (const auto& [name, numbers] : evaluate(polynomial, inputs)) CHECK(relative_error(result.at(name), numbers) < 1e-15);
        const ReferenceInputs stored = in_order(inputs, own->name);
        const PolynomialPlan plan(ordered, {.dtypes = std::vector<DType>(ordered.operands.size(), DType::float64)});
        for (const auto& [name, numbers] : run_plan(plan, stored).outputs) CHECK(relative_error(numbers, result.at(name)) < 1e-11);
    }
}

TEST_CASE("an order is refused where there is no such index") {
    const Polynomial polynomial = convolution(Irreps("4x0e"), Irreps("0e"), Irreps("0e"));
    CHECK_THROWS_AS(in_order_of(polynomial, "edges"), Error);
    CHECK_THROWS_WITH_AS(in_order_of(in_order_of(polynomial, "receiver"), "receiver"), doctest::Contains("receiver"), Error);
    Polynomial taken = polynomial;
    taken.indices[0].name = "receiver_order";
    for (Operand& operand : taken.operands)
        for (std::string& via : operand.rows.via)
            if (via == "sender") via = "receiver_order";
    CHECK_THROWS_WITH_AS(in_order_of(taken, "receiver"), doctest::Contains("receiver_order"), Error);
}
