// Every builder gives e3nn's numbers and gradients (tests/data/e3nn.json, e3nn 0.6.0 in float64).
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "describe/derivative.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/gate.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/norm.hpp"
#include "describe/operations/products.hpp"
#include "describe/operations/radial_network.hpp"
#include "describe/operations/tensor_square.hpp"
#include "describe/operations_support.hpp"
#include "e3nn_goldens.hpp"

using namespace clebsch;
using namespace clebsch::operation_testing;
using nlohmann::json;

namespace {

constexpr double rounding = 1e-13;

std::string text(const json& value) { return value.get<std::string>(); }
std::int64_t rows() { return e3nn_goldens().at("rows").get<std::int64_t>(); }

IrrepNormalization irrep_normalization(const json& golden_case) {
    const std::string value = golden_case.value("irrep_normalization", "component");
    return value == "component" ? IrrepNormalization::component : value == "norm" ? IrrepNormalization::norm : IrrepNormalization::none;
}
PathNormalization path_normalization(const json& golden_case) {
    const std::string value = golden_case.value("path_normalization", "element");
    return value == "element" ? PathNormalization::element : value == "path" ? PathNormalization::path : PathNormalization::none;
}
std::vector<double> variances(const json& golden_case, const char* key) {
    if (!golden_case.contains(key) || golden_case.at(key).is_null()) return {};
    return golden_case.at(key).get<std::vector<double>>();
}

TensorProductOptions product_options(const json& golden_case) {
    TensorProductOptions options;
    options.irrep_normalization = irrep_normalization(golden_case);
    options.path_normalization = path_normalization(golden_case);
    options.in1_variances = variances(golden_case, "in1_var");
    options.in2_variances = variances(golden_case, "in2_var");
    options.out_variances = variances(golden_case, "out_var");
    if (!golden_case.at("shared_weights").get<bool>()) options.weights.rows = each_row();
    return options;
}

std::vector<Instruction> instructions_of(const json& golden_case) {
    std::vector<Instruction> instructions;
    for (const json& i : golden_case.at("instructions")) {
        Instruction instruction{i[0].get<int>(), i[1].get<int>(), i[2].get<int>(), parse_channel_mode(i[3].get<std::string>()),
                                i[4].get<bool>()};
        if (golden_case.contains("path_weights"))
            instruction.path_weight = golden_case.at("path_weights")[instructions.size()].get<double>();
        instructions.push_back(std::move(instruction));
    }
    return instructions;
}

/// A call with the streams of the golden file: x 0, y 1, weights 2, bias 4.
ReferenceInputs golden_call(const Description& description, std::int64_t row_count) {
    ReferenceInputs call;
    call.rows = {{"row", row_count}};
    const std::map<std::string, int> streams = {{"x", 0}, {"vector", 0}, {"y", 1}, {"weights", 2}, {"bias", 4}};
    for (const Value& value : inputs_of(description))
        call.arrays[value.name] = golden(streams.at(value.name), value.size() * (value.space.empty() ? 1 : row_count));
    return call;
}

const std::map<std::string, std::string> product_gradients = {{"x", "grad_x"}, {"y", "grad_y"}, {"weights", "grad_weight"}};

void check(const GoldenDeviation& found, int arrays) {
    CHECK(found.output < rounding);
    CHECK(found.gradients < rounding);
    CHECK(found.compared == arrays);
}

int gradients_in(const json& golden_case) {
    int count = 0;
    for (const auto& [key, value] : golden_case.items())
        if (key.starts_with("grad_")) ++count;
    return count;
}

void check_product(const json& golden_case, const Polynomial& polynomial) {
    const std::vector<bool> mask = output_mask(polynomial, "out");
    REQUIRE(mask.size() == golden_case.at("output_mask").size());
    for (std::size_t i = 0; i < mask.size(); ++i) CHECK(mask[i] == (golden_case.at("output_mask")[i].get<int>() == 1));
    std::int64_t weights = 0;
    for (const Operand& operand : polynomial.operands)
        if (operand.name == "weights") weights = operand.size();
    CHECK(weights == golden_case.at("weight_numel").get<std::int64_t>());
    std::map<std::string, std::string> gradients;
    for (const Operand& operand : polynomial.operands)
        if (product_gradients.contains(operand.name) && operand.size() > 0) gradients.insert(*product_gradients.find(operand.name));
    check(compare(polynomial, golden_call(polynomial, rows()), "out", gradients, golden_case), 1 + gradients_in(golden_case));
}

void check_plan(const json& golden_case, const ProductPlan& plan) {
    CHECK(to_text(plan.in1) == golden_case.at("irreps_in1").get<std::string>());
    CHECK(to_text(plan.in2) == golden_case.at("irreps_in2").get<std::string>());
    CHECK(to_text(plan.out) == golden_case.at("irreps_out").get<std::string>());
    REQUIRE(plan.instructions.size() == golden_case.at("instructions").size());
    for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
        const Instruction& ours = plan.instructions[i];
        const json theirs = {ours.in1, ours.in2, ours.out, to_text(ours.mode), ours.weighted};
        CHECK(theirs == golden_case.at("instructions")[i]);
    }
    const std::vector<double> coefficients = path_coefficients(segments_of(plan.in1), segments_of(plan.in2), segments_of(plan.out),
                                                               plan.instructions, product_options(golden_case));
    for (std::size_t i = 0; i < coefficients.size(); ++i)
        CHECK(coefficients[i] == doctest::Approx(golden_case.at("coefficients")[i].get<double>()).epsilon(1e-14));
}

std::vector<Irrep> filter_of(const json& golden_case) {
    std::vector<Irrep> filter;
    if (!golden_case.at("keep").is_null())
        for (const json& irrep : golden_case.at("keep")) filter.push_back(parse_irrep(irrep.get<std::string>()));
    return filter;
}

std::string name_of(const json& golden_case) { return golden_case.at("name").get<std::string>(); }

}  // namespace

TEST_CASE("tensor products by instructions: every mode, normalisation and sharing of weights") {
    for (const json& golden_case : e3nn_goldens().at("tensor_products")) {
        CAPTURE(name_of(golden_case));
        const ProductPlan plan{Irreps(text(golden_case.at("irreps_in1"))), Irreps(text(golden_case.at("irreps_in2"))),
                               Irreps(text(golden_case.at("irreps_out"))), instructions_of(golden_case)};
        check_plan(golden_case, plan);
        check_product(golden_case, tensor_product(plan, product_options(golden_case)));
    }
}

TEST_CASE("fully connected tensor products") {
    for (const json& golden_case : e3nn_goldens().at("fully_connected")) {
        CAPTURE(name_of(golden_case));
        const ProductPlan plan = fully_connected(Irreps(text(golden_case.at("irreps_in1"))), Irreps(text(golden_case.at("irreps_in2"))),
                                                 Irreps(text(golden_case.at("irreps_out"))));
        check_plan(golden_case, plan);
        check_product(golden_case, tensor_product(plan, product_options(golden_case)));
    }
}

TEST_CASE("full tensor products") {
    for (const json& golden_case : e3nn_goldens().at("full")) {
        CAPTURE(name_of(golden_case));
        const ProductPlan plan =
            full_product(Irreps(text(golden_case.at("given_in1"))), Irreps(text(golden_case.at("given_in2"))), filter_of(golden_case));
        check_plan(golden_case, plan);
        check_product(golden_case, tensor_product(plan, product_options(golden_case)));
    }
}

TEST_CASE("element-wise tensor products") {
    for (const json& golden_case : e3nn_goldens().at("elementwise")) {
        CAPTURE(name_of(golden_case));
        const ProductPlan plan = elementwise_product(Irreps(text(golden_case.at("given_in1"))), Irreps(text(golden_case.at("given_in2"))),
                                                     filter_of(golden_case));
        check_plan(golden_case, plan);
        check_product(golden_case, tensor_product(plan, product_options(golden_case)));
    }
}

TEST_CASE("tensor squares, with and without weights") {
    for (const json& golden_case : e3nn_goldens().at("tensor_squares")) {
        CAPTURE(name_of(golden_case));
        TensorSquareOptions options;
        options.irrep_normalization = irrep_normalization(golden_case);
        options.filter = filter_of(golden_case);
        if (!golden_case.at("shared_weights").get<bool>()) options.weights.rows = each_row();
        const Irreps in(text(golden_case.at("given")));
        const Polynomial polynomial = golden_case.at("given_out").is_null()
                                          ? tensor_square(in, options)
                                          : tensor_square(in, Irreps(text(golden_case.at("given_out"))), options);
        CHECK(to_text(*irreps_of(polynomial.operands.back())) == golden_case.at("irreps_out").get<std::string>());
        CHECK(polynomial.paths.size() == golden_case.at("instructions").size());
        check_product(golden_case, polynomial);
    }
}

TEST_CASE("linear maps: biases, instructions, f_in and f_out") {
    for (const json& golden_case : e3nn_goldens().at("linears")) {
        CAPTURE(name_of(golden_case));
        const json& given = golden_case.at("options");
        const Irreps in(text(golden_case.at("irreps_in"))), out(text(golden_case.at("irreps_out")));
        LinearOptions options;
        options.path_normalization = path_normalization(given);
        if (!given.at("shared_weights").get<bool>()) options.weights.rows = each_row();
        options.f_in = given.value("f_in", 1);
        options.f_out = given.value("f_out", 1);
        if (given.contains("biases") && given.at("biases").is_boolean()) options.biases = scalar_segments(out);
        if (given.contains("biases") && given.at("biases").is_array())
            for (std::size_t i = 0; i < given.at("biases").size(); ++i)
                if (given.at("biases")[i].get<bool>()) options.biases.push_back(static_cast<int>(i));
        if (given.contains("instructions")) {
            options.instructions.emplace();
            for (const json& pair : given.at("instructions")) options.instructions->emplace_back(pair[0].get<int>(), pair[1].get<int>());
        }
        const Polynomial polynomial = linear(in, out, options);
        std::map<std::string, std::string> gradients = {{"x", "grad_x"}, {"weights", "grad_weight"}};
        if (!options.biases.empty()) gradients["bias"] = "grad_bias";
        check(compare(polynomial, golden_call(polynomial, rows()), "out", gradients, golden_case), 1 + gradients_in(golden_case));
        const std::vector<bool> mask = output_mask(polynomial, "out");
        const json& expected = golden_case.at("output_mask");
        for (std::size_t i = 0; i < expected.size(); ++i) CHECK(mask[i] == (expected[i].get<int>() == 1));
    }
}

TEST_CASE("spherical harmonics in every normalisation, of vectors as they are and normalised") {
    for (const json& golden_case : e3nn_goldens().at("spherical_harmonics")) {
        CAPTURE(name_of(golden_case));
        HarmonicsOptions options;
        const std::string normalization = golden_case.at("normalization").get<std::string>();
        options.normalization = normalization == "component" ? HarmonicsNormalization::component
                                : normalization == "norm"    ? HarmonicsNormalization::norm
                                                             : HarmonicsNormalization::integral;
        const Irreps irreps(text(golden_case.at("irreps_out")));
        Description description = spherical_harmonics(irreps, options);
        if (golden_case.at("normalize").get<bool>()) description = normalized_harmonics(irreps, options);
        // e3nn's own degrees 7 to 12 carry errors of expanded recurrences of up to 1e-13.
        const GoldenDeviation found = compare(description, golden_call(description, golden_case.at("rows").get<std::int64_t>()),
                                              "harmonics", {{"vector", "grad_x"}}, golden_case);
        CHECK(found.output < rounding);
        CHECK(found.gradients < 4 * rounding);
        CHECK(found.compared == 2);
    }
}

TEST_CASE("gates: parities, constants and order of e3nn") {
    const json& constants = e3nn_goldens().at("constants");
    auto activations = [&](const json& names) {
        std::vector<Activation> list;
        for (const json& name : names) {
            Activation activation;
            if (!name.is_null()) {
                const std::string function = name.get<std::string>() == "abs" ? "absolute" : name.get<std::string>();
                activation = parse_activation(function, ActivationNormalization::e3nn);
                CHECK(activation.scale == doctest::Approx(constants.at(name.get<std::string>()).get<double>()).epsilon(1e-15));
            }
            list.push_back(activation);
        }
        return list;
    };
    for (const json& golden_case : e3nn_goldens().at("gates")) {
        CAPTURE(name_of(golden_case));
        const Program program = gate(Irreps(text(golden_case.at("irreps_scalars"))), activations(golden_case.at("act_scalars")),
                                     Irreps(text(golden_case.at("irreps_gates"))), activations(golden_case.at("act_gates")),
                                     Irreps(text(golden_case.at("irreps_gated"))));
        const Description description = program;
        const Value in = inputs_of(description).front(), out = outputs_of(description).front();
        auto irreps = [](const Value& value) { return *irreps_of({value.name, value.segments, value.layout, Role::input, {}}); };
        CHECK(to_text(irreps(in).simplified()) == golden_case.at("irreps_in").get<std::string>());
        CHECK(to_text(irreps(out)) == golden_case.at("irreps_out").get<std::string>());
        check(compare(description, golden_call(description, rows()), "out", {{"x", "grad_x"}}, golden_case), 2);
    }
}

TEST_CASE("norms and their squares") {
    for (const json& golden_case : e3nn_goldens().at("norms")) {
        CAPTURE(name_of(golden_case));
        const Irreps irreps(text(golden_case.at("irreps_in")));
        Description description = norm(irreps);
        if (golden_case.at("squared").get<bool>()) description = squared_norm(irreps);
        check(compare(description, golden_call(description, rows()), "out", {{"x", "grad_x"}}, golden_case), 2);
    }
}

TEST_CASE("radial bases of soft_one_hot_linspace") {
    int compared = 0;
    for (const json& golden_case : e3nn_goldens().at("radial")) {
        const std::string basis = golden_case.at("basis").get<std::string>();
        const bool cutoff = golden_case.at("cutoff").get<bool>();
        if (basis == "cosine" || basis == "fourier") continue;
        CAPTURE(name_of(golden_case));
        RadialOptions options;
        options.basis = parse_radial_basis(basis);
        options.basis_size = golden_case.at("n").get<int>();
        options.start = golden_case.at("start").get<double>();
        options.cutoff = golden_case.at("end").get<double>();
        options.open_ends = cutoff;
        options.cutoff_power = 0;
        options.output = "out";
        const Description description = radial_network(options);
        ReferenceInputs call;
        json expected = golden_case;
        ReferenceArray x = array_of(golden_case.at("x"));
        std::size_t count = x.size();
        if (basis == "bessel" && cutoff) {
            // e3nn cuts Bessel functions off by a step there; ours are cut off by the polynomial. Compare inside.
            while (x.back() >= options.cutoff) x.pop_back();
            for (const char* key : {"output", "grad_x"}) {
                auto& list = expected.at(key);
                list.erase(list.begin() + static_cast<std::ptrdiff_t>(list.size() / count * x.size()), list.end());
            }
        }
        call.rows = {{"edge", static_cast<std::int64_t>(x.size())}};
        call.arrays["lengths"] = x;
        check(compare(description, call, "out", {{"lengths", "grad_x"}}, expected), 2);
        ++compared;
    }
    CHECK(compared == 6);
}

TEST_CASE("multilayer perceptrons") {
    for (const json& golden_case : e3nn_goldens().at("networks")) {
        CAPTURE(name_of(golden_case));
        const auto sizes = golden_case.at("sizes").get<std::vector<std::int64_t>>();
        const Program program =
            multilayer_perceptron(sizes.front(), {sizes.begin() + 1, sizes.end() - 1}, sizes.back(),
                                  parse_activation(golden_case.at("act").get<std::string>(), ActivationNormalization::e3nn), true);
        ReferenceInputs call;
        call.rows = {{"row", rows()}};
        call.arrays["x"] = golden(0, rows() * sizes.front());
        std::int64_t total = 0;
        for (std::size_t i = 0; i + 1 < sizes.size(); ++i) total += sizes[i] * sizes[i + 1];
        const ReferenceArray weights = golden(2, total);
        auto next = weights.begin();
        json expected = golden_case;
        auto gradient = golden_case.at("grad_weight").begin();
        std::map<std::string, std::string> keys = {{"x", "grad_x"}};
        for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
            const std::string name = "matrix_" + std::to_string(i);
            const std::int64_t count = sizes[i] * sizes[i + 1];
            call.arrays[name] = ReferenceArray(next, next + count);
            expected[name] = json::array();
            for (std::int64_t n = 0; n < count; ++n) expected[name].push_back(*gradient++);
            next += count;
            keys[name] = name;
        }
        check(compare(program, call, "out", keys, expected), static_cast<int>(keys.size()) + 1);
    }
}

TEST_CASE("convolutions: gather, tensor product, scatter, on a graph with repeated edges, a loop and isolated nodes") {
    int second_derivatives = 0;
    for (const json& golden_case : e3nn_goldens().at("convolutions")) {
        CAPTURE(name_of(golden_case));
        ProductPlan plan{Irreps(text(golden_case.at("irreps_x"))), Irreps(text(golden_case.at("irreps_sh"))),
                         Irreps(text(golden_case.at("irreps_out"))), instructions_of(golden_case)};
        if (name_of(golden_case) == "channel-wise, both parities, summed slots, shared weights") plan.instructions[3].path_weight = 3;
        if (name_of(golden_case).starts_with("channel-wise, slots sorted")) {
            // The same instructions come from the irreps alone.
            const ProductPlan own = channelwise_product(plan.in1, plan.in2, Irreps("0e+1o+2e"));
            CHECK(own.out == plan.out);
            REQUIRE(own.instructions.size() == plan.instructions.size());
            for (std::size_t i = 0; i < own.instructions.size(); ++i) {
                CHECK(own.instructions[i].in1 == plan.instructions[i].in1);
                CHECK(own.instructions[i].in2 == plan.instructions[i].in2);
                CHECK(own.instructions[i].out == plan.instructions[i].out);
            }
        }
        ConvolutionOptions options;
        options.receivers_sorted = false;
        const bool shared = golden_case.at("shared_weights").get<bool>();
        if (shared) options.weights.rows = shared_row();
        const Polynomial polynomial = convolution(plan, options);
        ReferenceInputs call;
        const std::int64_t nodes = golden_case.at("nodes").get<std::int64_t>(),
                           edges = static_cast<std::int64_t>(golden_case.at("sender").size());
        call.rows = {{"node", nodes}, {"edge", edges}};
        call.indices = {{"sender", golden_case.at("sender").get<std::vector<std::int64_t>>()},
                        {"receiver", golden_case.at("receiver").get<std::vector<std::int64_t>>()}};
        call.arrays = {{"x", golden(0, nodes * plan.in1.dim())},
                       {"y", golden(1, edges * plan.in2.dim())},
                       {"weights", golden(2, (shared ? 1 : edges) * golden_case.at("weight_numel").get<std::int64_t>())}};
        check(compare(polynomial, call, "out", {{"x", "grad_x"}, {"y", "grad_sh"}, {"weights", "grad_weight"}}, golden_case), 4);
        if (!golden_case.contains("second_x")) continue;
        // The second reverse derivative, with the tangents of streams 5, 6, 7 as cotangents of the first gradients.
        const std::vector<std::string> inputs = {"x", "y", "weights"};
        const Polynomial first = vjp(polynomial, inputs);
        const Polynomial second = vjp(first, std::vector<std::string>{"x", "y", "weights", "out_cotangent"});
        call.arrays["out_cotangent"] = golden(3, nodes * plan.out.dim());
        for (const auto& [input, stream] : {std::pair("x", 5), std::pair("y", 6), std::pair("weights", 7)})
            call.arrays[std::string(input) + "_gradient_cotangent"] =
                golden(stream, static_cast<std::int64_t>(call.arrays.at(input).size()));
        const Arrays found = evaluate(Description(second), call);
        for (const auto& [gradient, key] :
             {std::pair("x_gradient", "second_x"), std::pair("y_gradient", "second_sh"), std::pair("weights_gradient", "second_weight"),
              std::pair("out_cotangent_gradient", "second_cotangent")})
            CHECK(deviation(found.at(gradient), array_of(golden_case.at(key))) < rounding);
        ++second_derivatives;
    }
    CHECK(second_derivatives == 3);
}

TEST_CASE("a symmetric contraction in MACE's own basis, with MACE's weights one correlation after another") {
    std::ifstream file(CLEBSCH_TEST_DATA "/mace_contraction.json");
    REQUIRE(file);
    const json expected = json::parse(file);
    const Description description = build_operation(
        "symmetric_contraction",
        {{"in", text(expected.at("irreps_in"))}, {"out", text(expected.at("irreps_out"))}, {"bases", text(expected.at("bases"))}});
    ReferenceInputs call;
    const auto species = expected.at("species").get<std::vector<std::int64_t>>();
    const auto nodes = static_cast<std::int64_t>(species.size()), elements = expected.at("elements").get<std::int64_t>();
    call.rows = {{"node", nodes}, {"element", elements}};
    call.indices["species"] = species;
    for (const Value& value : inputs_of(description))
        call.arrays[value.name] = value.name == "x" ? golden(0, nodes * value.size()) : golden(2, elements * value.size());
    check(compare(description, call, "out", {{"x", "grad_x"}, {"weights", "grad_weight"}}, expected), 3);
}
