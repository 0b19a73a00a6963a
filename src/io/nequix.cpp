#include "io/nequix.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "io/json.hpp"
#include "io/npy.hpp"

namespace clebsch {

namespace {

constexpr std::int64_t line_limit = 1 << 24;  // the published ones have about 6 kB
constexpr std::int64_t size_limit = 1 << 20;  // largest accepted multiplicity or layer size: products of two stay far below 2^63
// Published models have four layers with three matrices each. A small file could name a thousand, whose planning takes minutes and
// gigabytes.
constexpr std::int64_t layer_limit = 32, matrix_limit = 64;

Irrep natural(int degree) { return {degree, degree % 2 == 0 ? Parity::even : Parity::odd}; }

/// Hands out the file's arrays in order; every request names the array it is for.
class ArrayReader {
 public:
    ArrayReader(std::string_view content, std::string_view file, std::int64_t begin) : content_(content), file_(file), at_(begin) {}

    WeightArray take(const std::string& name, std::vector<std::int64_t> shape) {
        const std::string which = "array " + std::to_string(count_) + " (" + name + "): ";
        if (at_end())
            fail_at_byte(file_, at_,
                         which + "expected shape " + to_text(shape) + ", but the file has only " + std::to_string(count_) + " arrays");
        const NpyArray read = parse_npy(content_, file_, at_);
        if (read.array.type != ElementType::float32 || read.array.shape != shape)
            fail_at_byte(
                file_, at_,
                which + "expected float32 " + to_text(shape) + ", got " + to_text(read.array.type) + " " + to_text(read.array.shape));
        WeightArray out{std::move(shape), to_float32(read.array)};
        float sum = 0;  // stays 0 while numbers are finite
        for (const float value : out.values) sum += 0 * value;
        if (sum != 0) {
            const auto wrong = std::ranges::find_if_not(out.values, [](float value) { return std::isfinite(value); });
            fail_at_byte(file_, at_, which + "number " + std::to_string(wrong - out.values.begin()) + " is not finite");
        }
        at_ = read.end;
        ++count_;
        return out;
    }

    /// Reads what may follow the model's own arrays, and returns the number of unused scalars.
    std::int64_t finish() {
        std::int64_t scalars = 0;
        while (!at_end()) {
            const NpyArray read = parse_npy(content_, file_, at_);
            if (!read.array.shape.empty())
                fail_at_byte(file_, at_,
                             "array " + std::to_string(count_) + " of shape " + to_text(read.array.shape) +
                                 " is left over: the model described by the JSON line has " + std::to_string(count_ - scalars) + " arrays");
            at_ = read.end;
            ++count_;
            ++scalars;
        }
        return scalars;
    }

 private:
    /// At the end of the file, or before the one newline that may end it.
    bool at_end() const {
        return content_.substr(static_cast<std::size_t>(at_)).empty() || content_.substr(static_cast<std::size_t>(at_)) == "\n";
    }

    std::string_view content_, file_;
    std::int64_t at_, count_ = 0;
};

double number_in(const JsonObject& json, const char* key, double least, double most, bool exclusive) {
    const double value = json.number(key);
    if (value < least || value > most || (exclusive && value == least))
        json.reject(key, std::string("a number ") + (exclusive ? "above " : "from ") + number_text(least) + " to " + number_text(most));
    return value;
}

Irreps read_hidden(const JsonObject& json, std::string_view file) {
    const std::string text = json.text("hidden_irreps");
    std::optional<Irreps> irreps;
    try {
        irreps.emplace(std::string_view(text));
    } catch (const Error& error) { fail_in_file(file, std::string("JSON key 'hidden_irreps': ") + error.what()); }
    int previous = -1;
    for (const IrrepBlock& block : *irreps) {
        if (block.multiplicity < 1 || block.multiplicity > size_limit)
            json.reject("hidden_irreps", "multiplicities from 1 to " + std::to_string(size_limit));
        if (block.irrep.degree <= previous || block.irrep != natural(block.irrep.degree))
            throw Error(ErrorKind::unsupported, "file " + in_quotes(file, 4096) + ": hidden irreps " + in_quotes(text) +
                                                    ": expected each of 0e, 1o, 2e, ... at most once and in this order");
        previous = block.irrep.degree;
    }
    if (irreps->size() == 0 || (*irreps)[0].irrep.degree != 0) json.reject("hidden_irreps", "irreps that start with scalars (0e)");
    return *irreps;
}

std::vector<int> read_species(const JsonObject& json) {
    std::vector<int> out;
    std::array<bool, 119> seen{};
    const nlohmann::json& energies = json.at("atom_energies");
    if (!energies.is_object()) json.reject("atom_energies", "a map from atomic numbers to energies");
    for (const std::int64_t number : json.integers("atomic_numbers")) {
        if (number < 1 || number > 118 || seen[static_cast<std::size_t>(number)])
            json.reject("atomic_numbers", "distinct numbers from 1 to 118", std::to_string(number));
        seen[static_cast<std::size_t>(number)] = true;
        const auto found = energies.find(std::to_string(number));
        if (found == energies.end() || !found->is_number())
            json.reject("atom_energies", "an energy for atomic number " + std::to_string(number));
        out.push_back(static_cast<int>(number));
    }
    if (out.empty() || energies.size() != out.size())
        json.reject("atomic_numbers",
                    "one atomic number for each of the atom energies, of which there are " + std::to_string(energies.size()));
    return out;
}

std::int64_t multiplicity(const Irreps& irreps, Irrep irrep) {
    std::int64_t sum = 0;
    for (const IrrepBlock& block : irreps)
        if (block.irrep == irrep) sum += block.multiplicity;
    return sum;
}

/// The shapes' side of one layer: everything but the arrays.
NequixLayer describe_layer(const NequixCheckpoint& model, const Irreps& input, bool last) {
    NequixLayer layer;
    layer.input = input;
    std::vector<IrrepBlock> output, mixed, message;
    std::int64_t gates = 0;
    for (const IrrepBlock& block : model.hidden) {
        if (last && block.irrep.degree != 0) continue;
        output.push_back(block);
        if (block.irrep.degree != 0) gates += block.multiplicity;
    }
    for (const IrrepBlock& block : output) {
        mixed.push_back(block);
        std::int64_t channels = 0;
        for (const IrrepBlock& in : input) {
            for (int harmonic = 0; harmonic <= model.lmax; ++harmonic) {
                const int l1 = in.irrep.degree, l3 = block.irrep.degree;
                // Parities are (-1)^l throughout, so that they allow the even sums of degrees.
                if (l3 < std::abs(l1 - harmonic) || l3 > l1 + harmonic || (l1 + harmonic + l3) % 2 != 0) continue;
                layer.paths.push_back({in.irrep, natural(harmonic), block.irrep, in.multiplicity});
                channels += in.multiplicity;
            }
        }
        if (channels > 0) message.push_back({channels, block.irrep});
    }
    mixed[0].multiplicity += gates;
    layer.output = Irreps(std::move(output));
    layer.mixed = Irreps(std::move(mixed));
    layer.message = Irreps(std::move(message));
    for (const IrrepBlock& block : layer.mixed)
        if (multiplicity(input, block.irrep) > 0) layer.skip_irreps.push_back(block.irrep);
    return layer;
}

void read_layer(NequixLayer& layer, const NequixCheckpoint& model, std::size_t index, ArrayReader& arrays) {
    const std::string prefix = "layer " + std::to_string(index) + " ";
    std::int64_t width = 0;
    for (const NequixPath& path : layer.paths) width += path.channels;
    std::int64_t rows = model.radial_basis_size;
    for (std::int64_t i = 0; i < model.radial_mlp_layers; ++i) {
        layer.radial.push_back(arrays.take(prefix + "radial network, matrix " + std::to_string(i), {rows, model.radial_mlp_size}));
        rows = model.radial_mlp_size;
    }
    layer.radial.push_back(arrays.take(prefix + "radial network, last matrix", {rows, width}));
    for (const IrrepBlock& block : layer.input)
        layer.linear_1.push_back(arrays.take(prefix + "linear_1 " + to_text(block.irrep), {block.multiplicity, block.multiplicity}));
    for (const IrrepBlock& block : layer.mixed)
        layer.linear_2.push_back(
            arrays.take(prefix + "linear_2 " + to_text(block.irrep), {multiplicity(layer.message, block.irrep), block.multiplicity}));
    for (const Irrep irrep : layer.skip_irreps) {
        std::vector<std::int64_t> shape{multiplicity(layer.input, irrep), multiplicity(layer.mixed, irrep)};
        if (model.index_weights) shape.insert(shape.begin(), static_cast<std::int64_t>(model.atomic_numbers.size()));
        layer.skip.push_back(arrays.take(prefix + "skip " + to_text(irrep), std::move(shape)));
    }
    if (!model.layer_norm) return;
    for (const IrrepBlock& block : layer.mixed)
        layer.norm_scales.push_back(arrays.take(prefix + "norm scales " + to_text(block.irrep), {block.multiplicity}));
}

}  // namespace

std::int64_t NequixCheckpoint::parameters() const {
    std::int64_t sum = static_cast<std::int64_t>(atom_energies.values.size() + readout.values.size());
    for (const NequixLayer& layer : layers)
        for (const auto* group : {&layer.radial, &layer.linear_1, &layer.linear_2, &layer.skip, &layer.norm_scales})
            for (const WeightArray& array : *group) sum += static_cast<std::int64_t>(array.values.size());
    return sum;
}

NequixCheckpoint parse_nequix(std::string_view content, std::string_view file) {
    const std::size_t line_end = content.substr(0, line_limit).find('\n');
    if (line_end == std::string_view::npos)
        fail_at_line(file, 1,
                     "expected one line of JSON, then arrays; there is no end of line in the first " +
                         std::to_string(std::min<std::size_t>(content.size(), line_limit)) + " bytes");
    const nlohmann::json value = parse_json(content.substr(0, line_end), file);
    const JsonObject json(value, file);

    NequixCheckpoint model;
    model.atomic_numbers = read_species(json);
    model.hidden = read_hidden(json, file);
    model.lmax = static_cast<int>(json.integer("lmax", 0, max_degree));
    model.cutoff = number_in(json, "cutoff", 1e-3, 1e6, false);
    if (model.hidden.lmax() > model.lmax)
        throw Error(ErrorKind::unsupported, "file " + in_quotes(file, 4096) + ": hidden irreps up to degree " +
                                                std::to_string(model.hidden.lmax()) + " with lmax " + std::to_string(model.lmax) +
                                                ": no path reaches them in the first layer");
    const std::int64_t layers = json.integer("n_layers", 1, layer_limit);
    model.radial_basis_size = json.integer("radial_basis_size", 1, size_limit);
    model.radial_mlp_size = json.integer("radial_mlp_size", 1, size_limit);
    model.radial_mlp_layers = json.integer("radial_mlp_layers", 1, matrix_limit);
    model.radial_polynomial_p = number_in(json, "radial_polynomial_p", 1.0, 1000.0, false);
    model.avg_n_neighbors = number_in(json, "avg_n_neighbors", 0.0, 1e9, true);
    model.shift = json.number("shift");
    model.scale = json.number("scale");
    model.layer_norm = json.boolean("layer_norm");
    model.index_weights = json.boolean("index_weights");
    constexpr std::string_view used[] = {"atomic_numbers",
                                         "atom_energies",
                                         "hidden_irreps",
                                         "lmax",
                                         "cutoff",
                                         "n_layers",
                                         "radial_basis_size",
                                         "radial_mlp_size",
                                         "radial_mlp_layers",
                                         "radial_polynomial_p",
                                         "avg_n_neighbors",
                                         "shift",
                                         "scale",
                                         "layer_norm",
                                         "index_weights"};
    for (const std::string& key : json.keys())
        if (std::find(std::begin(used), std::end(used), key) == std::end(used)) model.unused_keys.push_back(key);

    const auto species = static_cast<std::int64_t>(model.atomic_numbers.size());
    ArrayReader arrays(content, file, static_cast<std::int64_t>(line_end) + 1);
    model.atom_energies = arrays.take("atom energies", {species});
    Irreps input(std::vector<IrrepBlock>{{species, natural(0)}});
    for (std::int64_t i = 0; i < layers; ++i) {
        NequixLayer layer = describe_layer(model, input, i + 1 == layers);
        read_layer(layer, model, static_cast<std::size_t>(i), arrays);
        input = layer.output;
        model.layers.push_back(std::move(layer));
    }
    model.readout = arrays.take("readout", {model.hidden[0].multiplicity, 1});
    model.unused_scalars = arrays.finish();
    return model;
}

NequixCheckpoint read_nequix(const std::filesystem::path& path) { return parse_nequix(read_file(path), path.native()); }

}  // namespace clebsch
