// Plans compute what the reference says, whatever the storage, the layout, the rows, the threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "base/error.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/linear.hpp"
#include "describe/text.hpp"
#include "support/normal_inputs.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

Polynomial small_convolution(Layout layout = Layout::ir_mul, bool sorted = true) {
    ConvolutionOptions options;
    options.x.layout = options.out.layout = layout;
    options.receivers_sorted = sorted;
    return convolution("8x0e+5x1o+3x2e", "0e+1o+2e", "0e+1o+2e", options);
}

/// Every way to address an output at once: per row, gathered and scattered, sorted, chained, shared.
Polynomial every_addressing(Layout layout) {
    Polynomial polynomial;
    polynomial.rows = "edge";
    polynomial.indices = {{"sender", "edge", "node", false}, {"receiver", "edge", "node", true}, {"graph", "node", "graph", true}};
    const auto operand = [&](const char* name, Role role, Addressing rows) {
        return Operand{name, segments_of(Irreps("4x1o+3x0e")), layout, role, std::move(rows)};
    };
    polynomial.operands = {operand("a", Role::input, each_row()),
                           operand("b", Role::input, row_of("sender")),
                           operand("c", Role::input, row_of("receiver")),
                           operand("d", Role::input, row_of(std::vector<std::string>{"receiver", "graph"})),
                           operand("e", Role::input, shared_row()),
                           operand("per_edge", Role::output, each_row()),
                           operand("scattered", Role::output, row_of("sender")),
                           operand("summed", Role::output, row_of("receiver")),
                           operand("pooled", Role::output, row_of(std::vector<std::string>{"receiver", "graph"})),
                           operand("pooled_by_sender", Role::output, row_of(std::vector<std::string>{"sender", "graph"})),
                           operand("total", Role::output, shared_row())};
    for (int in = 0; in < 5; ++in)
        for (int out = 5; out < 11; ++out) {
            Path vector;
            vector.factors = {{in, 0, "u", 0}, {(in + out) % 5, 1, "v", -1}, {out, 0, "u", 1}};
            vector.coefficients = Coefficients::identity(3);
            vector.scale = 0.1 * (in + 1) + out;
            vector.extents = {{'u', 4}, {'v', 3}};
            polynomial.paths.push_back(vector);
            Path scalar;
            scalar.factors = {{in, 1, "v", -1}, {(in + out + 1) % 5, 1, "v", -1}, {out, 1, "v", -1}};
            scalar.extents = {{'v', 3}};
            polynomial.paths.push_back(scalar);
        }
    return polynomial;
}

double largest_error(const RunResult& result, const std::map<std::string, ReferenceArray>& reference) {
    REQUIRE(result.surroundings_intact);
    REQUIRE(result.outputs.size() == reference.size());
    double largest = 0;
    for (const auto& [name, numbers] : reference) largest = std::max(largest, relative_error(result.outputs.at(name), numbers));
    return largest;
}

// Sums over all rows in float32 lose a unit per summand where summands are equal: few rows keep 2e-6, more are compared in float64.
const std::map<std::string, std::int64_t> few_rows{{"edge", 29}, {"node", 11}, {"graph", 3}};
const std::map<std::string, std::int64_t> some_rows{{"edge", 531}, {"node", 37}, {"graph", 4}};

std::string message_of(const auto& action) {
    try {
        action();
    } catch (const Error& error) { return error.what(); }
    return "no error";
}

}  // namespace

TEST_CASE("every addressing of inputs and outputs agrees with the reference, in both layouts, types of index, and with rows apart") {
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir})
        for (const int masked : {0, 5}) {
            const Polynomial polynomial = every_addressing(layout);
            const ReferenceInputs few = normal_inputs(polynomial, few_rows, 7, masked);
            const auto few_reference = evaluate(polynomial, few);
            CHECK(largest_error(run_plan(PolynomialPlan(polynomial), few), few_reference) < 2e-6);
            CHECK(largest_error(run_plan(PolynomialPlan(polynomial), few, {.padding = 5, .index_type = IndexType::int32}), few_reference) <
                  2e-6);
            const ReferenceInputs inputs = normal_inputs(polynomial, some_rows, 7, masked);
            const auto reference = evaluate(polynomial, inputs);
            const PlanOptions doubles{.dtypes = std::vector<DType>(polynomial.operands.size(), DType::float64)};
            CHECK(largest_error(run_plan(PolynomialPlan(polynomial, doubles), inputs, {.padding = 1}), reference) < 1e-13);
        }
}

TEST_CASE("results are bitwise equal for any number of threads") {
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir}) {
        const Polynomial polynomial = every_addressing(layout);
        const ReferenceInputs inputs = normal_inputs(polynomial, {{"edge", 20000}, {"node", 500}, {"graph", 3}}, 11, 50);
        const PolynomialPlan plan(polynomial);
        const RunResult alone = run_plan(plan, inputs);
        for (const int threads : {1, 2, 3, 7}) {
            ThreadPool pool(threads);
            const RunResult shared = run_plan(plan, inputs, {.parallel_for = pool.parallel_for()});
            CHECK(shared.outputs == alone.outputs);
        }
    }
}

TEST_CASE("storage types mix: conversions round once, sums are kept in the compute type") {
    const Polynomial polynomial = every_addressing(Layout::mul_ir);
    const std::size_t count = polynomial.operands.size();
    const DType all[] = {DType::float32, DType::float64, DType::bfloat16, DType::float16};
    for (int shift = 0; shift < 4; ++shift) {
        PlanOptions options;
        for (std::size_t o = 0; o < count; ++o) options.dtypes.push_back(all[(o + static_cast<std::size_t>(shift)) % 4]);
        // Compared in float64, so that the only error left is the outputs' own rounding: half a unit in the last place, 2^-9 for bfloat16.
        options.compute = DType::float64;
        const ReferenceInputs inputs = rounded_inputs(polynomial, normal_inputs(polynomial, some_rows, 13, 9), options.dtypes);
        const RunResult result = run_plan(PolynomialPlan(polynomial, options), inputs, {.padding = 3});
        REQUIRE(result.surroundings_intact);
        for (const auto& [given_name, numbers] : evaluate(polynomial, inputs)) {
            const auto& name = given_name;
            const DType dtype = options.dtypes[static_cast<std::size_t>(polynomial.find_operand(name))];
            const double unit = dtype == DType::float32    ? 0x1p-24
                                : dtype == DType::float64  ? 1e-13
                                : dtype == DType::bfloat16 ? 0x1p-8
                                                           : 0x1p-11;
            CAPTURE(name);
            CAPTURE(to_text(dtype));
            CHECK(relative_error(result.outputs.at(name), numbers) < unit);
            CHECK((dtype == DType::float64 || relative_error(result.outputs.at(name), numbers) > unit / 100));
        }
    }
}

TEST_CASE("arrays at any multiple of 4 bytes work, whatever their type: the same bits come out, and nothing beside the rows is touched") {
    const Polynomial polynomial = every_addressing(Layout::ir_mul);
    const ReferenceInputs inputs = normal_inputs(polynomial, some_rows, 7, 5);
    const DType all[] = {DType::float64, DType::float32, DType::float64, DType::bfloat16, DType::float16};
    std::vector<DType> mixed;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) mixed.push_back(all[o % 5]);
    for (const std::vector<DType>& dtypes : {std::vector<DType>(polynomial.operands.size(), DType::float64), mixed}) {
        const PolynomialPlan plan(polynomial, {.dtypes = dtypes});
        for (const std::int64_t padding : {0, 3}) {
            const RunResult aligned = run_plan(plan, inputs, {.padding = padding});
            const RunResult shifted = run_plan(plan, inputs, {.padding = padding, .shift = 4});
            CHECK(shifted.surroundings_intact);
            CHECK(shifted.outputs == aligned.outputs);
        }
    }
    const ReferenceInputs nothing = normal_inputs(polynomial, {{"edge", 0}, {"node", 0}, {"graph", 0}}, 23);
    const PolynomialPlan plan(polynomial, {.dtypes = std::vector<DType>(polynomial.operands.size(), DType::float64)});
    CHECK(run_plan(plan, nothing, {.shift = 4}).outputs == run_plan(plan, nothing).outputs);
}

TEST_CASE("products whose coefficients cancel give zero in every family") {
    // x cross x, where the description does not say that both are the same: its factors have different channels.
    const Polynomial polynomial = parse_polynomial(
        "clebsch polynomial 0\nbasis e3nn-0.5\nrows row\n"
        "input x: 1x1o+1x1o mul_ir @ each\noutput y: 1x(1)+1x1e mul_ir @ each\n"
        "path u=1: y.0[u] += -0.5 * cg(1e,1o,1o)[i,j,k] * x.0[u|j] * x.0[|i] * x.1[|k]\n"
        "path u=1: y.1[u|k] += 0.5 * cg(1o,1o,1e)[i,j,k] * x.0[u|i] * x.0[|j]\n");
    const ReferenceInputs inputs = normal_inputs(polynomial, {{"row", 9}}, 43);
    for (const char* family : {"", "lanes", "fold", "mix", "terms", "general"}) {
        CAPTURE(std::string(family));
        const RunResult result = run_plan(PolynomialPlan(polynomial, {.family = family}), inputs);
        for (const long double number : result.outputs.at("y")) CHECK(std::fabs(number) < 1e-6L);
    }
}

TEST_CASE("an output that no path writes is zero, masked rows of its index or not") {
    const Polynomial polynomial = parse_polynomial(
        "clebsch polynomial 0\nbasis e3nn-0.5\nrows node\nindex parent: node -> node\n"
        "input x: 2x(1) mul_ir @ each\noutput y: 2x(1) mul_ir @ each\noutput unused: 3x(1) mul_ir @ parent\n"
        "path u=2: y.0[u] += 1 * x.0[u] * x.0[u]\n");
    const ReferenceInputs inputs = normal_inputs(polynomial, {{"node", 50}}, 47, 2);
    for (const char* family : {"", "lanes", "fold", "mix", "terms", "general"}) {
        CAPTURE(std::string(family));
        CHECK(largest_error(run_plan(PolynomialPlan(polynomial, {.family = family}), inputs), evaluate(polynomial, inputs)) < 1e-6);
    }
}

TEST_CASE("a convolution agrees with the reference: sorted and unsorted receivers, layouts, masked edges, isolated nodes") {
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir})
        for (const bool sorted : {true, false})
            for (const int masked : {0, 3}) {
                const Polynomial polynomial = small_convolution(layout, sorted);
                const ReferenceInputs inputs = normal_inputs(polynomial, {{"edge", 257}, {"node", 90}}, 17, masked);
                CHECK(largest_error(run_plan(PolynomialPlan(polynomial), inputs), evaluate(polynomial, inputs)) < 2e-6);
            }
}

TEST_CASE("one receiver with nearly all edges is spread over parts and still sums in one order, in every kernel that sums") {
    struct Case {
        const char *in, *family;
        std::int64_t edges;
    };
    for (const Case& given : {Case{"2x0e+1x1o", "lanes", 20100}, Case{"48x0e+32x1o", "fold", 2100}, Case{"48x0e+32x1o", "terms", 2100}})
        for (const Layout layout : {Layout::ir_mul, Layout::mul_ir}) {
            CAPTURE(given.family);
            Polynomial polynomial = convolution(given.in, "0e+1o", "0e+1o");
            for (Operand& operand : polynomial.operands) operand.layout = layout;
            ReferenceInputs inputs = normal_inputs(polynomial, {{"edge", given.edges}, {"node", 9}}, 19);
            auto& receiver = inputs.indices.at("receiver");
            for (std::size_t i = 0; i < receiver.size(); ++i)
                receiver[i] = i < 50 ? 2 : static_cast<std::int64_t>(i) < given.edges - 50 ? 4 : 7;
            const PolynomialPlan plan(polynomial,
                                      {.dtypes = std::vector<DType>(polynomial.operands.size(), DType::float64), .family = given.family});
            const RunResult alone = run_plan(plan, inputs);
            CHECK(largest_error(alone, evaluate(polynomial, inputs)) < 1e-13);
            ThreadPool pool(3);
            CHECK(run_plan(plan, inputs, {.parallel_for = pool.parallel_for()}).outputs == alone.outputs);
        }
}

TEST_CASE("no rows, one row, no nodes, everything masked: outputs are what the sums over nothing are") {
    const Polynomial polynomial = every_addressing(Layout::mul_ir);
    for (const std::int64_t edges : {0, 1, 2}) {
        const ReferenceInputs inputs = normal_inputs(polynomial, {{"edge", edges}, {"node", 5}, {"graph", 2}}, 23);
        CHECK(largest_error(run_plan(PolynomialPlan(polynomial), inputs), evaluate(polynomial, inputs)) < 2e-6);
    }
    const ReferenceInputs nothing = normal_inputs(polynomial, {{"edge", 0}, {"node", 0}, {"graph", 0}}, 23);
    CHECK(largest_error(run_plan(PolynomialPlan(polynomial), nothing), evaluate(polynomial, nothing)) == 0);
    const ReferenceInputs masked = normal_inputs(polynomial, few_rows, 23, 1);
    CHECK(largest_error(run_plan(PolynomialPlan(polynomial), masked), evaluate(polynomial, masked)) < 2e-6);
}

TEST_CASE("masked edges contribute nothing even where their own inputs are not numbers") {
    const Polynomial polynomial = small_convolution();
    ReferenceInputs inputs = normal_inputs(polynomial, {{"edge", 100}, {"node", 10}}, 29, 4);
    auto& y = inputs.arrays.at("y");
    for (std::size_t e = 0; e < 100; ++e)
        if (inputs.indices.at("sender")[e] < 0 || inputs.indices.at("receiver")[e] < 0) y[e * 9 + 4] = NAN;
    CHECK(largest_error(run_plan(PolynomialPlan(polynomial), inputs), evaluate(polynomial, inputs)) < 2e-6);
}

TEST_CASE("one plan runs in two threads at once") {
    const Polynomial polynomial = small_convolution(Layout::mul_ir);
    const ReferenceInputs inputs = normal_inputs(polynomial, {{"edge", 3000}, {"node", 100}}, 31);
    const PolynomialPlan plan(polynomial);
    const RunResult alone = run_plan(plan, inputs);
    ThreadPool pool(2);
    RunResult results[2];
    std::thread other([&] { results[1] = run_plan(plan, inputs, {.parallel_for = pool.parallel_for()}); });
    results[0] = run_plan(plan, inputs, {.parallel_for = pool.parallel_for()});
    other.join();
    CHECK(results[0].outputs == alone.outputs);
    CHECK(results[1].outputs == alone.outputs);
}

TEST_CASE("linear maps, shared and per-row weights, agree with the reference") {
    for (const bool shared : {true, false}) {
        LinearOptions options;
        options.weights.rows = shared ? shared_row() : each_row();
        options.biases = scalar_segments("6x0e+4x1o");
        const Polynomial polynomial = linear("5x0e+3x1o", "6x0e+4x1o", options);
        const ReferenceInputs inputs = normal_inputs(polynomial, {{"row", 77}}, 37);
        CHECK(largest_error(run_plan(PolynomialPlan(polynomial), inputs), evaluate(polynomial, inputs)) < 2e-6);
    }
}

TEST_CASE("every instruction set of this machine agrees with the reference") {
    for (const InstructionSet isa : available_instruction_sets()) {
        const Polynomial polynomial = small_convolution();
        const ReferenceInputs inputs = normal_inputs(polynomial, {{"edge", 200}, {"node", 20}}, 41);
        CHECK(largest_error(run_plan(PolynomialPlan(polynomial, {.instruction_set = isa}), inputs), evaluate(polynomial, inputs)) < 2e-6);
    }
}

TEST_CASE("bad calls are refused before anything is written, naming the operand or index, what was expected and what came") {
    const Polynomial polynomial = small_convolution();  // x: 8 + 15 + 15 numbers, y: 9
    const PolynomialPlan plan(polynomial);
    std::vector<float> x(4 * 38), y(6 * 9), weights(6 * polynomial.operands[2].size()), out(4 * polynomial.operands[3].size(), 1.0F);
    std::vector<std::int64_t> sender{0, 1, 2, 3, 0, 1}, receiver{0, 0, 1, 2, 3, 3}, rows{6, 4};
    std::vector<Buffer> buffers{
        {x.data(), DType::float32, 4}, {y.data(), DType::float32, 6}, {weights.data(), DType::float32, 6}, {out.data(), DType::float32, 4}};
    std::vector<IndexBuffer> indices{{sender.data(), IndexType::int64, 6}, {receiver.data(), IndexType::int64, 6}};
    REQUIRE(plan.spaces() == std::vector<std::string>{"edge", "node"});
    std::vector<std::byte> workspace(plan.workspace_bytes(rows, 1));
    const auto launch = [&](Workspace memory) { plan.launch({.buffers = buffers, .indices = indices, .rows = rows}, memory); };
    const auto message = [&] { return message_of([&] { launch({workspace.data(), workspace.size()}); }); };
    REQUIRE(message() == "no error");
    std::fill(out.begin(), out.end(), 1.0F);

    const auto with = [&](auto& place, auto value) {
        const auto before = place;
        place = static_cast<std::decay_t<decltype(place)>>(value);
        const std::string text = message();
        place = before;
        return text;
    };
    CHECK(with(buffers[0].data, nullptr) == "operand 'x': the data pointer is null, expected 4 rows of 38 numbers");
    CHECK(with(buffers[3].data, nullptr).starts_with("operand 'out': the data pointer is null"));
    CHECK(with(buffers[1].dtype, DType::float64) == "operand 'y': expected float32, got float64");
    CHECK(with(buffers[0].rows, 5) == "operand 'x': expected 4 rows, got 5");
    CHECK(with(buffers[1].rows, -1) == "operand 'y': expected 6 rows, got -1");
    CHECK(with(buffers[0].row_stride, 37) == "operand 'x': a row has 38 numbers, got a row stride of 37");
    CHECK(with(buffers[0].row_stride, -38).find("negative") != std::string::npos);
    CHECK(with(buffers[0].row_stride, std::int64_t{1} << 61).find("exceed 2^63 bytes") != std::string::npos);
    CHECK(with(buffers[0].data, static_cast<void*>(reinterpret_cast<std::byte*>(x.data()) + 2)) ==
          "operand 'x': the address is not a multiple of 4 bytes");
    CHECK(with(buffers[3].data, static_cast<void*>(weights.data() + 100)) ==
          "operand 'out': an output may share no memory with other operands, it overlaps 'weights'");
    CHECK(with(sender[2], 4) == "index 'sender': entry 2 is 4, expected -1 or a row of 'node', which has 4");
    CHECK(with(sender[5], -2).starts_with("index 'sender': entry 5 is -2"));
    CHECK(with(sender[5], std::numeric_limits<std::int64_t>::max()).starts_with("index 'sender': entry 5 is 9223372036854775807"));
    CHECK(with(sender[5], std::numeric_limits<std::int64_t>::min()).starts_with("index 'sender': entry 5 is -9223372036854775808"));
    CHECK(with(receiver[1], 2) == "index 'receiver': declared as sorted, but entry 2 is 1 after 2");
    CHECK(with(indices[0].size, 5) == "index 'sender': expected 6 entries, one per row of 'edge', got 5");
    CHECK(with(indices[0].data, nullptr) == "index 'sender': the data pointer is null, expected 6 entries");
    CHECK(with(indices[1].data, static_cast<const void*>(reinterpret_cast<const std::byte*>(receiver.data()) + 2)) ==
          "index 'receiver': the address is not a multiple of 4 bytes");
    CHECK(with(rows[1], 3).starts_with("operand 'x': expected 3 rows, got 4"));
    CHECK(with(rows[0], -1) == "row space 'edge': expected at least 0 rows, got -1");
    CHECK(message_of([&] { launch({nullptr, workspace.size()}); }).find("got a null pointer") != std::string::npos);
    CHECK(message_of([&] { launch({workspace.data(), workspace.size() - 1}); }).starts_with("workspace: expected at least"));
    CHECK(message_of([&] { plan.launch({.buffers = std::span(buffers).first(3), .indices = indices, .rows = rows}, {}); }) ==
          "expected one buffer per operand (4), got 3");
    CHECK(message_of([&] { plan.launch({.buffers = buffers, .indices = std::span(indices).first(1), .rows = rows}, {}); }) ==
          "expected one array per index (2), got 1");
    CHECK(message_of([&] { plan.launch({.buffers = buffers, .indices = indices, .rows = std::span(rows).first(1)}, {}); }) ==
          "expected the number of rows of each of 2 spaces ('edge', 'node'), got 1");
    CHECK(std::all_of(out.begin(), out.end(), [](float number) { return number == 1.0F; }));
}

TEST_CASE("columns of one array may be inputs and outputs; overlapping columns may not") {
    Polynomial polynomial = linear("3x0e", "2x0e");
    const PolynomialPlan plan(polynomial);
    std::vector<float> table(4 * 8, 1.0F), weights(6, 1.0F);
    const std::vector<std::int64_t> rows{4};
    std::vector<std::byte> workspace(plan.workspace_bytes(rows, 1));
    const auto launch = [&](std::int64_t out_column) {
        const std::vector<Buffer> buffers{{table.data() + 2, DType::float32, 4, 8},
                                          {weights.data(), DType::float32, 1},
                                          {table.data() + out_column, DType::float32, 4, 8}};
        return message_of([&] { plan.launch({.buffers = buffers, .indices = {}, .rows = rows}, {workspace.data(), workspace.size()}); });
    };
    CHECK(launch(0) == "no error");
    CHECK(launch(5) == "no error");
    CHECK(launch(6) == "no error");
    CHECK(launch(1) != "no error");
    CHECK(launch(4) != "no error");
}

TEST_CASE("sizes beyond 2^63 are errors, not wrong sizes") {
    const PolynomialPlan plan(small_convolution(Layout::mul_ir, false));
    const std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    CHECK(message_of([&] { plan.workspace_bytes(std::vector<std::int64_t>{largest, largest}, 8); }).find("2^63") != std::string::npos);
    CHECK(message_of([&] {
              plan.workspace_bytes(std::vector<std::int64_t>{std::int64_t{1} << 40, std::int64_t{1} << 60}, 8);
          }).find("2^63") != std::string::npos);
    CHECK(plan.workspace_bytes(std::vector<std::int64_t>{std::int64_t{1} << 33, std::int64_t{1} << 32}, 1) > std::size_t{1} << 32);
}

TEST_CASE("plans refuse what they cannot do, naming it") {
    const Polynomial polynomial = small_convolution();
    CHECK(message_of([&] { PolynomialPlan(polynomial, {.dtypes = {DType::float32}}); }) == "expected one dtype per operand (4), got 1");
    CHECK(message_of([&] { PolynomialPlan(polynomial, {.compute = DType::bfloat16}); }) ==
          "expected float32 or float64 as the compute type, got bfloat16");
    CHECK(message_of([&] { PolynomialPlan(polynomial, {.family = "magic"}); }).starts_with("kernel family 'magic' is unknown"));
}

TEST_CASE("what thousands of small entries give is added up before it meets a great number that the output has from elsewhere") {
    const Polynomial polynomial = parse_polynomial(
        "clebsch polynomial 0\n"
        "basis e3nn-0.5\n"
        "rows edge\n"
        "input x: 2x2e mul_ir @ each\n"
        "input y: 2x3e mul_ir @ each\n"
        "input weights: 4x5e mul_ir @ each\n"
        "output out: 1x(1) mul_ir @ shared\n"
        "path u=1: out.0[u] += 1024\n"
        "path u=2 v=2 w=1: out.0[w] += 0.07 * cg(5e,3e,2e)[i,j,k] * x.0[u|k] * y.0[v|j] * weights.0[uvw|i]\n");
    const ReferenceInputs inputs = normal_inputs(polynomial, {{"edge", 9}}, 3);
    for (const char* family : {"", "general"}) {
        const RunResult result = run_plan(PolynomialPlan(polynomial, {.family = family}), inputs);
        CHECK(largest_error(result, evaluate(polynomial, inputs)) < 2e-7);
    }
}
