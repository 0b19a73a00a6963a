// Emitted kernels, run on the host thread by thread, against the reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "describe/derivative.hpp"
#include "describe/operations/gate.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/norm.hpp"
#include "describe/operations/tensor_product.hpp"
#include "describe/ordered.hpp"
#include "describe/rewrites.hpp"
#include "describe/text.hpp"
#include "emit/emitted.hpp"
#include "schedule/gpu_order.hpp"
#include "support/channelwise.hpp"
#include "support/coverage.hpp"
#include "support/network_layers.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

/// The case with inputs stored in several types, and rounded to them; outputs stay float64, which all that is added to has to be.
EmittedCase with_storage(random::Engine& engine, EmittedCase one) {
    const GpuNumber all[] = {GpuNumber::float64, GpuNumber::float32, GpuNumber::bfloat16, GpuNumber::bfloat16};
    std::vector<DType> dtypes;
    for (const Operand& operand : one.polynomial.operands) {
        one.storage.push_back(operand.role == Role::input ? all[engine() % 4] : GpuNumber::float64);
        dtypes.push_back(one.storage.back() == GpuNumber::float32    ? DType::float32
                         : one.storage.back() == GpuNumber::bfloat16 ? DType::bfloat16
                                                                     : DType::float64);
    }
    one.inputs = rounded_inputs(one.polynomial, std::move(one.inputs), dtypes);
    return one;
}

constexpr double exact = 1e-11, bfloat16_rounding = 1.0 / 256;

void compare(const std::vector<EmittedCase>& cases, double tolerance = exact) {
    const auto results = run_emitted(cases);
    for (std::size_t i = 0; i < cases.size(); ++i)
        for (const auto& [name, numbers] : evaluate(cases[i].polynomial, cases[i].inputs)) {
            const double error = relative_error(results[i].at(name), numbers);
            if (error > tolerance)
                FAIL_CHECK("case " << i << ", output " << name << ": error " << error << " in\n" << to_text(cases[i].polynomial));
        }
}

}  // namespace

TEST_CASE("general kernels of random polynomials and their derivatives give the reference's numbers") {
    if (!has_host_compiler()) return;
    constexpr std::uint64_t seed = 70'240;
    MESSAGE("seed " << seed);
    random::Limits limits;
    limits.work = 6'000;
    limits.path_work = 1'000;
    limits.rows = 12;
    std::vector<EmittedCase> cases;
    Coverage coverage;
    for (std::uint64_t i = 0; i < 16; ++i) {
        random::Engine engine(seed + i);
        const Polynomial polynomial = random::gradients(random::polynomial(engine, limits), i % 8 == 7 ? 2 : static_cast<int>(i % 2));
        coverage.add(polynomial);
        cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "general"});
    }
    MESSAGE(coverage.to_text());
    compare(cases);
}

TEST_CASE("the kernel that reads its coefficients at run time gives the reference's numbers for channel-wise polynomials of any order") {
    if (!has_host_compiler()) return;
    constexpr std::uint64_t seed = 75'240;
    MESSAGE("seed " << seed);
    std::vector<EmittedCase> cases;
    Coverage coverage;
    int refused = 0;
    for (std::uint64_t i = 0; cases.size() < 14; ++i) {
        random::Engine engine(seed + i);
        const int order = static_cast<int>(cases.size() % 4);
        random::Limits limits;
        limits.rows = 40;
        limits.work = 4e4;
        limits.path_work = 1'000;
        const bool any = i % 3 == 0;  // else convolutions and products
        Polynomial polynomial =
            random::gradients(any ? random::polynomial(engine, limits) : random::channelwise(engine, 33, order == 3 ? 1 : 2), order);
        if (i % 5 == 1)
            for (Index& index : polynomial.indices) index.sorted = false;
        const GpuProblem problem{.polynomial = polynomial,
                                 .storage = std::vector<GpuNumber>(polynomial.operands.size(), GpuNumber::float64),
                                 .compute = GpuNumber::float64,
                                 .target = gpu_target("sm_90")};
        std::string why_not;
        if (!schedule_table(problem, why_not)) {
            CHECK(any);
            CHECK(why_not.find("channel-wise") != std::string::npos);
            ++refused;
            continue;
        }
        cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "table"});
        if (cases.size() % 2 == 0) cases.back() = with_storage(engine, std::move(cases.back()));
        coverage.add(polynomial);
        coverage.add(cases.back().inputs);
        coverage.count("order", std::to_string(order));
    }
    CHECK(refused > 0);
    MESSAGE(coverage.to_text());
    compare(cases);
}

TEST_CASE("stream kernels of convolutions and products give the reference's numbers on ragged, masked graphs") {
    if (!has_host_compiler()) return;
    constexpr std::uint64_t seed = 80'240;
    MESSAGE("seed " << seed);
    std::vector<EmittedCase> cases;
    Coverage coverage;
    for (std::uint64_t i = 0; cases.size() < 12 && i < 60; ++i) {
        random::Engine engine(seed + i);
        const int order = static_cast<int>(cases.size() % 3);
        const Polynomial polynomial = random::gradients(random::channelwise(engine, cases.size() % 2 == 0 ? 40 : 32, 2), order);
        GpuProblem problem{.polynomial = polynomial,
                           .storage = std::vector<GpuNumber>(polynomial.operands.size(), GpuNumber::float64),
                           .compute = GpuNumber::float64,
                           .target = gpu_target("sm_90")};
        std::string why_not;
        if (!schedule_stream(problem, why_not)) continue;
        if (cases.size() % 3 != 2 && polynomial.indices.empty()) continue;  // most of them on graphs
        random::Limits limits;
        limits.rows = 70;
        limits.work = 4e5;
        cases.push_back(
            {polynomial, random::inputs(engine, polynomial, limits), cases.size() < 6 ? "stream" : "stream-split", cases.size() % 4 < 2});
        // What a gradient takes the place of in a stage is stored as it is.
        if (cases.size() % 5 < 2 && order == 0) cases.back() = with_storage(engine, std::move(cases.back()));
        coverage.add(polynomial);
        coverage.add(cases.back().inputs);
        coverage.count("order", std::to_string(order));
    }
    CHECK(cases.size() == 12);
    MESSAGE(coverage.to_text());
    compare(cases);
}

TEST_CASE("stream kernels whose consumers have registers to spare, because the compiler spilled, give the reference's numbers") {
    if (!has_host_compiler()) return;
    constexpr std::uint64_t seed = 90'240;
    MESSAGE("seed " << seed);
    std::vector<EmittedCase> cases;
    int frugal = 0, parked = 0, roomier = 0;
    for (std::uint64_t i = 0; cases.size() < 9 && i < 90; ++i) {
        random::Engine engine(seed + i);
        const Polynomial polynomial =
            random::gradients(random::channelwise(engine, cases.size() % 2 == 0 ? 40 : 32, 2), static_cast<int>(cases.size() % 3));
        if (polynomial.indices.empty() && cases.size() % 3 != 2) continue;
        GpuProblem problem{.polynomial = polynomial,
                           .storage = std::vector<GpuNumber>(polynomial.operands.size(), GpuNumber::float64),
                           .compute = GpuNumber::float64,
                           .target = gpu_target("sm_90")};
        std::string why_not;
        const std::optional<StreamSchedule> usual = schedule_stream(problem, why_not);
        if (!usual) continue;
        problem.spare = {.frugal = true, .least = usual->spare_registers + 1, .wanted = usual->spare_registers + 12};
        const std::optional<StreamSchedule> schedule = schedule_stream(problem, why_not);
        REQUIRE(schedule);
        frugal += schedule->frugal ? 1 : 0;
        parked += schedule->parked_numbers > usual->parked_numbers ? 1 : 0;
        roomier += schedule->spare_registers >= problem.spare.least ? 1 : 0;
        random::Limits limits;
        limits.rows = 70;
        limits.work = 4e5;
        cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "stream-whole", cases.size() % 4 < 2});
        cases.back().spare = problem.spare;
    }
    CHECK(cases.size() == 9);
    CHECK(frugal >= 5);
    CHECK(parked >= 1);
    CHECK(roomier >= 7);
    compare(cases);
}

TEST_CASE("sums in a fixed order: random polynomials, convolutions and their derivatives give the reference's numbers") {
    if (!has_host_compiler()) return;
    constexpr std::uint64_t seed = 66'240;
    MESSAGE("seed " << seed);
    std::vector<EmittedCase> cases;
    Coverage coverage;
    for (std::uint64_t i = 0; i < 24; ++i) {
        random::Engine engine(seed + i);
        random::Limits limits;
        const bool any = i % 2 == 0;  // else channel-wise, on the stream schedule where it takes them
        limits.work = any ? 6'000 : 4e5;
        limits.path_work = 1'000;
        limits.rows = any ? 40 : 70;
        const int order = static_cast<int>(i / 2 % 3);
        const Polynomial polynomial =
            random::gradients(any ? random::polynomial(engine, limits) : random::channelwise(engine, 32, 1), order);
        cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "", i % 4 == 1, true});
        coverage.add(polynomial);
        coverage.add(cases.back().inputs);
        for (const OrderedPass& pass : ordered_passes(polynomial))
            coverage.count("pass", pass.order.empty()                                              ? "rows as they come"
                                   : std::ranges::find(pass.messages, true) != pass.messages.end() ? "messages"
                                                                                                   : "rows in another order");
    }
    MESSAGE(coverage.to_text());
    compare(cases);
}

TEST_CASE("a receiver with thousands of rows is divided, in a fixed order of sums or not, masked rows and whole masked chunks among them") {
    if (!has_host_compiler()) return;
    std::vector<EmittedCase> cases;
    for (int order = 0; order < 2; ++order)
        for (const auto& [in, schedule, ordered] : {std::tuple{"4x0e", "", true},
                                                    {"4x0e", "general", true},
                                                    {"4x0e+4x1o", "stream-split", order == 0},
                                                    {"4x0e+4x1o", "stream-split", false}}) {
            random::Engine engine(4);
            const Polynomial polynomial = random::gradients(convolution(Irreps(in), Irreps("1x0e+1x1o"), Irreps("0e+1o")), order);
            ReferenceInputs inputs;
            constexpr std::int64_t edges = 4500, nodes = 40;
            inputs.rows = {{"edge", edges}, {"node", nodes}};
            for (std::int64_t e = 0; e < edges; ++e) {
                const bool masked = e % 11 == 3 || (e > 1000 && e < 1100) || (e > 2040 && e < 2110);
                inputs.indices["receiver"].push_back(masked ? -1 : e < 500 ? e / 50 : e < 2070 ? 15 : e < 4300 ? 17 : 18 + (e - 4300) / 17);
                inputs.indices["sender"].push_back(e % 13 == 5 || (e > 3000 && e < 3080) ? -1
                                                                                         : static_cast<std::int64_t>(engine() % nodes));
            }
            std::normal_distribution<double> normal;
            for (const Operand& operand : polynomial.operands)
                if (operand.role == Role::input)
                    for (std::int64_t i = 0; i < (polynomial.space_of(operand) == "edge" ? edges : nodes) * operand.size(); ++i)
                        inputs.arrays[operand.name].push_back(normal(engine));
            cases.push_back({polynomial, inputs, schedule, true, ordered});
        }
    compare(cases);
}

TEST_CASE("stream kernels leave sums of 16-bit outputs in the compute type, be it rows that are added to or gradients of several kernels") {
    if (!has_host_compiler()) return;
    std::vector<EmittedCase> cases;
    for (const auto& [order, schedule] : {std::pair{1, "stream"}, {1, "stream-split"}, {2, "stream-split"}}) {
        random::Engine engine(7 + order);
        const Polynomial polynomial = random::gradients(convolution(Irreps("34x0e+32x1o"), Irreps("0e+1o"), Irreps("0e+1o")), order);
        random::Limits limits;
        limits.rows = 60;
        limits.work = 4e5;
        const std::size_t operands = polynomial.operands.size();
        EmittedCase one{polynomial, random::inputs(engine, polynomial, limits), schedule, order == 1};
        one.storage.assign(operands, GpuNumber::bfloat16);
        one.inputs = rounded_inputs(polynomial, std::move(one.inputs), std::vector<DType>(operands, DType::bfloat16));
        cases.push_back(std::move(one));
    }
    compare(cases, bfloat16_rounding);
}

TEST_CASE("rows without channels of any size, type and stride are carried by the producer") {
    if (!has_host_compiler()) return;
    std::vector<EmittedCase> cases;
    const auto add = [&](const Polynomial& polynomial, GpuNumber type, std::int64_t gap) {
        random::Engine engine(31 + cases.size());
        const std::size_t operands = polynomial.operands.size();
        random::Limits limits;
        limits.rows = 90;
        limits.work = 6e5;
        EmittedCase one{polynomial, random::inputs(engine, polynomial, limits), "stream", gap == 0};
        one.gap = gap;
        for (const Operand& operand : polynomial.operands) one.storage.push_back(operand.role == Role::input ? type : GpuNumber::float64);
        const DType dtype = type == GpuNumber::bfloat16 ? DType::bfloat16 : type == GpuNumber::float32 ? DType::float32 : DType::float64;
        std::vector<DType> dtypes(operands, DType::float64);
        for (std::size_t o = 0; o < operands; ++o)
            if (polynomial.operands[o].role == Role::input) dtypes[o] = dtype;
        one.inputs = rounded_inputs(polynomial, std::move(one.inputs), dtypes);
        GpuProblem problem{.polynomial = polynomial, .storage = one.storage, .compute = GpuNumber::float64, .target = gpu_target("sm_90")};
        std::string why_not;
        const auto schedule = schedule_stream(problem, why_not);
        REQUIRE_MESSAGE(schedule, why_not);
        CHECK(std::ranges::any_of(schedule->operands, &StreamOperand::carried));
        cases.push_back(std::move(one));
    };
    const Irreps in("64x0e+64x1o"), edge("0e+1o+2e");
    const Polynomial product = convolution(in, edge, Irreps("0e+1o"));
    for (const std::int64_t gap : {0, 3}) {
        add(product, GpuNumber::bfloat16, gap);
        add(random::gradients(product, 1), GpuNumber::bfloat16, gap);
        add(product, GpuNumber::float32, gap);
        add(product, GpuNumber::float64, gap);  // 9 numbers of 8 bytes
    }
    ConvolutionOptions unsorted;
    unsorted.receivers_sorted = false;
    add(in_order_of(convolution(in, edge, Irreps("0e+1o"), unsorted), "receiver"), GpuNumber::bfloat16, 0);
    compare(cases);
}

TEST_CASE("numbers of the receiver that registers do not hold lie in shared memory, lanes beyond the channels among them") {
    if (!has_host_compiler()) return;
    std::vector<EmittedCase> cases;
    for (const auto& [in, edge, order] : {std::tuple{"34x3o", "1x3o", 1}, {"34x2e", "1x2e", 2}}) {
        random::Engine engine(29 + order);
        const Polynomial polynomial = random::gradients(convolution(Irreps(in), Irreps(edge), Irreps("")), order);
        const GpuProblem problem{.polynomial = polynomial,
                                 .storage = std::vector<GpuNumber>(polynomial.operands.size(), GpuNumber::float64),
                                 .compute = GpuNumber::float64,
                                 .target = gpu_target("sm_90")};
        std::string why_not;
        const std::vector<StreamKernel> kernels = stream_kernels(problem, why_not);
        REQUIRE_MESSAGE(!kernels.empty(), why_not);
        CHECK(std::ranges::any_of(kernels, [](const StreamKernel& kernel) { return kernel.schedule.parked_numbers > 0; }));
        random::Limits limits;
        limits.rows = 60;
        limits.work = 4e5;
        cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "stream", order == 1});
    }
    compare(cases);
}

TEST_CASE("a segment of one channel that one path takes by channel and another as one number for all") {
    if (!has_host_compiler()) return;
    const Polynomial polynomial = parse_polynomial(R"(clebsch polynomial 0
basis e3nn-0.5
rows edge
index receiver: edge -> node
input x: 1x(1) mul_ir @ each
input y: 1x(1) mul_ir @ each
input z: 1x1 mul_ir @ shared
output out: 1x1+13x1o mul_ir @ receiver
path u=1: out.0[u|k] += cg(0,1,1)[i,j,k] * x.0[u|i] * z.0[u|j]
path k=13: out.1[k|i] += cg(1o,0o,1e)[i,j,k] * y.0[|j] * z.0[|k]
)");
    random::Engine engine(20'277'136);
    random::Limits limits;
    limits.rows = 60;
    std::vector<EmittedCase> cases;
    for (const bool ordered : {false, true}) cases.push_back({polynomial, random::inputs(engine, polynomial, limits), "", false, ordered});
    compare(cases);
}

TEST_CASE("stream kernels take outputs with segments that no path writes, which are zero") {
    if (!has_host_compiler()) return;
    std::vector<EmittedCase> cases;
    for (const bool ordered : {false, true})
        for (const auto& [order, schedule] : {std::pair{1, "stream"}, {1, "stream-split"}, {2, "stream-split"}}) {
            random::Engine engine(11 + order);
            const Polynomial polynomial =
                random::gradients(convolution(Irreps("4x0e+4x1e+8x2e"), Irreps("1x0e+1x1o+1x2e"), Irreps("0e")), order);
            random::Limits limits;
            limits.rows = 60;
            limits.work = 4e5;
            cases.push_back({polynomial, random::inputs(engine, polynomial, limits), schedule, order == 1, ordered});
        }
    compare(cases);
}

TEST_CASE("a receiver's number that meets coefficients on an axis in one path and on none in another is scaled in both") {
    if (!has_host_compiler()) return;
    random::Engine engine(60275);
    const Polynomial polynomial = random::gradients(random::channelwise(engine, 48, 2), 2);
    random::Limits limits;
    limits.rows = 60;
    limits.work = 4e5;
    compare(std::vector<EmittedCase>{{polynomial, random::inputs(engine, polynomial, limits), "stream", true}});
}

namespace {

void compare(const std::vector<EmittedProgram>& cases, const char* what, int EmittedProgramResult::*kind) {
    const auto results = run_emitted(cases);
    int met = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        met += results[i].*kind;
        for (const auto& [name, numbers] : evaluate(cases[i].program, cases[i].inputs)) {
            const double error = relative_error(results[i].outputs.at(name), numbers);
            if (!(error < 1e-11))
                FAIL_CHECK("case " << i << ", output " << name << ": error " << error << " in\n" << to_text(cases[i].program));
        }
    }
    MESSAGE(met << " " << std::string(what));
    CHECK(met > 0);
}

/// Tiles of threads, for few rows and the fewest, of warps with tensor instructions.
std::vector<std::vector<MatrixTile>> all_tiles() {
    return {matrix_tiles(GpuNumber::float64, MatrixRows::many), matrix_tiles(GpuNumber::float64, MatrixRows::few),
            matrix_tiles(GpuNumber::float64, MatrixRows::fewest), matrix_tiles(GpuNumber::float32, MatrixRows::many)};
}

}  // namespace

TEST_CASE("random programs run as tapes, number by number and as polynomials") {
    if (!has_host_compiler()) return;
    constexpr std::uint64_t seed = 91'000;
    MESSAGE("seed " << seed);
    random::Limits limits;
    limits.work = 4'000;
    limits.path_work = 400;
    limits.rows = 9;
    std::vector<EmittedProgram> cases;
    Coverage coverage;
    for (std::uint64_t i = 0; i < 24; ++i) {
        random::Engine engine(seed + i);
        const Program program = random::program(engine, limits);
        coverage.add(program);
        cases.push_back({program, random::inputs(engine, program, limits)});
    }
    MESSAGE(coverage.to_text());
    compare(cases, "tapes", &EmittedProgramResult::tapes);
}

TEST_CASE("norms and gates of atoms and their derivatives run as chains of steps") {
    if (!has_host_compiler()) return;
    std::vector<EmittedProgram> cases;
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir}) {
        const Irreps mixed("70x0e+24x1o+12x2e");  // 34 scalars and 36 gates
        LayerNormOptions norm;
        GateOptions gates;
        norm.rows = gates.rows = "node";
        norm.x.layout = norm.out.layout = gates.x.layout = gates.out.layout = layout;
        const Activation silu{Function{FunctionKind::silu, 0}, 1.5};
        ProgramBuilder builder;
        const int x = builder.input("x", "node", segments_of(mixed), layout);
        const int scales = builder.input("scales", "", {{70, 1, {}}, {24, 1, {}}, {12, 1, {}}});
        const int normed = builder.apply("normed", layer_norm(mixed, norm), {x, scales}).front();
        const Program gate = clebsch::gate(Irreps("34x0e"), {silu}, Irreps("36x0e"), {silu}, Irreps("24x1o+12x2e"), gates);
        const Program program = builder.finish({builder.apply("h", gate, {normed}).front()});
        for (const Program& one : {program, value_and_vjp(program, std::vector<std::string>{"x"})}) {
            random::Engine engine(11 + cases.size());
            random::Limits limits;
            limits.rows = 60;
            limits.work = 1e6;
            cases.push_back({one, random::inputs(engine, one, limits)});
        }
    }
    compare(cases, "chains", &EmittedProgramResult::chains);
}

TEST_CASE("layers of networks and their derivatives run as matrix products, too") {
    if (!has_host_compiler()) return;
    std::vector<EmittedProgram> cases;
    for (const std::vector<MatrixTile>& tiles : all_tiles())
        for (const Layout layout : {Layout::ir_mul, Layout::mul_ir}) {
            NetworkLayers layers{
                .features = Irreps("17x0e+9x1o"), .harmonics = Irreps("0e+1o"), .hidden = 37, .layers = 1, .layout = layout};
            Program program = network_layers(layers);
            if (layout == Layout::ir_mul) program = value_and_vjp(program, std::vector<std::string>{"vectors", "x"});
            random::Engine engine(5);
            random::Limits limits;
            limits.rows = 40;
            limits.work = 1e7;
            cases.push_back({program, random::inputs(engine, program, limits), tiles});
        }
    compare(cases, "matrix products", &EmittedProgramResult::matrices);
}

TEST_CASE("polynomials that mix channels and their derivatives run as matrix products, of what meets the matrix where that is several") {
    CHECK(!with_matrix_products(linear(Irreps("7x0e"), Irreps("9x0e"))));
    CHECK(!with_matrix_products(tensor_product(fully_connected("200x0e", "200x0e", "8x0e"))));  // 40,000 products a row
    if (!has_host_compiler()) return;
    const Polynomial map = linear(Irreps("17x0e+9x1o"), Irreps("8x0e+10x1o"), {.biases = {0}});
    const Polynomial edge = tensor_product(fully_connected("9x0e+8x1o", "0e+1o", "10x0e+8x1o"));
    const Polynomial both = tensor_product(fully_connected("9x0e+8x1o", "2x0e+3x1o", "10x0e+8x1o"));
    std::vector<EmittedProgram> cases;
    for (const Polynomial& one : {map, vjp(map, std::vector<std::string>{"x"}), vjp(map, std::vector<std::string>{"x", "weights"}), edge,
                                  vjp(edge, std::vector<std::string>{"x"}), vjp(edge, std::vector<std::string>{"x", "y", "weights"}), both,
                                  vjp(both, std::vector<std::string>{"x"}), vjp(both, std::vector<std::string>{"x", "y", "weights"})}) {
        const std::optional<Program> program = with_matrix_products(one);
        REQUIRE(program);
        random::Engine engine(25 + cases.size());
        random::Limits limits;
        limits.rows = 40;
        limits.work = 1e7;
        cases.push_back({*program, random::inputs(engine, *program, limits)});
        for (const auto& [name, numbers] : evaluate(one, cases.back().inputs))
            CHECK(relative_error(evaluate(*program, cases.back().inputs).at(name), numbers) < exact);
    }
    compare(cases, "matrix products", &EmittedProgramResult::matrices);
}

TEST_CASE("gradients of weights that all rows share are sums over chunks of rows, of products where several inputs meet") {
    const Polynomial map = linear(Irreps("70x0e+9x1o+3x1e"), Irreps("65x0e+20x1o+9x1e"), {.biases = {0}});
    LinearOptions by_component;
    by_component.x.layout = by_component.out.layout = Layout::ir_mul;
    const Polynomial turned = linear(Irreps("20x0e+20x1o"), Irreps("17x0e+18x1o"), by_component);
    const Polynomial edge = tensor_product(fully_connected("20x0e+9x1o", "0e+1o", "6x0e+1x1o"));
    const Polynomial both = tensor_product(fully_connected("5x0e+4x1o", "3x0e+2x1o", "9x0e+4x1o"));
    if (!has_host_compiler()) return;
    std::vector<EmittedProgram> cases;
    const auto add = [&](const Polynomial& one, std::int64_t chunk, GpuNumber tiles) {
        const std::optional<Program> program = split_mixing(one, 0);  // small matrices, too
        random::Engine engine(35 + cases.size());
        random::Limits limits;
        limits.rows = 40;
        limits.work = 1e7;
        cases.push_back({.program = *program,
                         .inputs = random::inputs(engine, *program, limits),
                         .gradient_tiles = gradient_tiles(tiles),
                         .chunk = chunk});
        for (const auto& [name, numbers] : evaluate(one, cases.back().inputs))
            CHECK(relative_error(evaluate(*program, cases.back().inputs).at(name), numbers) < exact);
    };
    const std::vector<std::string> weights = {"weights"}, all = {"x", "y", "weights"};
    for (const GpuNumber tiles : {GpuNumber::float64, GpuNumber::float32}) add(vjp(map, weights), 17, tiles);
    add(vjp(turned, weights), 7, GpuNumber::float32);
    add(vjp(edge, all), 100, GpuNumber::float64);
    add(vjp(both, all), 5, GpuNumber::float64);
    add(jvp(vjp(both, weights), std::vector<std::string>{"x", "y"}), 11, GpuNumber::float64);
    compare(cases, "gradients of weights", &EmittedProgramResult::gradients);
}

TEST_CASE("chunks of rows for gradients of weights hold all rows, none twice, and are no more than a grid takes") {
    GradientSchedule schedule;
    schedule.jobs = {{.rows = 128, .columns = 128, .terms = 1}, {.rows = 3000, .columns = 500, .first_term = 1, .terms = 1}};
    for (const GpuNumber compute : {GpuNumber::float32, GpuNumber::float64})
        for (const std::int64_t rows : {0L, 1L, 64L, 65L, 4097L, 200'000L, 5'000'000'000L, 1L << 40}) {
            CAPTURE(rows);
            const GradientChunks chunks = gradient_chunks(schedule, gradient_tiles(compute), rows, 132);
            CHECK(chunks.count * chunks.rows >= rows);
            CHECK((chunks.count - 1) * chunks.rows < rows);
            CHECK(chunks.count <= 65535);
            CHECK(chunks.rows < 1L << 31);
        }
}

TEST_CASE("layers of networks and their derivatives run by half-precision parts, several tiles of weights and components") {
    if (!has_host_compiler()) return;
    std::vector<EmittedProgram> cases;
    for (const Layout layout : {Layout::ir_mul, Layout::mul_ir}) {
        NetworkLayers layers{.features = Irreps("41x0e+9x1o"), .harmonics = Irreps("0e+1o"), .hidden = 140, .layers = 1, .layout = layout};
        Program program = network_layers(layers);
        if (layout == Layout::ir_mul) program = value_and_vjp(program, std::vector<std::string>{"vectors", "x"});
        random::Engine engine(15);
        random::Limits limits;
        limits.rows = 60;
        limits.work = 4e7;
        cases.push_back({.program = program, .inputs = random::inputs(engine, program, limits), .halves = true});
    }
    compare(cases, "products by half-precision parts", &EmittedProgramResult::halves);
}

TEST_CASE("matrices by an index are taken row by row of the index, masked rows are zero, other paths are added to") {
    if (!has_host_compiler()) return;
    std::vector<EmittedProgram> cases;
    for (const std::vector<MatrixTile>& tiles : all_tiles()) {
        LinearOptions options;
        options.rows = "node";
        options.indices = {{"species", "node", "element", false}};
        options.weights.rows = row_of("species");
        const Polynomial polynomial = linear(Irreps("24x0e+10x1o+3x1o"), Irreps("20x0e+12x1o"), options);
        for (const Polynomial& one : {polynomial, vjp(polynomial, std::vector<std::string>{"x"})}) {
            random::Engine engine(9 + cases.size());
            random::Limits limits;
            limits.rows = 150;
            limits.work = 1e7;
            const Program program = as_program(one);
            cases.push_back({program, random::inputs(engine, program, limits), tiles});
        }
    }
    compare(cases, "matrix products", &EmittedProgramResult::matrices);
}

TEST_CASE("indices that do not ascend leave NaN in all outputs, whatever lies between two rows that fall") {
    if (!has_host_compiler()) return;
    std::vector<AscendingCase> cases = {{{}, 5},           {{3}, 5},           {{0, 0, 1, 4, 4}, 5}, {{0, -1, 1, 99, 4}, 5},
                                        {{0, 2, 1, 4}, 5}, {{1, 3, -1, 2}, 5}, {{3, 99, -1, 1}, 5},  {{-1, -1, 2, 1}, 5}};
    random::Engine engine(31);
    const auto below = [&](std::uint64_t most) { return static_cast<std::int64_t>(engine() % most); };
    for (const std::size_t count : {31, 32, 33, 600, 1025, 4999})
        for (int attempt = 0; attempt < 8; ++attempt) {
            AscendingCase one{.index = std::vector<std::int64_t>(count), .rows = 40, .wide = attempt % 2 == 0};
            for (std::int64_t& row : one.index) row = below(40);
            std::ranges::sort(one.index);
            if (attempt % 4 >= 2)  // mostly entries that are no row, also for longer than a warp looks back at once
                for (std::int64_t& row : one.index) row = below(attempt >= 4 ? 400 : 3) == 0 ? row : attempt % 2 == 0 ? -1 : 40;
            if (attempt >= 3) one.index[static_cast<std::size_t>(below(count))] = below(40);
            cases.push_back(std::move(one));
        }
    const std::vector<bool> shown = shown_as_nan(cases);
    int falling = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        bool falls = false;
        std::int64_t last = -1;
        for (const std::int64_t row : cases[i].index) {
            if (row < 0 || row >= cases[i].rows) continue;
            falls = falls || row < last;
            last = row;
        }
        falling += falls ? 1 : 0;
        CAPTURE(i);
        CHECK(shown[i] == falls);
    }
    CHECK(falling > 10);
    CHECK(falling + 10 < static_cast<int>(cases.size()));
}
