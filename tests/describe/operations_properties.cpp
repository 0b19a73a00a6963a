// Properties every builder's description has: equivariance, three derivatives; and what the single builders promise.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "algebra/harmonics.hpp"
#include "base/error.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/activation.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/layout_change.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/named_problems.hpp"
#include "describe/operations/norm.hpp"
#include "describe/operations/rotation.hpp"
#include "describe/operations/symmetric_contraction.hpp"
#include "describe/operations_support.hpp"
#include "describe/text.hpp"
#include "support/operation_samples.hpp"

using namespace clebsch;
using namespace clebsch::operation_testing;

namespace {

const Polynomial& polynomial_of(const Description& description) { return std::get<Polynomial>(description); }

std::string error_of(const char* operation, const OptionTexts& options) {
    try {
        build_operation(operation, options);
    } catch (const Error& error) { return error.what(); }
    return "no error";
}

std::int64_t weights_of(const Description& description) {
    for (const Value& value : inputs_of(description))
        if (value.name == "weights") return value.size();
    return 0;
}

}  // namespace

TEST_CASE("every operation of the registry is among the samples") {
    for (const OperationInfo& operation : operations()) {
        CAPTURE(operation.name);
        CHECK(std::ranges::any_of(samples(), [&](const Sample& sample) { return sample.operation == operation.name; }));
    }
}

TEST_CASE("outputs turn with their inputs, inversions included") {
    std::mt19937_64 random(20240601);
    for (const Sample& sample : samples()) {
        if (!sample.equivariant) continue;
        CAPTURE(label(sample));
        const Description description = build(sample);
        const ReferenceInputs call = random_call(description, random);
        for (const bool improper : {false, true})
            CHECK(equivariance_deviation(description, call, random_rotation(random, improper)) < 2e-13);
    }
}

TEST_CASE("three reverse derivatives of every builder exist, and the third agrees with finite differences of the second") {
    std::mt19937_64 random(20240602);
    for (const Sample& sample : samples()) {
        CAPTURE(label(sample));
        CHECK(third_derivative_deviation(build(sample), random) < 1e-7);
    }
}

TEST_CASE("descriptions survive their text") {
    for (const Sample& sample : samples()) {
        CAPTURE(label(sample));
        const Description description = build(sample);
        if (const auto* polynomial = std::get_if<Polynomial>(&description)) CHECK(parse_polynomial(to_text(*polynomial)) == *polynomial);
        else CHECK(parse_program(to_text(std::get<Program>(description))) == std::get<Program>(description));
    }
}

TEST_CASE("weights of a convolution lie in the models' order") {
    // 2x0e+2x1o x 0e+1o+2e -> 0e+1o+2e with x = .1 i, y = harmonics of (.3, -.5, .7), w = .5 i, one edge; values of e3nn 0.6.0.
    const std::vector<double> by_output = {.05,         .2,          .395151336,  .856161228,   .142587956,  -.237646594, .332705232,
                                           .342211095,  -.570351825, .798492556,  1.05,         1.4,         1.75,        2.4,
                                           2.8,         3.2,         -.126512478, -2.65292833,  .34120032,   -.626172872, -4.96678619,
                                           .660250308,  .538951297,  -.384965212, -.0592692717, -.898252162, .513286949,  1.17589374,
                                           -.839924099, -.129314775, -1.9598229,  1.1198988,    3.14573722,  -.262144768, -4.23778187,
                                           .262144768,  2.27192132,  6.21081451,  -.846929251,  -7.8235973,  .846929251,  3.57592351};
    const std::vector<double> generation = {.05,        .2,           1.18545401,  2.14040307,  .0855527738, -.142587956, .199623139,
                                            .22814073,  -.38023455,   .53232837,   1.05,        1.4,         1.75,        2.4,
                                            2.8,        3.2,          -.182740246, -3.83200759, .492844907,  -.876642021, -6.95350066,
                                            .924350431, .244977862,   -.174984187, -.026940578, -.408296437, .23331225,   .587946869,
                                            -.41996205, -.0646573873, -.979911449, .559949399,  2.66177765,  -.221814804, -3.58581543,
                                            .221814804, 1.92239497,   5.32355529,  -.725939358, -6.70594054, .725939358,  3.06507729};
    auto steps = [](double step, int count) {
        ReferenceArray array;
        for (int i = 1; i <= count; ++i) array.push_back(step * i);
        return array;
    };
    const double vector[3] = {.3, -.5, .7};
    const std::vector<double> y = spherical_harmonics(2, vector, true, HarmonicsNormalization::component);
    for (const auto& [given_order, expected] : {std::pair("by_output", by_output), std::pair("generation", generation)}) {
        const auto& order = given_order;
        CAPTURE(order);
        const Description description =
            build_operation("convolution", {{"in", "2x0e+2x1o"}, {"edge", "0e+1o+2e"}, {"out", "0e+1o+2e"}, {"weight_order", order}});
        ReferenceInputs call;
        call.rows = {{"node", 1}, {"edge", 1}};
        call.indices = {{"sender", {0}}, {"receiver", {0}}};
        call.arrays = {{"x", steps(.1, 8)}, {"y", ReferenceArray(y.begin(), y.end())}, {"weights", steps(.5, 14)}};
        CHECK(deviation(evaluate(description, call).at("out"), ReferenceArray(expected.begin(), expected.end())) < 2e-9);
    }
}

TEST_CASE("e3nn 0.4's sign table turns the sign of 1 x 2 -> 2, and of no coupling up to degree 2 with an even sum") {
    std::mt19937_64 random(20240605);
    for (const auto& [in1, given_in2, out, sign] : {std::tuple{"1x1o", "1x2e", "1x2o", -1.0L},
                                                    {"1x2e", "1x2e", "1x1e", -1.0L},
                                                    {"1x1o", "1x1o", "1x2e", 1.0L},
                                                    {"1x2e", "1x2e", "1x2e", 1.0L},
                                                    {"1x1o", "1x1o", "1x1e", 1.0L}}) {
        const auto& in2 = given_in2;
        CAPTURE(in2);
        OptionTexts options = {{"in1", in1}, {"in2", in2}, {"out", out}, {"instructions", "0,0,0,uuu,plain"}};
        const Description newer = build_operation("tensor_product", options);
        options["signs"] = "e3nn-0.4";
        const ReferenceInputs call = random_call(newer, random);
        ReferenceArray expected = evaluate(newer, call).at("out");
        for (long double& number : expected) number *= sign;
        CHECK(evaluate(build_operation("tensor_product", options), call).at("out") == expected);
    }
}

TEST_CASE("a linear map by name: instructions and biases as in e3nn") {
    const Description description = build_operation(
        "linear", {{"in", "2x0e+3x0e+1x1o"}, {"out", "2x0e+2x1o+1x0e"}, {"instructions", "2,1; 1,0; 0,0; 0,2"}, {"biases", "2"}});
    LinearOptions options;
    options.instructions = {{2, 1}, {1, 0}, {0, 0}, {0, 2}};
    options.biases = {2};
    CHECK(polynomial_of(description) == linear(Irreps("2x0e+3x0e+1x1o"), Irreps("2x0e+2x1o+1x0e"), options));
}

TEST_CASE("segments of a convolution's weights start where models expect them") {
    const Polynomial main = polynomial_of(named_problem("nequix-main"));
    const Operand& weights = main.operands[static_cast<std::size_t>(main.find_operand("weights"))];
    const std::vector<std::int64_t> offsets = {0,   128, 192, 224, 256, 384, 448,  512,  544,  576,  608, 736,
                                               800, 864, 896, 928, 960, 992, 1120, 1184, 1216, 1248, 1280};
    REQUIRE(weights.segments.size() == offsets.size());
    for (std::size_t i = 0; i < offsets.size(); ++i) CHECK(weights.offset(static_cast<int>(i)) == offsets[i]);
    CHECK(weights.size() == 1312);
    // e3nn's coefficients of these paths: sqrt(2l+1), with one path in each slot
    for (const Path& path : main.paths) CHECK(path.scale == doctest::Approx(std::sqrt(path.coefficients.shape().back())).epsilon(1e-15));
    // the harmonics of an edge have no channels
    for (const Path& path : main.paths) CHECK(path.factors[1].channels.empty());
}

TEST_CASE("named problems have the published numbers of paths, weights and outputs") {
    struct Published {
        const char* label;
        std::size_t paths;
        std::int64_t weights, out;
    };
    for (const auto& [given_label, paths, weights, out] : std::vector<Published>{{"mace-large", 17, 2176, 9088},
                                                                                 {"mace-medium", 8, 1024, 3328},
                                                                                 {"mace-mp-medium", 10, 1280, 5120},
                                                                                 {"mace-first", 4, 512, 2048},
                                                                                 {"nequip-lips", 30, 960, 0},
                                                                                 {"nequip-revmd17-aspirin", 10, 640, 0},
                                                                                 {"nequip-revmd17-toluene", 30, 1920, 0},
                                                                                 {"nequip-revmd17-benzene", 68, 4352, 19968},
                                                                                 {"nequip-water", 10, 320, 0},
                                                                                 {"nequip-oam-l", 23, 1312, 5472},
                                                                                 {"nequip-oam-xl", 42, 3616, 18848},
                                                                                 {"DiffDock-L=1", 10, 6928, 0},
                                                                                 {"DiffDock-L=2", 12, 7128, 0},
                                                                                 {"tetris-poly-1", 24, 648, 0},
                                                                                 {"tetris-poly-2", 5, 664, 7},
                                                                                 {"nequix-mp-1-first_layer", 4, 356, 1424},
                                                                                 {"nequix-mp-1-main_layers", 23, 1312, 5472},
                                                                                 {"nequix-last", 4, 256, 256},
                                                                                 {"SevenNet_l3i5-first", 4, 512, 2048},
                                                                                 {"SevenNet_l3i5-main", 34, 1760, 7776},
                                                                                 {"SevenNet_l3i5-last", 4, 256, 256},
                                                                                 {"sevennet-0", 15, 960, 3136},
                                                                                 {"sevennet-omni", 64, 3008, 13504},
                                                                                 {"e3tools_conv", 4, 7680, 128},
                                                                                 {"e3tools_transformer", 4, 6400, 112},
                                                                                 {"natural-l2-128", 11, 1408, 0},
                                                                                 {"natural-l3-64", 23, 1472, 0},
                                                                                 {"roofline-5e-3e-5e", 1, 128, 1408}}) {
        const auto& label = given_label;
        CAPTURE(label);
        const Description description = named_problem(label);
        CHECK(polynomial_of(description).paths.size() == paths);
        CHECK(weights_of(description) == weights);
        if (out > 0) CHECK(outputs_of(description).front().size() == out);
    }
    for (const NamedProblem& problem : named_problems()) {
        CAPTURE(problem.label);
        std::visit([](const auto& known) { validate(known); }, named_problem(problem.label));
        std::visit([](const auto& known) { validate(known); }, named_problem(problem.label, ProblemForm::product));
    }
    CHECK_THROWS_WITH_AS(named_problem("mace"), doctest::Contains("mace-large"), Error);
}

TEST_CASE("rotation by Wigner matrices is what irreps do, and its inverse undoes it") {
    std::mt19937_64 random(20240603);
    const Irreps irreps("2x0o+2x1o+1x2e+1x1e");
    for (const bool per_irrep : {false, true}) {
        const Matrix3 matrix = random_rotation(random, per_irrep);
        RotationOptions options;
        options.matrix_per_irrep = per_irrep;
        const Description forward = rotation(irreps, options);
        options.inverse = true;
        const Description backward = rotation(irreps, options);
        ReferenceInputs call;
        call.rows = {{"row", 1}};
        for (Irrep irrep : rotation_blocks(irreps, per_irrep))
            for (double number : wigner_d(irrep, matrix)) call.arrays["matrices"].push_back(number);
        const ReferenceArray x = golden(0, irreps.dim());
        call.arrays["x"] = x;
        const ReferenceArray turned = evaluate(forward, call).at("out");
        ReferenceArray expected(x.size(), 0);
        const std::vector<double> d = wigner_d(irreps, matrix);
        for (std::size_t m = 0; m < x.size(); ++m)
            for (std::size_t n = 0; n < x.size(); ++n) expected[m] += d[m * x.size() + n] * x[n];
        CHECK(deviation(turned, expected) < 1e-14);
        call.arrays["x"] = turned;
        CHECK(deviation(evaluate(backward, call).at("out"), x) < 1e-13);
    }
}

TEST_CASE("a layout change moves components outside of channels") {
    const Description change = layout_change(Irreps("1x0e+2x1o"), Layout::mul_ir, Layout::ir_mul);
    ReferenceInputs call;
    call.rows = {{"row", 1}};
    call.arrays["x"] = {1, 2, 3, 4, 5, 6, 7};
    CHECK(evaluate(change, call).at("out") == ReferenceArray{1, 2, 5, 3, 6, 4, 7});
}

TEST_CASE("a symmetric contraction with the built-in basis given as the user's own is the same contraction") {
    std::mt19937_64 random(20240604);
    const Irreps in("2x0e+2x1o"), out("2x0e+2x1o");
    const Polynomial built_in = symmetric_contraction(in, out, 3);
    // Places of segments in the concatenated components of one channel: 0e at 0, 1o at 1.
    const std::vector<int> start = {0, 1};
    ContractionBases bases;
    const Operand& weights = built_in.operands[1];
    std::map<int, std::pair<std::pair<int, int>, int>> parameter_of_segment;
    for (const Path& path : built_in.paths) {
        const std::size_t nu = path.factors.size() - 2;
        const std::pair<int, int> key = {path.output().segment, static_cast<int>(nu)};
        ContractionBasis& basis = bases[key];
        for (const CoefficientEntry& entry : path.coefficients.entries()) {
            CoefficientEntry own{{}, entry.value};
            for (std::size_t i = 0; i < nu; ++i)
                own.index.push_back(start[static_cast<std::size_t>(path.factors[i].segment)] + entry.index[i]);
            own.index.push_back(basis.parameters);
            own.index.push_back(entry.index[nu]);
            basis.entries.push_back(own);
        }
        parameter_of_segment[path.factors[nu].segment] = {key, basis.parameters++};
    }
    REQUIRE(parameter_of_segment.size() == weights.segments.size());
    const Polynomial given = symmetric_contraction(in, out, bases);
    CHECK(given.operands[1].size() == weights.size());
    // The bases as text, through the registry.
    std::string text;
    for (const auto& [key, basis] : bases) {
        text += std::to_string(key.first) + "," + std::to_string(key.second) + "," + std::to_string(basis.parameters) + ":";
        for (const CoefficientEntry& entry : basis.entries) {
            for (std::size_t i = 0; i < entry.index.size(); ++i) text += (i ? "," : " ") + std::to_string(entry.index[i]);
            text += ":" + nlohmann::json(entry.value).dump();
        }
        text += ";";
    }
    CHECK(polynomial_of(build_operation("symmetric_contraction", {{"in", to_text(in)}, {"out", to_text(out)}, {"bases", text}})) == given);
    ReferenceInputs call = random_call(built_in, random);
    // Both orders of weights are (output, correlation, parameter, channel): the rows are the same.
    CHECK(deviation(evaluate(Description(given), call).at("out"), evaluate(Description(built_in), call).at("out")) < 1e-14);
}

TEST_CASE("shared weights of a contraction need no species") {
    ContractionOptions options;
    options.weights.rows = shared_row();
    CHECK(symmetric_contraction(Irreps("2x0e"), Irreps("2x0e"), 2, options).indices.empty());
}

TEST_CASE("coefficients of one's own replace the coupling") {
    // The cross product and a contraction over plain segments of two components.
    Instruction cross{0, 0, 0, ChannelMode::uuu, false};
    std::vector<CoefficientEntry> entries;
    for (const auto& [i, j, k] : {std::tuple{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}) {
        entries.push_back({{i, j, k}, 1});
        entries.push_back({{j, i, k}, -1});
    }
    cross.coefficients = Coefficients::literal({3, 3, 3}, entries);
    TensorProductOptions options;
    options.irrep_normalization = IrrepNormalization::none;
    const Description description = tensor_product(Irreps("1x1o"), Irreps("1x1o"), Irreps("1x1e"), {cross}, options);
    ReferenceInputs call;
    call.rows = {{"row", 1}};
    call.arrays = {{"x", {1, 2, 3}}, {"y", {-2, 5, 7}}};
    CHECK(evaluate(description, call).at("out") == ReferenceArray{-1, -13, 9});

    Instruction plain{0, 0, 0, ChannelMode::uuu, false};
    plain.coefficients = Coefficients::literal({2, 2, 1}, {{{0, 1, 0}, 3.0}});
    const std::vector<Segment> two = {{1, 2, {}}}, one = {{1, 1, {}}};
    const Description custom = tensor_product(two, two, one, {plain}, options);
    call.arrays = {{"x", {4, 0}}, {"y", {0, 5}}};
    CHECK(evaluate(custom, call).at("out") == ReferenceArray{60});
    plain.coefficients.reset();
    CHECK_THROWS_WITH_AS(tensor_product(two, two, one, {plain}, options), doctest::Contains("need coefficients"), Error);
}

TEST_CASE("a norm activation multiplies by sigmoid(|x|)/|x|") {
    const Description description = build_operation("norm_activation", {{"irreps", "1x1o"}, {"function", "sigmoid"}});
    ReferenceInputs call;
    call.rows = {{"row", 2}};
    call.arrays["x"] = {1, 2, 2, 0, 0, 0};
    const ReferenceArray out = evaluate(description, call).at("out");
    CHECK(deviation(out, {.317524708941, .635049417882, .635049417882, 0, 0, 0}) < 1e-11);
}

TEST_CASE("norms of scalars and functions of them keep their digits to second derivatives, around zero too") {
    const auto second_of = [](const Program& program, const ReferenceArray& x) {
        const std::vector<std::string> along = {"x"};
        const Program second = jvp(jvp(program, along), along);
        ReferenceInputs call;
        call.rows = {{"row", static_cast<std::int64_t>(x.size())}};
        for (const int input : second.inputs)
            call.arrays[second.values[static_cast<std::size_t>(input)].name] = ReferenceArray(x.size(), 1);
        call.arrays["x"] = x;
        return evaluate(second, call).begin()->second;
    };
    const ReferenceArray x = {1.5L, -0.7L, 1e-3L, -1e-5L, 2e-7L};
    CHECK(second_of(norm("0e"), x) == ReferenceArray(x.size(), 0));
    // sign(x) silu(|x|): silu''(r) = s (1 - s) (2 + r (1 - 2 s)), s = sigmoid(r).
    const ReferenceArray second = second_of(norm_activation("0o", {Function{FunctionKind::silu, 0}, 1.0}), x);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const long double r = std::fabs(x[i]), s = 1 / (1 + std::exp(-r)), expected = s * (1 - s) * (2 + r * (1 - 2 * s));
        CHECK(std::fabs(second[i] - (x[i] < 0 ? -expected : expected)) < 1e-17L);
    }
    // Between -epsilon and epsilon: x f(epsilon) / epsilon.
    NormActivationOptions wide;
    wide.epsilon = 0.5;
    ReferenceInputs call;
    call.rows = {{"row", 4}};
    call.arrays["x"] = {0, 0.25L, -0.125L, -2};
    const ReferenceArray out = evaluate(norm_activation("0e", {Function{FunctionKind::exp, 0}, 1.0}, wide), call).at("out");
    CHECK(deviation(out, {0, std::exp(0.5L) / 2, -std::exp(0.5L) / 4, -std::exp(2.L)}) < 1e-17L);
}

TEST_CASE("a layer norm divides by the root of the mean over blocks of sums over (2l+1)^2, and scales channels") {
    const Description description = build_operation("layer_norm", {{"irreps", "2x0e+1x1o"}, {"epsilon", "0.25"}});
    ReferenceInputs call;
    call.rows = {{"row", 2}};
    call.arrays["x"] = {1, 2, 3, 6, 6, 0, 0, 0, 0, 0};
    call.arrays["scales"] = {1, 10, -2};
    const long double size = sqrtl(.25L + (1 + 4) / 2.0L + (9 + 36 + 36) / 9.0L / 2);
    const ReferenceArray out = evaluate(description, call).at("out");
    CHECK(deviation(out, {1 / size, 20 / size, -6 / size, -12 / size, -12 / size, 0, 0, 0, 0, 0}) < 1e-15L);
}

TEST_CASE("a radial basis has its limit at length 0 and nothing from the cutoff on") {
    const Description description = build_operation("radial_network", {{"basis_size", "3"}, {"cutoff", "5"}});
    ReferenceInputs call;
    call.rows = {{"edge", 5}};
    call.arrays["lengths"] = {0, .3, 4.999, 5, 6.5};
    const ReferenceArray out = evaluate(description, call).at("weights");
    // e3nn's math.bessel at 0; at .3 times the cutoff 1 - 28 t^6 + 48 t^7 - 21 t^8, t = .06.
    const long double t = .06L, u = 1 - 28 * std::pow(t, 6.L) + 48 * std::pow(t, 7.L) - 21 * std::pow(t, 8.L);
    const std::vector<double> at_zero = {.397383531, .794767061, 1.19215059}, at_three = {.395034497, .776074699, 1.12962207};
    for (std::size_t n = 0; n < 3; ++n) {
        CHECK(static_cast<double>(out[n]) == doctest::Approx(at_zero[n]).epsilon(2e-9));
        CHECK(static_cast<double>(out[3 + n]) == doctest::Approx(static_cast<double>(at_three[n] * u)).epsilon(2e-9));
        CHECK(std::fabs(out[6 + n]) < 1e-9);
        CHECK(out[6 + n] != 0);
        CHECK(out[9 + n] == 0);
        CHECK(out[12 + n] == 0);
    }
}

TEST_CASE("the last matrix of a radial network holds the weights of a convolution, path after path") {
    const Description network = build_operation("radial_network", {{"outputs", "1312"}});
    const Polynomial main = polynomial_of(named_problem("nequix-main"));
    CHECK(outputs_of(network).front().size() == weights_of(main));
}

TEST_CASE("harmonics of a zero vector are those of degree 0, with zero gradients") {
    const Description description = build_operation("spherical_harmonics", {{"irreps", "0e+1o+2e"}});
    const Description gradient = vjp(std::get<Program>(description), std::vector<std::string>{"vector"});
    ReferenceInputs call;
    call.rows = {{"row", 1}};
    call.arrays["vector"] = {0, 0, 0};
    CHECK(evaluate(description, call).at("harmonics") == ReferenceArray{1, 0, 0, 0, 0, 0, 0, 0, 0});
    call.arrays["harmonics_cotangent"] = golden(3, 9);
    CHECK(evaluate(gradient, call).at("vector_gradient") == ReferenceArray{0, 0, 0});
}

TEST_CASE("normalising constants: of e3nn, exact, and of Nequix") {
    auto scale = [](const char* text, ActivationNormalization normalization) { return parse_activation(text, normalization).scale; };
    CHECK(scale("silu", ActivationNormalization::exact) == doctest::Approx(1.6765324703).epsilon(1e-10));
    CHECK(scale("tanh", ActivationNormalization::exact) == doctest::Approx(1.5925374197).epsilon(1e-10));
    CHECK(scale("sigmoid", ActivationNormalization::exact) == doctest::Approx(1.8462285454).epsilon(1e-10));
    CHECK(scale("relu", ActivationNormalization::exact) == doctest::Approx(std::sqrt(2.0)).epsilon(1e-14));
    CHECK(scale("absolute", ActivationNormalization::exact) == doctest::Approx(1).epsilon(1e-6));
    CHECK(scale("silu", ActivationNormalization::nequix) == 1.676562056079884);
    CHECK(scale("silu", ActivationNormalization::none) == 1);
    CHECK(scale("silu:1.5", ActivationNormalization::e3nn) == 1.5);
    CHECK_THROWS_WITH_AS(parse_activation("tanh", ActivationNormalization::nequix), doctest::Contains("exact"), Error);
    CHECK_THROWS_WITH_AS(parse_activation("gelu", ActivationNormalization::e3nn), doctest::Contains("gelu"), Error);
}

TEST_CASE("errors name the operation, the option or instruction, what was expected and what came") {
    const OptionTexts product = {{"in1", "2x1o"}, {"in2", "3x1o"}, {"out", "2x1e"}};
    auto with = [&](const std::string& instructions) {
        OptionTexts options = product;
        options["instructions"] = instructions;
        return error_of("tensor_product", options);
    };
    auto contains = [](const std::string& text, std::initializer_list<const char*> words) {
        CAPTURE(text);
        for (const char* word : words) CHECK(text.find(word) != std::string::npos);
    };
    contains(with("0,0,1,uvu,weighted"), {"instruction 0", "output segment 1", "there are 1"});
    contains(with("0,0,0,uuu,weighted"), {"instruction 0", "equal numbers of channels", "2x1o x 3x1o -> 2x1e", "uuu"});
    contains(with("0,0,0,uvw,plain"), {"uvw needs weights"});
    contains(with("0,0,0,uvu,weighted,-1"), {"path weight", "-1"});
    contains(with("0,0,0,uvx,weighted"), {"channel mode 'uvx'", "u<vw"});
    contains(with("0,0,0,uvu"), {"4 fields"});
    contains(with("0,zero,0,uvu,weighted"), {"expected an integer", "zero"});
    contains(error_of("tensor_product", {{"in1", "2x1o"}, {"in2", "3x1o"}, {"out", "2x1o"}, {"instructions", "0,0,0,uvu,weighted"}}),
             {"1o does not appear in 1o x 1o"});
    contains(error_of("tensor_product", product), {"instructions", "required"});
    contains(error_of("linear", {{"in", "2x1o"}, {"out", "2xq"}}), {"linear, option out"});
    contains(error_of("linear", {{"in", "2x1o"}, {"out", "2x1o"}, {"wheels", "4"}}), {"no option 'wheels'", "biases"});
    contains(error_of("linear", {{"in", "2x1o"}, {"out", "2x1o"}, {"biases", "maybe"}}),
             {"biases", "true, false or output segments", "maybe"});
    contains(error_of("linear", {{"in", "2x1o"}, {"out", "2x1o"}, {"x_layout", "mulir"}}), {"x_layout", "mul_ir or ir_mul", "mulir"});
    contains(error_of("flinear", {}), {"flinear", "linear", "convolution"});
    contains(error_of("gate", {{"gates", "2x0e"}, {"gate_functions", "sigmoid"}, {"gated", "3x1o"}}),
             {"one gate per gated channel", "2 gates", "3 channels"});
    contains(error_of("gate", {{"gates", "2x0o"}, {"gate_functions", "silu"}, {"gated", "2x1o"}}), {"silu", "neither even nor odd"});
    contains(error_of("spherical_harmonics", {{"irreps", "1e+1o"}}), {"1e+1x1o"});
    contains(error_of("symmetric_contraction", {{"in", "2x0e+3x1o"}, {"out", "2x0e"}}), {"one multiplicity"});
    contains(error_of("symmetric_contraction", {{"in", "2x0e"}, {"out", "2x0e"}, {"correlation", "0"}}), {"correlation", "got 0"});
    for (const char* cutoff : {"-1", "0", "1e-300", "1e+300"})
        contains(error_of("radial_network", {{"cutoff", cutoff}}), {"expected a cutoff of 1e-50 to 1e50, got", cutoff});
    contains(error_of("elementwise_product", {{"in1", "2x0e"}, {"in2", "3x0e"}}), {"equal numbers of channels", "2 in", "3 in"});
    contains(
        error_of("custom_product",
                 {{"in1", "1x(2)"}, {"in2", "1x(2)"}, {"out", "1x(1)"}, {"instructions", "0,0,0,uuu,plain"}, {"coefficients", "0,2,0:1"}}),
        {"2"});
    contains(
        error_of("custom_product",
                 {{"in1", "1x(2)"}, {"in2", "1x(2)"}, {"out", "1x(1)"}, {"instructions", "0,0,0,uuu,plain"}, {"coefficients", "0,0,0"}}),
        {"0,1,2:0.5"});
    contains(error_of("fully_connected", {{"in1", "4000000000x0e"}, {"in2", "4000000000x0e"}, {"out", "1x0e"}}),
             {"channels: ", "2^63", "4000000000 x 4000000000"});
}

TEST_CASE("options are read from lines of text") {
    const OptionTexts options = parse_option_lines("in = 2x0e+1x1o\n\n# a comment\nout=2x0e\n");
    CHECK(options == OptionTexts{{"in", "2x0e+1x1o"}, {"out", "2x0e"}});
    CHECK_THROWS_WITH_AS(parse_option_lines("in=1\nin=2"), doctest::Contains("line 2"), Error);
    CHECK_THROWS_WITH_AS(parse_option_lines("in"), doctest::Contains("key=value"), Error);
    CHECK(operation_help("linear").find("biases") != std::string::npos);
    const nlohmann::json list = nlohmann::json::parse(operations_json());
    REQUIRE(list.size() == operations().size());
    CHECK(list[0].at("name") == "tensor_product");
    CHECK(list[0].at("options")[0].at("required") == true);
    for (const OperationInfo& operation : operations()) CHECK(operation_help().find(operation.name) != std::string::npos);
}
