#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"
#include "io/nequix.hpp"
#include "io/npy.hpp"

using namespace clebsch;

namespace {

const std::string checkpoint_path = CLEBSCH_SOURCE_DIR "/examples/data/nequix-mp-1.nqx";

/// A checkpoint of two layers with few numbers: hidden 2x0e+1x1o, lmax 1, two species.
struct Small {
    std::string head =
        R"({"atomic_numbers": [1, 8], "atom_energies": {"1": -1.0, "8": -2.0}, "hidden_irreps": "2x0e + 1x1o", "lmax": 1, "cutoff": 5.0, "n_layers": 2, )"
        R"("radial_basis_size": 3, "radial_mlp_size": 2, "radial_mlp_layers": 1, "radial_polynomial_p": 6.0, "avg_n_neighbors": 12.5, "shift": 0.5, "scale": 2.0, )"
        R"("layer_norm": true, "index_weights": false, "learning_rate": 0.01})";
    // atom energies | layer 0: radial, linear_1, linear_2 (0e, 1o), skip (0e), norm (0e, 1o) | layer 1 | readout
    std::vector<std::vector<std::int64_t>> shapes = {{2},    {3, 2}, {2, 4}, {2, 2}, {2, 3}, {2, 1}, {2, 3}, {3},   {1},
                                                     {3, 2}, {2, 3}, {2, 2}, {1, 1}, {3, 2}, {2, 2}, {2},    {2, 1}};
    std::string after;

    std::string text() const {
        std::string out = head + "\n";
        float next = 0.25f;
        for (const auto& shape : shapes) {
            const std::int64_t count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
            std::vector<float> values;
            for (std::int64_t i = 0; i < count; ++i) values.push_back(next += 0.5f);
            out += format_npy(make_array(values, shape));
        }
        return out + after;
    }
    void replace(const std::string& from, const std::string& to) {
        const std::size_t at = head.find(from);
        REQUIRE(at != std::string::npos);
        head.replace(at, from.size(), to);
    }
};

std::string message_of(const std::string& content) {
    try {
        parse_nequix(content, "small.nqx");
    } catch (const Error& error) { return error.what(); }
    return "accepted";
}

void check_rejected(const std::string& content, const std::string& part) {
    const std::string message = message_of(content);
    CAPTURE(message);
    CHECK(message.find("small.nqx") != std::string::npos);
    CHECK(message.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("the published MP-1 checkpoint: sizes, paths and numbers are those its authors' package reads") {
    const NequixCheckpoint model = read_nequix(checkpoint_path);
    CHECK(model.atomic_numbers.size() == 89);
    CHECK(model.atomic_numbers.front() == 1);
    CHECK(model.atomic_numbers.back() == 94);
    CHECK(to_text(model.hidden) == "128x0e+64x1o+32x2e+32x3o");
    CHECK(model.cutoff == 6.0);
    CHECK(model.layers.size() == 4);
    CHECK(model.layer_norm);
    CHECK_FALSE(model.index_weights);
    CHECK(model.scale == 0.8066479563713074);
    CHECK(model.parameters() == 707658);
    CHECK(model.unused_scalars == 0);
    CHECK(std::find(model.unused_keys.begin(), model.unused_keys.end(), "learning_rate") != model.unused_keys.end());
    CHECK(std::find(model.unused_keys.begin(), model.unused_keys.end(), "cutoff") == model.unused_keys.end());

    const std::size_t paths[] = {4, 23, 23, 4};
    const std::int64_t widths[] = {356, 1312, 1312, 256};
    const char* messages[] = {"89x0e+89x1o+89x2e+89x3o", "256x0e+352x1o+384x2e+320x3o", "256x0e+352x1o+384x2e+320x3o", "256x0e"};
    const char* mixed[] = {"256x0e+64x1o+32x2e+32x3o", "256x0e+64x1o+32x2e+32x3o", "256x0e+64x1o+32x2e+32x3o", "128x0e"};
    for (std::size_t i = 0; i < 4; ++i) {
        CAPTURE(i);
        const NequixLayer& layer = model.layers[i];
        CHECK(layer.paths.size() == paths[i]);
        CHECK(layer.radial.back().shape == std::vector<std::int64_t>{64, widths[i]});
        CHECK(layer.radial.size() == 3);
        CHECK(to_text(layer.message) == messages[i]);
        CHECK(to_text(layer.mixed) == mixed[i]);
        CHECK(layer.norm_scales.size() == layer.mixed.size());
    }
    // By output degree, then input degree, then harmonic degree.
    const int order[23][3] = {{0, 0, 0}, {1, 1, 0}, {2, 2, 0}, {3, 3, 0}, {0, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 1, 1},
                              {2, 3, 1}, {3, 2, 1}, {0, 2, 2}, {1, 1, 2}, {1, 3, 2}, {2, 0, 2}, {2, 2, 2}, {3, 1, 2},
                              {3, 3, 2}, {0, 3, 3}, {1, 2, 3}, {2, 1, 3}, {2, 3, 3}, {3, 0, 3}, {3, 2, 3}};
    for (std::size_t i = 0; i < 23; ++i) {
        const NequixPath& path = model.layers[1].paths[i];
        CHECK(path.input.degree == order[i][0]);
        CHECK(path.harmonic.degree == order[i][1]);
        CHECK(path.output.degree == order[i][2]);
    }
    // Hydrogen's energy: the array holds what the JSON map says, in float32.
    CHECK(model.atom_energies.values[0] == -3.6683144569396973f);
}

TEST_CASE("a small checkpoint reads back every number in order") {
    const NequixCheckpoint model = parse_nequix(Small().text(), "small.nqx");
    CHECK(model.unused_keys == std::vector<std::string>{"learning_rate"});
    CHECK(model.atom_energies.values == std::vector<float>{0.75f, 1.25f});
    CHECK(model.layers[0].radial[0].values.front() == 1.75f);
    CHECK(model.layers[1].skip_irreps.size() == 1);
    CHECK(to_text(model.layers[1].output) == "2x0e");
    CHECK(model.readout.values.back() == 0.25f + 0.5f * static_cast<float>(model.parameters()));
}

TEST_CASE("unused scalars and one newline may follow the arrays, nothing else") {
    const std::string scalar = format_npy(make_array(std::vector<float>{1.0f}, {}));
    const std::string integer_scalar = format_npy(make_array(std::vector<std::int64_t>{1}, {}));
    for (const auto& [after, count] :
         {std::pair<std::string, int>{"", 0}, {"\n", 0}, {scalar, 1}, {scalar + integer_scalar + scalar + "\n", 3}}) {
        Small file;
        file.after = after;
        CHECK(parse_nequix(file.text(), "small.nqx").unused_scalars == count);
    }
    const std::string vector = format_npy(make_array(std::vector<float>{1.0f, 2.0f}, {2}));
    for (const auto& [after, part] : {std::pair<std::string, std::string>{"\n\n", "expected a .npy array"},
                                      {" ", "expected a .npy array"},
                                      {"\n" + scalar, "expected a .npy array"},
                                      {vector, "array 17 of shape [2] is left over"},
                                      {scalar + vector, "has 17 arrays"},
                                      {scalar.substr(0, 30), "ends inside"}}) {
        Small file;
        file.after = after;
        check_rejected(file.text(), part);
    }
}

TEST_CASE("every key that defines the model is required and checked") {
    for (const char* key :
         {"atomic_numbers", "atom_energies", "hidden_irreps", "lmax", "cutoff", "n_layers", "radial_basis_size", "radial_mlp_size",
          "radial_mlp_layers", "radial_polynomial_p", "avg_n_neighbors", "shift", "scale", "layer_norm", "index_weights"}) {
        Small file;
        file.replace("\"" + std::string(key) + "\"", "\"other\"");
        check_rejected(file.text(), std::string("'") + key + "' is missing");
    }
    const std::tuple<const char*, const char*, const char*> damages[] = {
        {"[1, 8]", "[1, 1]", "distinct"},
        {"[1, 8]", "[1, 200]", "from 1 to 118"},
        {"[1, 8]", "[1]", "atom energies"},
        {"[1, 8]", "[1, 8.5]", "entry 1"},
        {"[1, 8]", "[1, 7]", "atomic number 7"},
        {"{\"1\": -1.0, \"8\": -2.0}", "3", "expected a map"},
        {"2x0e + 1x1o", "2x0e + 1x1e", "expected each of 0e, 1o"},
        {"2x0e + 1x1o", "1x1o + 2x0e", "expected each of 0e, 1o"},
        {"2x0e + 1x1o", "1x1o", "start with scalars"},
        {"2x0e + 1x1o", "2x0e + 1x2e", "lmax 1"},
        {"2x0e + 1x1o", "2x0e + banana", "hidden_irreps"},
        {"2x0e + 1x1o", "9999999999x0e", "multiplicities"},
        {"\"lmax\": 1", "\"lmax\": 13", "from 0 to 12"},
        {"\"lmax\": 1", "\"lmax\": 1.5", "an integer"},
        {"\"cutoff\": 5.0", "\"cutoff\": 0", "expected a number from 0.001 to 1e+06, got number 0"},
        {"\"cutoff\": 5.0", "\"cutoff\": 1e-300", "expected a number from 0.001 to 1e+06, got number 1e-300"},
        {"\"cutoff\": 5.0", "\"cutoff\": null", "expected a number, got null"},
        {"[1, 8]", "[1, 1099511627776]", "distinct numbers from 1 to 118, got 1099511627776"},
        {"\"cutoff\": 5.0", "\"cutoff\": -5", "got number -5"},
        {"\"cutoff\": 5.0", "\"cutoff\": \"5\"", "a number"},
        {"\"cutoff\": 5.0", "\"cutoff\": 1e999", "out of range"},
        {"\"n_layers\": 2", "\"n_layers\": 0", "from 1"},
        {"\"n_layers\": 2", "\"n_layers\": 18446744073709551615", "from 1"},
        {"\"n_layers\": 2", "\"n_layers\": 33", "from 1 to 32"},
        {"\"radial_basis_size\": 3", "\"radial_basis_size\": 9223372036854775807", "from 1"},
        {"\"avg_n_neighbors\": 12.5", "\"avg_n_neighbors\": 0", "above"},
        {"\"layer_norm\": true", "\"layer_norm\": 1", "true or false"},
        {"\"scale\": 2.0", "\"scale\": 2.0, \"scale\": 3.0", "twice"},
        {"{\"atomic", "[{\"atomic", "JSON"},
    };
    for (const auto& [from, given_to, part] : damages) {
        const auto& to = given_to;
        CAPTURE(to);
        Small file;
        file.replace(from, to);
        check_rejected(file.text(), part);
    }
}

TEST_CASE("arrays that do not fit the described model are rejected by name") {
    const std::tuple<const char*, const char*, const char*> changes[] = {
        {"\"n_layers\": 2", "\"n_layers\": 1", "layer 0 radial network, last matrix): expected float32 [2, 2], got float32 [2, 4]"},
        {"\"n_layers\": 2", "\"n_layers\": 3", "layer 1 radial network, last matrix"},
        {"\"layer_norm\": true", "\"layer_norm\": false", "layer 1 radial network, matrix 0"},
        {"\"index_weights\": false", "\"index_weights\": true", "layer 0 skip 0e): expected float32 [2, 2, 3]"},
        {"\"radial_mlp_layers\": 1", "\"radial_mlp_layers\": 2", "layer 0 radial network, matrix 1"},
        {"\"radial_basis_size\": 3", "\"radial_basis_size\": 4", "expected float32 [4, 2], got float32 [3, 2]"},
    };
    for (const auto& [from, given_to, part] : changes) {
        const auto& to = given_to;
        CAPTURE(to);
        Small file;
        file.replace(from, to);
        check_rejected(file.text(), part);
    }
    Small fewer;
    fewer.shapes.pop_back();
    check_rejected(fewer.text(), "readout): expected shape [2, 1], but the file has only 16 arrays");

    std::string content = Small().text();
    const std::string integers = format_npy(make_array(std::vector<std::int64_t>{1, 2}, {2}));
    content.replace(content.find('\n') + 1, format_npy(make_array(std::vector<float>{0, 0}, {2})).size(), integers);
    check_rejected(content, "expected float32 [2], got int64 [2]");

    content = Small().text();
    content.replace(content.size() - 4, 4, std::string("\x00\x00\xc0\x7f", 4));
    check_rejected(content, "readout): number 1 is not finite");
}

TEST_CASE("every truncation of a checkpoint is an error, none reads past the end") {
    const std::string content = Small().text();
    for (std::size_t size = 0; size < content.size(); ++size) {
        const std::string message = message_of(std::string(content.data(), size));  // a copy, so that a sanitizer sees its end
        if (message == "accepted") FAIL("accepted after " << size << " of " << content.size() << " bytes");
    }
}
