// Any number of channels, in every kernel family, on every instruction set, to second derivatives.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "support/any_description.hpp"
#include "support/repetitions.hpp"
#include "support/run_plan.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

struct Case {
    const char* family;  ///< "": every one that wants to
    const char* operation;
    OptionTexts options;  ///< with n for the number of channels
    std::int64_t most = 512;
};

const Case cases[] = {
    {"fold", "convolution", {{"in", "nx0e+nx1o"}, {"edge", "0e+1o"}, {"out", "0e+1o"}}},
    {"mix", "linear", {{"in", "nx0e+nx1o"}, {"out", "13x0e+3x1o"}}},
    {"mix", "linear", {{"in", "5x0e+13x1o"}, {"out", "nx0e+nx1o"}, {"weights", "per_row"}}},
    {"mix", "linear", {{"in", "nx0e"}, {"out", "nx0e"}, {"x_layout", "ir_mul"}, {"out_layout", "ir_mul"}}},
    {"mix", "fully_connected", {{"in1", "nx0e+nx1o"}, {"in2", "0e+1o"}, {"out", "3x0e+2x1o"}}},
    {"terms", "elementwise_product", {{"in1", "nx0e+nx1o"}, {"in2", "nx1o+nx1o"}}},
    {"terms", "symmetric_contraction", {{"in", "nx0e+nx1o"}, {"out", "nx0e+nx1o"}, {"correlation", "3"}}},
    {"terms", "channelwise_product", {{"in1", "nx1o"}, {"in2", "2e"}, {"weights", "shared"}}},
    {"lanes", "channelwise_product", {{"in1", "nx0e+nx1o"}, {"in2", "0e+1o"}, {"filter", "0e+1o"}}, 4},
    {"lanes", "tensor_square", {{"in", "nx0e+nx1o"}}, 2},
    {"", "norm_activation", {{"irreps", "nx0e+nx1o"}, {"function", "sigmoid"}, {"bias", "true"}}},
    {"", "layer_norm", {{"irreps", "nx0e+nx1o"}}},
    {"", "perceptron", {{"inputs", "n"}, {"hidden", "n"}, {"outputs", "5"}}},
};

/// "nx0e+nx1o" with the number in place of n.
OptionTexts with_channels(OptionTexts options, std::int64_t channels) {
    for (auto& [key, text] : options) {
        std::string result;
        for (std::size_t i = 0; i < text.size(); ++i) {
            const bool alone = (i + 1 == text.size() || text[i + 1] == 'x') && (i == 0 || text[i - 1] == '+');
            if (text[i] == 'n' && alone) result += std::to_string(channels);
            else result += text[i];
        }
        text = result;
    }
    return options;
}

}  // namespace

TEST_CASE("1, 3, 5, 13, 33, 89, 123, 128 and 512 channels in every family, to second derivatives") {
    std::mt19937_64 random(20261203);
    double largest[2] = {0, 0};
    int met = 0;
    for (const Case& one : cases)
        for (const std::int64_t channels : {1, 2, 3, 4, 5, 13, 33, 89, 123, 128, 512}) {
            if (channels > one.most || ++met % one_in(5) != 0) continue;
            Description description = build_operation(one.operation, with_channels(one.options, channels));
            for (int order = 0; order <= 2; ++order) {
                if (order > 0) description = gradient_of(description);
                const std::int64_t rows = channels > 100 ? 3 : 11;
                const ReferenceInputs call = random_call(description, random, {{"row", rows}, {"edge", rows}, {"node", 3}, {"element", 2}});
                const Arrays reference = evaluate(description, call);
                for (const DType dtype : {DType::float64, DType::float32})
                    for (const InstructionSet isa : available_instruction_sets()) {
                        const Arrays found = run(description, call, dtype, isa, one.family);
                        for (const auto& [name, numbers] : reference) {
                            const double error = relative_error(found.at(name), numbers);
                            double& most = largest[dtype == DType::float32];
                            most = std::max(most, error);
                            if (!(error < (dtype == DType::float32 ? 2e-6 : 1e-13)))
                                FAIL_CHECK(one.operation << ", " << channels << " channels, order " << order << ": " << name << " in "
                                                         << std::string(to_text(dtype)) << ", " << to_text(isa) << ": " << error);
                        }
                    }
                // It must be the family's, but for what has one channel and may be another's.
                const auto* polynomial = std::get_if<Polynomial>(&description);
                if (order > 0 || polynomial == nullptr || channels == 1 || *one.family == '\0') continue;
                const std::string explained =
                    PolynomialPlan(*polynomial, {.dtypes = {}, .compute = {}, .instruction_set = {}, .family = one.family}).explain();
                CHECK_MESSAGE(explained.find(std::string("\n") + one.family + ": ") != std::string::npos, explained);
            }
        }
    CHECK(largest[1] > 1e-8);  // something was rounded
    MESSAGE("largest error in float64 " << largest[0] << ", in float32 " << largest[1]);
}
