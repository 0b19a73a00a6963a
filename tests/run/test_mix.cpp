// The mix family computes what the reference says: linear maps, fully connected products, their derivatives, shared, per-row and indexed
// weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "describe/derivative.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/products.hpp"
#include "describe/text.hpp"
#include "schedule/cpu.hpp"
#include "support/normal_inputs.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

/// Runs on every instruction set in float32 and float64 and compares with the reference. Every path with two letters or more must be the
/// family's.
void check_mix(const Polynomial& polynomial, std::int64_t rows = 23) {
    const ReferenceInputs inputs = normal_inputs(polynomial, rows, 3, 7);
    const auto expected = evaluate(polynomial, inputs);
    for (const InstructionSet isa : available_instruction_sets())
        for (const DType dtype : {DType::float32, DType::float64}) {
            const PolynomialPlan plan(
                polynomial,
                {.dtypes = std::vector<DType>(polynomial.operands.size(), dtype), .compute = {}, .instruction_set = isa, .family = "mix"});
            INFO(plan.explain(), "\n", to_text(polynomial), "\nseed 7, ", to_text(isa), " ", to_text(dtype));
            for (const auto& kernel : choose_kernels(polynomial, isa, "mix").kernels)
                if (kernel->name() != "mix")
                    for (const int p : kernel->paths()) CHECK(polynomial.paths[static_cast<std::size_t>(p)].extents.size() < 2);
            const RunResult result = run_plan(plan, inputs, {.padding = 3});
            CHECK(result.surroundings_intact);
            for (const auto& [given_name, values] : expected) {
                const auto& name = given_name;
                INFO(name);
                CHECK(relative_error(result.outputs.at(name), values) < (dtype == DType::float32 ? 2e-6 : 1e-13));
            }
        }
}

void check_to_second_order(const Polynomial& polynomial, const std::vector<std::string>& inputs) {
    check_mix(polynomial);
    const Polynomial gradient = vjp(polynomial, inputs);
    check_mix(gradient);
    std::vector<std::string> all;
    for (const Operand& operand : gradient.operands)
        if (operand.role == Role::input) all.push_back(operand.name);
    check_mix(vjp(gradient, all));
}

LinearOptions linear_options(Layout layout, Addressing weights) {
    LinearOptions options;
    options.x.layout = options.out.layout = layout;
    if (weights.kind == Addressing::Kind::indexed) options.indices = {{"species", "row", "element", false}};
    options.weights.rows = std::move(weights);
    return options;
}

}  // namespace

TEST_CASE("linear maps with shared, per-row and species weights, in both layouts, to second order") {
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir})
        for (const Addressing& weights : {shared_row(), each_row(), row_of("species")}) {
            const Polynomial polynomial = linear("5x0e+13x1o+3x2e+17x0e", "33x0e+6x1o+2x2e", linear_options(layout, weights));
            check_to_second_order(polynomial, {"x", "weights"});
        }
}

TEST_CASE("rows that gather few matrices are multiplied together, any number of them, wide and narrow") {
    for (const auto& [from, to] : {std::pair{"12x0e", "89x0e"}, {"16x0e", "64x0e"}, {"3x0e", "5x0e"}, {"37x0e+8x1o", "40x0e+33x1o"}})
        for (const std::int64_t rows : {1, 2, 5, 23, 70}) {
            const Polynomial polynomial = linear(from, to, linear_options(Layout::ir_mul, row_of("species")));
            check_mix(polynomial, rows);
            check_mix(vjp(polynomial, std::vector<std::string>{"x", "weights"}), rows);
            check_mix(vjp(polynomial, std::vector<std::string>{"x"}), rows);
        }
}

TEST_CASE("a linear map between wide channels fills whole tiles and their remainders") {
    for (const char* irreps : {"128x0e+64x1o", "89x0e+33x1o", "16x0e+1x1o"}) {
        check_mix(linear(irreps, irreps, linear_options(Layout::ir_mul, shared_row())), 37);
        check_mix(vjp(linear(irreps, irreps, linear_options(Layout::ir_mul, shared_row())), std::vector<std::string>{"x", "weights"}), 37);
    }
}

TEST_CASE("fully connected products with one and with several channels on the second operand, to second order") {
    for (const char* second : {"1x0e+1x1o", "2x0e+3x1o"})
        for (const Addressing& weights : {shared_row(), each_row()}) {
            TensorProductOptions options;
            options.weights.rows = weights;
            check_to_second_order(tensor_product(fully_connected("5x0e+4x1o+2x1e", second, "6x0e+3x1o+2x1e"), options),
                                  {"x", "y", "weights"});
        }
}

TEST_CASE("few outputs, as in the last layer of a network, are multiplied without reading past a weight row") {
    TensorProductOptions options;
    for (const Layout layout : {Layout::mul_ir, Layout::ir_mul})
        for (const Addressing& weights : {shared_row(), each_row()}) {
            options.x.layout = layout;
            options.weights.rows = weights;
            check_to_second_order(tensor_product(fully_connected("64x0e+24x1e+24x1o+16x2e+16x2o", "0e+1o+2e", "0o+6x0e"), options),
                                  {"x", "y", "weights"});
        }
}

TEST_CASE("sums over channels into few outputs, of every width, for scalars and vectors, whole and in part vectors of channels") {
    TensorProductOptions options;
    for (int width = 1; width <= 17; ++width)
        for (const Addressing& weights : {shared_row(), each_row()}) {
            options.weights.rows = weights;
            const std::string n = std::to_string(width);
            const std::string x = width % 2 == 0 ? "16x0e+9x1o+8x1e+11x2e" : "67x0e+8x1o+21x1e+16x2e";
            const Polynomial polynomial =
                tensor_product(fully_connected(Irreps(x), "0e+1o+2e", Irreps(n + "x0e+" + n + "x1o+0o")), options);
            check_mix(polynomial);
            check_mix(vjp(polynomial, std::vector<std::string>{"x", "weights"}), 7);
            check_mix(linear("7x0e+40x1o", Irreps("3x0e+" + n + "x1o"), linear_options(Layout::mul_ir, weights)), 9);
        }
}

namespace {
/// Whether rows of x are transposed before the kernel sees them.
bool transposes(const Polynomial& polynomial, DType dtype = DType::float32) {
    const std::string text = PolynomialPlan(polynomial, {.dtypes = std::vector<DType>(polynomial.operands.size(), dtype)}).explain();
    const std::size_t line = text.find("operand 'x'");
    return text.substr(line, text.find('\n', line) - line).find("transposed") != std::string::npos;
}
}  // namespace

TEST_CASE("sums over the components of few outputs are read from channels as mul_ir stores them, whole and in part vectors") {
    TensorProductOptions options;
    options.x.layout = Layout::mul_ir;
    for (const Addressing& weights : {shared_row(), each_row()})
        for (const auto& [width, x] : {std::pair{2, "8x1o+9x2e+31x1e+70x2o"},
                                       {2, "67x0e+16x1o+17x2e"},
                                       {3, "33x1e+24x1o+2x0e+8x2o"},
                                       {4, "15x2e+64x1o"},
                                       {5, "11x1o+13x2o+40x2e"},
                                       {6, "24x1e+24x1o+16x2e+16x2o"},
                                       {7, "16x1o+16x2e+130x1e"}}) {
            options.weights.rows = weights;
            const std::string n = std::to_string(width);
            const Polynomial polynomial = tensor_product(fully_connected(Irreps(x), "1x0e+1x1o+1x2e", Irreps(n + "x0e+1x0o")), options);
            if (width < 7) CHECK_FALSE(transposes(polynomial));  // more columns are no narrow product
            for (const std::int64_t rows : {1, 7, 50}) check_mix(polynomial, rows);
        }
}

TEST_CASE("channels that more than sums over all components read are transposed") {
    TensorProductOptions options;
    options.x.layout = Layout::mul_ir;
    const auto product = [&](const char* x, const char* y, const char* out) { return tensor_product(fully_connected(x, y, out), options); };
    CHECK_FALSE(transposes(product("16x1o+8x2e", "0e+1o+2e", "4x0e")));
    for (const auto& [x, y, out] : {std::array{"16x1o+8x2e", "0e+1o+2e", "4x0e+1x1o"},
                                    {"16x1o+8x3o", "1o+3o", "4x0e"},
                                    {"16x1o+8x2e", "0e+1o+2e", "40x0e"},
                                    {"16x1o", "2x1o", "4x0e"}}) {
        const Polynomial polynomial = product(x, y, out);
        CHECK(transposes(polynomial));
        check_mix(polynomial);
    }
    check_mix(vjp(product("16x1o+8x2e", "0e+1o+2e", "4x0e"), std::vector<std::string>{"x", "y", "weights"}));
}

TEST_CASE("sums from channels as mul_ir stores them of rows that are converted, gathered or missing") {
    TensorProductOptions options;
    options.x.layout = Layout::mul_ir;
    const Polynomial product = tensor_product(fully_connected("24x1o+9x2e+5x0e", "0e+1o+2e", "6x0e"), options);
    for (const InstructionSet isa : available_instruction_sets())
        for (const DType dtype : {DType::bfloat16, DType::float16, DType::float64}) {
            std::vector<DType> dtypes(product.operands.size(), DType::float32);
            dtypes[0] = dtype;
            const ReferenceInputs inputs = rounded_inputs(product, normal_inputs(product, 23, 3, 7), dtypes);
            const PolynomialPlan plan(product, {.dtypes = dtypes, .compute = DType::float32, .instruction_set = isa});
            INFO(plan.explain());
            CHECK_FALSE(transposes(product, dtype));
            CHECK(relative_error(run_plan(plan, inputs, {.padding = 3}).outputs.at("out"), evaluate(product, inputs).at("out")) < 2e-6);
        }
    options.indices = {{"sender", "row", "node", false}};
    options.x.rows = row_of("sender");
    check_mix(tensor_product(fully_connected("24x1o+9x2e+5x0e", "0e+1o+2e", "6x0e"), options), 50);
}

namespace {
Polynomial gradients_of_product(const char* x, const char* y, const char* out, const TensorProductOptions& options,
                                const std::vector<std::string>& of = {"x", "y", "weights"}) {
    return vjp(tensor_product(fully_connected(Irreps(x), Irreps(y), Irreps(out)), options), of);
}
/// How many scalar products have gradients made in one pass.
int made_together(const Polynomial& polynomial) {
    const std::string text = choose_kernels(polynomial, available_instruction_sets().front(), "mix").kernels.front()->explain(),
                      before = "gradients in one pass of ";
    const std::size_t at = text.find(before);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + before.size()));
}
}  // namespace

TEST_CASE("gradients of scalar products of channels are made together, in both layouts, whole vectors of channels and parts of them") {
    TensorProductOptions options;
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir})
        for (const Addressing& weights : {shared_row(), each_row()})
            for (const auto& [x, out, products] : {std::tuple{"64x0e+24x1e+24x1o+16x2e+16x2o", "0o+6x0e", 5},
                                                   {"16x1o+17x2e+31x1e+70x2o", "2x0e+3x0o", 4},
                                                   {"33x0e+18x1o+15x1e", "40x0e+0o", 2},
                                                   {"16x2e", "4x0e", 1},
                                                   {"16x0e+17x0e+18x0e+19x0e+20x0e+21x0e+22x0e+23x0e+24x0e+25x0e", "2x0e", 10},
                                                   {"16x1o+17x1o+18x1o+19x1o+20x1o+21x1o+22x1o+23x1o+24x1o+25x1o", "2x0e", 10}}) {
                options.x.layout = layout;
                options.weights.rows = weights;
                const Polynomial gradients = gradients_of_product(x, "0e+1o+2e", out, options);
                CHECK(made_together(gradients) == products);
                for (const std::int64_t rows : {1, 7, 50}) check_mix(gradients, rows);
                for (const char* other : {"y", "weights"}) {  // two of them
                    const Polynomial two = gradients_of_product(x, "0e+1o+2e", out, options, {"x", other});
                    CHECK(made_together(two) == products);
                    check_mix(two);
                }
                CHECK(made_together(gradients_of_product(x, "0e+1o+2e", out, options, {"y", "weights"})) == 0);
            }
}

TEST_CASE("gradients of scalar products of channels beside other paths, with other letters, layouts that differ and converted rows") {
    TensorProductOptions options;
    // The gradient of y has other paths as well; a segment of x with two paths is for other loops.
    const Polynomial beside = gradients_of_product("16x0e+17x1o", "1o", "2x1o+3x0e", options);
    CHECK(made_together(beside) == 1);
    check_mix(beside);
    const Polynomial twice = gradients_of_product("16x1o+19x2e", "0e+1o+2e", "2x1o+3x0e", options);
    CHECK(made_together(twice) == 0);
    check_mix(twice);

    Polynomial empty = gradients_of_product("16x1o", "1o", "4x0e", options);  // an output of no channels
    for (Operand& operand : empty.operands)
        for (Segment& segment : operand.segments)
            if (segment.multiplicity == 4 || segment.multiplicity == 64) segment.multiplicity = 0;
    for (Path& path : empty.paths)
        for (auto& [letter, extent] : path.extents)
            if (extent == 4) extent = 0;
    validate(empty);
    CHECK(made_together(empty) == 0);
    const ReferenceInputs nothing = normal_inputs(empty, 23, 3, 7);
    const RunResult zero =
        run_plan(PolynomialPlan(empty, {.dtypes = std::vector<DType>(empty.operands.size(), DType::float32)}), nothing, {});
    for (const auto& [name, values] : evaluate(empty, nothing)) CHECK(zero.outputs.at(name) == values);

    const Polynomial product = gradients_of_product("24x1o+19x2e+16x0e", "0e+1o+2e", "5x0e", options);
    CHECK_FALSE(transposes(product));
    Polynomial differ = product;  // one of x and its gradient is turned, and so are both
    for (Operand& operand : differ.operands)
        if (operand.name == "x_gradient") operand.layout = Layout::ir_mul;
    CHECK(made_together(differ) == 3);
    CHECK(transposes(differ));
    check_mix(differ);

    for (const char* names : {"wu", "ba"}) {  // a matrix the other way round, and other letters in one path
        Polynomial renamed = product;
        for (Path& path : renamed.paths)
            for (Factor& factor : path.factors)
                if (factor.channels == "uw" && std::string(names) == "wu") factor.channels = names;
        for (Operand& operand : renamed.operands)
            if (std::string(names) == "ba" && operand.name == "y_gradient") {
                for (Path& path : renamed.paths) {
                    if (renamed.operands[static_cast<std::size_t>(path.output().operand)].name != "y_gradient") continue;
                    for (Factor& factor : path.factors)
                        for (char& letter : factor.channels) letter = letter == 'u' ? 'b' : 'a';
                    for (auto& [letter, extent] : path.extents) letter = letter == 'u' ? 'b' : 'a';
                    std::ranges::sort(path.extents);
                }
            }
        validate(renamed);
        CHECK(made_together(renamed) == 3);
        check_mix(renamed);
    }

    for (const DType dtype : {DType::bfloat16, DType::float64}) {
        std::vector<DType> dtypes(product.operands.size(), DType::float32);
        for (std::size_t o = 0; o < dtypes.size(); ++o)
            if (product.operands[o].name == "x" || product.operands[o].name == "x_gradient") dtypes[o] = dtype;
        const ReferenceInputs inputs = rounded_inputs(product, normal_inputs(product, 23, 3, 7), dtypes);
        const PolynomialPlan plan(product, {.dtypes = dtypes, .compute = DType::float32});
        const RunResult result = run_plan(plan, inputs, {.padding = 3});
        for (const auto& [given_name, values] : evaluate(product, inputs)) {
            const auto& name = given_name;
            INFO(name);
            CHECK(relative_error(result.outputs.at(name), values) < (name == "x_gradient" && dtype == DType::bfloat16 ? 4e-3 : 2e-6));
        }
    }
}

TEST_CASE("sums over channels into few outputs of rows that meet in one receiver") {
    LinearOptions options = linear_options(Layout::ir_mul, shared_row());
    for (const bool sorted : {false, true}) {
        options.indices = {{"receiver", "row", "node", sorted}};
        options.out.rows = row_of("receiver");
        check_mix(linear("33x0e+8x1o", "4x0e+1x1o", options), 50);
    }
}
