// Kernels of rows with weight matrices of their own, run on the host thread by thread, against the reference.
#include <doctest/doctest.h>

#include "describe/operations/products.hpp"
#include "describe/operations/tensor_product.hpp"
#include "describe/text.hpp"
#include "emit/emitted.hpp"
#include "schedule/gpu_rows.hpp"
#include "support/channelwise.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

void compare(const std::vector<EmittedCase>& cases) {
    const auto results = run_emitted(cases);
    for (std::size_t i = 0; i < cases.size(); ++i)
        for (const auto& [name, numbers] : evaluate(cases[i].polynomial, cases[i].inputs)) {
            const double error = relative_error(results[i].at(name), numbers);
            if (!(error < 1e-11))
                FAIL_CHECK("case " << i << ", output " << name << ": error " << error << " in\n" << to_text(cases[i].polynomial));
        }
}

TensorProductOptions per_row(Layout layout) {
    TensorProductOptions options;
    options.weights.rows = each_row();
    options.x.layout = options.out.layout = layout;
    return options;
}

/// Fully connected with one set of weights a row; unequal and odd multiplicities, two channels of y in a block.
Polynomial product(Layout layout) {
    const Irreps in("5x0e+12x1o+3x2e"), edge("0e+2x1o+2e"), out("8x0e+7x1o+40x0o+1x2e");
    return tensor_product(fully_connected(in, edge, out), per_row(layout));
}

}  // namespace

TEST_CASE("fully connected products with weights per row and their derivatives run a warp a row") {
    if (!has_host_compiler()) return;
    random::Engine engine(2718);
    random::Limits limits;
    limits.rows = 6;
    limits.work = 1e7;
    std::vector<EmittedCase> cases;
    for (const Layout layout : {Layout::mul_ir, Layout::ir_mul})
        for (const int order : {0, 1, 2}) {
            if (layout == Layout::ir_mul && order == 2) continue;
            const Polynomial polynomial = random::gradients(product(layout), order);
            cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "rows"});
        }
    const Polynomial even =
        tensor_product(fully_connected(Irreps("8x0e+4x1o"), Irreps("0e+1o"), Irreps("80x0e+4x1o")), per_row(Layout::mul_ir));
    for (const int order : {0, 1}) {
        const Polynomial polynomial = random::gradients(even, order);
        cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "rows", true});
    }
    compare(cases);
}

TEST_CASE("rows with matrices reach others through indices, and masked rows are zero") {
    if (!has_host_compiler()) return;
    TensorProductOptions options = per_row(Layout::mul_ir);
    options.rows = "edge";
    options.indices = {{"sender", "edge", "node", false}, {"receiver", "edge", "node", true}};
    options.x.rows = row_of("sender");
    options.out.rows = row_of("receiver");
    const Polynomial polynomial = tensor_product(fully_connected(Irreps("6x0e+4x1o"), Irreps("0e+1o"), Irreps("8x0e+3x1o")), options);
    random::Engine engine(31);
    random::Limits limits;
    limits.rows = 9;
    limits.work = 1e7;
    std::vector<EmittedCase> cases;
    for (const int order : {0, 1}) {
        const Polynomial one = random::gradients(polynomial, order);
        cases.push_back({one, random::inputs(engine, one, limits), "rows"});
        cases.back().inputs.indices["sender"][1] = -1;
        CHECK(gpu_kernels({.polynomial = one,
                           .storage = std::vector<GpuNumber>(one.operands.size(), GpuNumber::float32),
                           .compute = GpuNumber::float32,
                           .target = gpu_target("sm_90")})
                  .rows.has_value());
    }
    compare(cases);
}

TEST_CASE("one segment of weights as matrices of two shapes") {
    if (!has_host_compiler()) return;
    const Polynomial polynomial = parse_polynomial(R"(clebsch polynomial 0
basis e3nn-0.5
rows edge
input x: 8x0e+16x0e mul_ir @ each
input w: 128x(1) mul_ir @ each
input y: 1x0e mul_ir @ each
output out: 16x0e+8x0e mul_ir @ each
path u=8 w=16: out.0[w] += x.0[u] * w.0[uw] * y.0[]
path u=16 w=8: out.1[w] += x.1[u] * w.0[uw] * y.0[]
)");
    random::Engine engine(53);
    random::Limits limits;
    limits.rows = 5;
    compare({{polynomial, random::inputs(engine, polynomial, limits), "rows"}});
}

TEST_CASE("what has no matrix a row is not for the schedule of rows, which says why") {
    std::string why_not;
    const auto schedule = [&](const Polynomial& polynomial, bool ordered = false) {
        return schedule_rows({.polynomial = polynomial,
                              .storage = std::vector<GpuNumber>(polynomial.operands.size(), GpuNumber::bfloat16),
                              .compute = GpuNumber::float32,
                              .target = gpu_target("sm_80"),
                              .ordered = ordered},
                             why_not);
    };
    CHECK(schedule(product(Layout::mul_ir)));
    CHECK(schedule(product(Layout::mul_ir))->products.front().vector <= 8);
    TensorProductOptions shared;
    CHECK_FALSE(schedule(tensor_product(fully_connected(Irreps("8x0e"), Irreps("0e"), Irreps("8x0e")), shared)));
    CHECK(why_not == "a path is no product with a matrix that every row has for itself");
    CHECK_FALSE(schedule(tensor_product(fully_connected(Irreps("2x0e"), Irreps("0e"), Irreps("8x0e")), per_row(Layout::mul_ir))));
    CHECK(why_not == "there are no matrices, or small ones");
    CHECK_FALSE(schedule(tensor_product(fully_connected(Irreps("9000x0e"), Irreps("0e"), Irreps("8x0e")), per_row(Layout::mul_ir))));
    CHECK(why_not == "a row has too many numbers beside its matrices");
}
