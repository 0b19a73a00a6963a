// The fold family computes what the reference says: convolutions and other channel-wise products, to second order, at every channel count,
// on every instruction set; and it shares what paths have in common.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <set>

#include "describe/derivative.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/text.hpp"
#include "schedule/cpu.hpp"
#include "schedule/fold.hpp"
#include "support/normal_inputs.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

constexpr unsigned seed = 11;

/// Every path with channels must be the family's.
void check_fold(const Polynomial& polynomial, std::int64_t rows) {
    const ReferenceInputs inputs = normal_inputs(polynomial, rows, 4, seed);
    const auto expected = evaluate(polynomial, inputs);
    for (const InstructionSet isa : available_instruction_sets())
        for (const DType dtype : {DType::float32, DType::float64}) {
            const PolynomialPlan plan(
                polynomial,
                {.dtypes = std::vector<DType>(polynomial.operands.size(), dtype), .compute = {}, .instruction_set = isa, .family = "fold"});
            INFO(plan.explain(), "\n", to_text(polynomial), "\nseed ", seed, ", ", to_text(isa), " ", to_text(dtype));
            for (const auto& kernel : choose_kernels(polynomial, isa, "fold").kernels)
                if (kernel->name() != "fold")
                    for (const int p : kernel->paths()) CHECK(polynomial.paths[static_cast<std::size_t>(p)].extents.empty());
            const RunResult result = run_plan(plan, inputs, {.padding = 3});
            CHECK(result.surroundings_intact);
            for (const auto& [given_name, values] : expected) {
                const auto& name = given_name;
                INFO(name);
                CHECK(relative_error(result.outputs.at(name), values) < (dtype == DType::float32 ? 2e-6 : 1e-13));
            }
        }
}

std::vector<std::string> inputs_of(const Polynomial& polynomial) {
    std::vector<std::string> names;
    for (const Operand& operand : polynomial.operands)
        if (operand.role == Role::input) names.push_back(operand.name);
    return names;
}

void check_to_second_order(const Polynomial& polynomial, std::int64_t rows) {
    check_fold(polynomial, rows);
    const Polynomial gradient = vjp(polynomial, inputs_of(polynomial));
    check_fold(gradient, rows);
    check_fold(vjp(gradient, inputs_of(gradient)), rows);
}

ConvolutionOptions in_layout(Layout layout) {
    ConvolutionOptions options;
    options.x.layout = options.out.layout = layout;
    return options;
}

FoldProgram program_of(const Polynomial& polynomial) {
    std::vector<int> all(polynomial.paths.size());
    for (std::size_t p = 0; p < all.size(); ++p) all[p] = static_cast<int>(p);
    return schedule_fold(polynomial, foldable_paths(polynomial, all));
}

}  // namespace

TEST_CASE("a convolution of unequal multiplicities, natural parity to l = 3, to second order") {
    check_to_second_order(convolution("13x0e+9x1o+5x2e+3x3o", "0e+1o+2e+3o", "0e+1o+2e+3o", in_layout(Layout::ir_mul)), 37);
}

TEST_CASE("both layouts and odd sums of l") {
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir})
        check_to_second_order(convolution("8x0e+6x1e+4x2e", "0e+1e+2e", "0e+1e+2e", in_layout(layout)), 21);
}

TEST_CASE("entries of a matrix that are zero for all harmonics are skipped where they are many, and whole vectors come out right") {
    std::set<std::ptrdiff_t> found;
    for (int l1 = 1; l1 <= 3; ++l1)
        for (int l3 = 1; l3 <= 3; ++l3)
            for (int l2 = std::max(1, std::abs(l1 - l3)); l2 <= std::min(4, l1 + l3); ++l2) {
                CAPTURE(l1);
                CAPTURE(l2);
                CAPTURE(l3);
                const auto irrep = [](int channels, int l) { return Irreps(std::to_string(channels) + "x" + std::to_string(l) + "e"); };
                const FoldProgram program = program_of(convolution(irrep(4, l1), irrep(1, l2), irrep(1, l3)));
                REQUIRE(program.matrices.size() == 1);
                std::uint64_t entries = 0;
                for (const FoldEntry& entry : program.matrices[0].entries)
                    entries |= std::uint64_t{1} << (entry.i * (2 * l3 + 1) + entry.k);
                const int size = (2 * l3 + 1) * (2 * l1 + 1), zeros = size - std::popcount(entries);
                const auto pattern = std::ranges::find_if(fold_patterns, [&](const FoldPattern& candidate) {
                    return candidate.outputs == 2 * l3 + 1 && candidate.inputs == 2 * l1 + 1 && candidate.entries == entries;
                });
                if (pattern != std::end(fold_patterns)) found.insert(pattern - fold_patterns);
                else CHECK((10 * zeros < size || l2 > 3));
            }
    CHECK(found.size() == fold_pattern_count);  // none has an entry that is always zero
    // 35 channels are full tiles with AVX2 and AVX-512 and a rest. Seven components are two chunks with AVX2, also from 0e.
    const Polynomial polynomial = convolution("35x0e+35x1e+35x2e+35x3e", "1e+2e+3e", "1e+2e+3e", in_layout(Layout::ir_mul));
    for (const std::int64_t rows : {37, 16, 3}) check_fold(polynomial, rows);
    for (const InstructionSet isa : available_instruction_sets()) {
        const std::string explanation = PolynomialPlan(polynomial, {.instruction_set = isa, .family = "fold"}).explain();
        const bool wide = isa == InstructionSet::avx2 || isa == InstructionSet::avx512;
        INFO(explanation);
        CHECK((explanation.find("(" + std::to_string(fold_pattern_count) + " skip zeros in float32)") != std::string::npos) == wide);
    }
}

TEST_CASE("any number of channels runs, whatever the width of a vector") {
    for (const int channels : {2, 3, 5, 13, 33, 89, 123, 128, 512}) {
        const std::string n = std::to_string(channels);
        check_to_second_order(convolution(Irreps(n + "x0e+" + n + "x1o"), "0e+1o", "0e+1o+2e", in_layout(Layout::ir_mul)), 9);
    }
}

TEST_CASE("degrees whose components need several chunks of rows") {
    check_to_second_order(convolution("4x4e+3x6e", "1o+4e", "4e+5o+7o", in_layout(Layout::ir_mul)), 5);
    check_fold(convolution("2x12e", "12e", "12e", in_layout(Layout::ir_mul)), 3);
}

TEST_CASE("blocks of every fill: fewer rows than lanes, exactly one step, one more") {
    const Polynomial polynomial = convolution("9x0e+8x1o", "0e+1o", "0e+1o", in_layout(Layout::ir_mul));
    const Polynomial gradient = vjp(polynomial, inputs_of(polynomial));
    for (const std::int64_t rows : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 100}) {
        check_fold(polynomial, rows);
        check_fold(gradient, rows);
    }
    check_fold(gradient, 0);
}

TEST_CASE("shared weights, and unsorted receivers") {
    ConvolutionOptions options = in_layout(Layout::ir_mul);
    options.weights.rows = shared_row();
    check_to_second_order(convolution("12x0e+9x1o", "0e+1o", "0e+1o+2e", options), 40);
    options = in_layout(Layout::ir_mul);
    options.receivers_sorted = false;
    check_to_second_order(convolution("12x0e+9x1o", "0e+1o", "0e+1o+2e", options), 40);
}

TEST_CASE(
    "rows gathered sixteen times have a place where vectors do not straddle cache lines, and are right when they come from elsewhere") {
    const Polynomial polynomial = convolution("16x0e+16x1o", "0e+1o", "0e+1o", in_layout(Layout::ir_mul));
    const PolynomialPlan plan(polynomial, {.dtypes = std::vector<DType>(polynomial.operands.size(), DType::float32)});
    const auto bytes_of = [&](std::int64_t edges) { return plan.workspace_bytes(std::vector<std::int64_t>{edges, 4}, 1); };
    REQUIRE(plan.spaces() == std::vector<std::string>{"edge", "node"});
    CHECK(bytes_of(64) >= bytes_of(63) + 4 * 64 * sizeof(float));
    check_fold(polynomial, 64);  // arrays of the tests lie at odd multiples of 4 bytes
}

TEST_CASE("rows gathered in order are converted or moved one by one as they come, over many blocks") {
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir}) {
        const Polynomial polynomial = convolution("16x0e+16x1o", "0e+1o", "0e+1o", in_layout(layout));
        const Polynomial gradient = vjp(polynomial, inputs_of(polynomial));
        for (const std::int64_t rows : {64, 200}) check_fold(gradient, rows);
        // Workspaces have a place for all rows of x at most, not for those of the cotangent, which have twice its numbers.
        const Polynomial of_weights = vjp(polynomial, std::vector<std::string>{"weights"});
        const PolynomialPlan plan(of_weights, {.dtypes = std::vector<DType>(of_weights.operands.size(), DType::float32)});
        const auto bytes_of = [&](std::int64_t nodes) { return plan.workspace_bytes(std::vector<std::int64_t>{16 * nodes, nodes}, 1); };
        REQUIRE(polynomial.operands.back().size() == 2 * polynomial.operands.front().size());
        CHECK(bytes_of(4000) - bytes_of(2000) < 2000 * 1.5 * sizeof(float) * static_cast<double>(polynomial.operands.front().size()));
    }
}

TEST_CASE("third derivatives: more channel-free factors in one path") {
    const Polynomial polynomial = convolution("5x0e+4x1o", "0e+1o", "0e+1o", in_layout(Layout::ir_mul));
    const Polynomial second = vjp(vjp(polynomial, inputs_of(polynomial)), std::vector<std::string>{"x", "y", "weights", "out_cotangent"});
    check_fold(vjp(second, inputs_of(second)), 11);
}

TEST_CASE("the three gradients of a path share one multiplication, and there is one reduction for dy") {
    const Polynomial polynomial = convolution("64x1o+32x2e", "1o+2e+3o", "1o+2e+3o");
    const FoldProgram forward = program_of(polynomial), gradient = program_of(vjp(polynomial, inputs_of(polynomial)));
    const std::size_t paths = polynomial.paths.size();
    CHECK(forward.multiplies.size() == paths);
    CHECK(forward.reduces.empty());
    CHECK(gradient.multiplies.size() == paths);
    CHECK(gradient.matrices.size() == paths);
    CHECK(gradient.reduces.size() == paths);
    for (const FoldMultiplyPlan& multiply : gradient.multiplies) CHECK(multiply.sinks.size() == 2);
    CHECK(gradient.blends.empty());
}

TEST_CASE("sums of the same rows follow one another with all their matrices, and rows of little memory come in long steps") {
    const Polynomial polynomial = convolution("64x1o+32x2e", "1o+2e+3o", "1o+2e+3o");
    const FoldProgram forward = program_of(polynomial);
    REQUIRE(forward.sums.size() == 2);
    CHECK(forward.sums[0].size() + forward.sums[1].size() == polynomial.paths.size());
    CHECK(forward.foldings.size() == 2);
    CHECK(forward.foldings[0].size() + forward.foldings[1].size() == forward.matrices.size());
    for (const std::vector<int>& sums : forward.sums)
        for (const int m : sums) {
            const FoldMultiplyPlan& first = forward.multiplies[static_cast<std::size_t>(sums[0])];
            const FoldMultiplyPlan& multiply = forward.multiplies[static_cast<std::size_t>(m)];
            CHECK(multiply.in.offset == first.in.offset);
            CHECK(multiply.channels == first.channels);
            CHECK((m == sums[0] || multiply.place != first.place));
        }
    CHECK(program_of(vjp(polynomial, inputs_of(polynomial))).sums.empty());
    const auto rows_of = [](const Polynomial& of) {
        std::vector<int> taken, all(of.paths.size());
        std::iota(all.begin(), all.end(), 0);
        return make_fold_kernel({&of, all, available_instruction_sets().front()}, taken)->preferred_rows();
    };
    CHECK(rows_of(polynomial) == 2 * sum_rows);
    CHECK(rows_of(vjp(polynomial, inputs_of(polynomial))) == 2 * fold_rows);
    CHECK(rows_of(convolution("128x0e+128x1o+128x2e", "0e+1o+2e+3o", "0e+1o+2e+3o")) == 2 * fold_rows);
}

TEST_CASE("sums whose matrices do not fit together") {
    check_fold(convolution("5x3o", "0e+1o+2e+3o+4e+5o+6e", "0e+1o+2e+3o+4e+5o+6e", in_layout(Layout::ir_mul)), 70);
}

TEST_CASE("a double backward folds two matrices a path, multiplies each of them twice, and reduces once") {
    const Polynomial polynomial = convolution("64x1o+32x2e", "1o+2e+3o", "1o+2e+3o");
    const Polynomial gradient = vjp(polynomial, inputs_of(polynomial));
    // Along tangents of dx, dy and dw, to x, y, w and the cotangent of out.
    const FoldProgram program = program_of(vjp(gradient, std::vector<std::string>{"x", "y", "weights", "out_cotangent"}));
    const std::size_t paths = polynomial.paths.size();
    CHECK(program.multiplies.size() == 4 * paths);
    CHECK(program.reduces.size() == paths);
}

TEST_CASE("coupling with 0e is a multiple of the identity and costs no matrix") {
    const FoldProgram program = program_of(convolution("8x2e", "0e", "2e"));
    REQUIRE(program.matrices.size() == 1);
    CHECK(program.matrices[0].diagonal);
}

TEST_CASE("dw and dy need no zeroing: the first step that writes them stores") {
    const Polynomial polynomial = convolution("8x0e+8x1o", "0e+1o", "0e+1o");
    const Polynomial gradient = vjp(polynomial, inputs_of(polynomial));
    std::vector<int> taken, all(gradient.paths.size());
    for (std::size_t p = 0; p < all.size(); ++p) all[p] = static_cast<int>(p);
    const auto kernel = make_fold_kernel({&gradient, all, available_instruction_sets().front()}, taken);
    const OverwriteMap overwritten = kernel->overwritten();
    for (const char* name : {"weights_gradient", "y_gradient"})
        for (const bool stored : overwritten[static_cast<std::size_t>(gradient.find_operand(name))]) CHECK(stored);
    for (const bool stored : overwritten[static_cast<std::size_t>(gradient.find_operand("x_gradient"))]) CHECK_FALSE(stored);
}

TEST_CASE("sums of a sorted receiver need no zeroing: they are stored where a row begins, if all of the row is") {
    const auto begun = [](const Polynomial& polynomial) {
        std::vector<int> taken, all(polynomial.paths.size());
        for (std::size_t p = 0; p < all.size(); ++p) all[p] = static_cast<int>(p);
        const OverwriteMap map = make_fold_kernel({&polynomial, all, available_instruction_sets().front()}, taken)->overwritten();
        return map[static_cast<std::size_t>(polynomial.find_operand("out"))];
    };
    Polynomial polynomial = convolution("8x0e+8x1o", "0e+1o", "0e+1o");
    for (const bool stored : begun(polynomial)) CHECK(stored);
    polynomial.paths.pop_back();  // a segment that nothing writes
    for (const bool stored : begun(polynomial)) CHECK_FALSE(stored);
    ConvolutionOptions unsorted;
    unsorted.receivers_sorted = false;
    for (const bool stored : begun(convolution("8x0e+8x1o", "0e+1o", "0e+1o", unsorted))) CHECK_FALSE(stored);
}

TEST_CASE("a segment of one channel that is written with and without its channel holds both contributions") {
    const Polynomial polynomial = parse_polynomial(
        "clebsch polynomial 0\nbasis e3nn-0.5\nrows row\n"
        "input a: 4x(1)+1x(1) ir_mul @ each\ninput b: 4x(1)+1x(1) ir_mul @ each\noutput out: 1x(1) ir_mul @ each\n"
        "path u=4: out.0 += a.0[u] * b.0[u]\n"
        "path u=1: out.0[u] += 0.5 * a.1[u] * b.1\n");
    // Asked directly: choose_kernels gives paths of one channel to other families.
    std::vector<int> taken;
    const auto kernel = make_fold_kernel({&polynomial, {0, 1}, available_instruction_sets().front()}, taken);
    REQUIRE(taken.size() == 2);
    constexpr int rows = 5;
    const ReferenceInputs inputs = normal_inputs(polynomial, rows, 1, seed);
    const ReferenceArray expected = evaluate(polynomial, inputs).at("out");
    const std::vector<double> a(inputs.arrays.at("a").begin(), inputs.arrays.at("a").end()),
        b(inputs.arrays.at("b").begin(), inputs.arrays.at("b").end());
    double out[rows];
    // As the executor does: zero, except what the kernel says it stores.
    std::fill_n(out, rows, kernel->overwritten()[2][0] ? 1e9 : 0.0);
    const double *a_rows[rows], *b_rows[rows];
    double* out_rows[rows];
    for (int r = 0; r < rows; ++r) a_rows[r] = a.data() + 5 * r, b_rows[r] = b.data() + 5 * r, out_rows[r] = out + r;
    const double* const* const in[] = {a_rows, b_rows, nullptr};
    double* const* const outputs[] = {nullptr, nullptr, out_rows};
    std::vector<std::byte> memory(kernel->scratch_bytes(sizeof(double), rows) + 64);
    std::byte* scratch = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
    kernel->run(Block<double>{.rows = rows, .inputs = in, .outputs = outputs, .scratch = scratch});
    for (int r = 0; r < rows; ++r)
        CHECK(out[r] == doctest::Approx(static_cast<double>(expected[static_cast<std::size_t>(r)])).epsilon(1e-14));
}

TEST_CASE("multiply-adds are those counted by hand") {
    const auto count = [](const Polynomial& polynomial) {
        std::vector<int> taken, all(polynomial.paths.size());
        for (std::size_t p = 0; p < all.size(); ++p) all[p] = static_cast<int>(p);
        return make_fold_kernel({&polynomial, all, available_instruction_sets().front()}, taken)->estimate().multiply_adds;
    };
    const auto coefficients = [](const Polynomial& polynomial) {
        return static_cast<double>(polynomial.paths[0].coefficients.entries().size());
    };
    const Polynomial scalar = convolution("32x2e", "0e", "2e"), forward = convolution("64x1o", "1o", "2e");
    CHECK(count(scalar) == 32 * (5 + 1) + 1);
    CHECK(count(forward) == 64 * (3 * 5 + 3) + coefficients(forward));
    // t = M^T g once (15); dx += w t (3) and dw = x . t (3); dy from g (w x)^T (15 + 3), and its contraction.
    CHECK(count(vjp(forward, inputs_of(forward))) == 64 * (15 + 3 + 3 + 15 + 3) + 2 * coefficients(forward));
}
