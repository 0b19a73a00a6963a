#include "model/nequix.hpp"

#include <cmath>
#include <span>

#include "base/error.hpp"
#include "base/number.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/gate.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/norm.hpp"
#include "describe/operations/program_builder.hpp"
#include "describe/operations/radial_network.hpp"

namespace clebsch {
namespace {

constexpr Layout layout = Layout::ir_mul;  // of node features: channels are contiguous

Activation silu() { return {Function{FunctionKind::silu, 0}, 1.0}; }
Activation scaled_silu() {
    return {Function{FunctionKind::silu, 0}, activation_scale(Function{FunctionKind::silu, 0}, ActivationNormalization::nequix)};
}

/// Builds the program layer by layer and collects weights as inputs come up.
class NequixProgram {
 public:
    explicit NequixProgram(const NequixCheckpoint& checkpoint) : checkpoint_(checkpoint) {}

    Model model() {
        vectors_ = program_.input("vectors", "edge", {{1, 3, Irrep{1, Parity::odd}}});
        HarmonicsOptions harmonics;
        harmonics.rows = "edge";
        const Irreps degrees = Irreps::spherical_harmonics(checkpoint_.lmax);
        harmonics_ = program_.apply("harmonics", normalized_harmonics(degrees, harmonics), {vectors_}).front();
        basis_ = program_.apply("basis", radial_network(nequix_basis(checkpoint_)), {vectors_}).front();

        int h = one();
        for (std::size_t l = 0; l < checkpoint_.layers.size(); ++l) h = layer(l, h);
        const int energy = linear("atom_energy", "readout", h, checkpoint_.layers.back().output, Irreps("1x0e"),
                                  one_of(checkpoint_.readout), checkpoint_.scale);

        Model model{.name = "nequix",
                    .program = {},
                    .weights = std::move(weights_),
                    .atomic_numbers = checkpoint_.atomic_numbers,
                    .element_energies = {},
                    .cutoff = checkpoint_.cutoff};
        model.program = program_.finish({energy});
        for (const float own : checkpoint_.atom_energies.values) model.element_energies.push_back(checkpoint_.shift + own);
        return model;
    }

 private:
    /// The number 1 at every node. One-hot species times a matrix is a row of the matrix: 1 times the species' weights.
    int one() {
        Polynomial polynomial;
        polynomial.rows = "node";
        polynomial.operands = {make_operand({"one"}, {{1, 1, Irrep{0, Parity::even}}}, Role::output)};
        add_path(polynomial, {{0, 0, "", -1}}, Coefficients(), 1.0, {});
        return program_.apply("one", polynomial, {});
    }

    /// One layer: message from linear_1, radial network and harmonics; linear_2 and skip; layer norm; gate.
    int layer(std::size_t number, int h) {
        const NequixLayer& layer = checkpoint_.layers[number];
        const std::string name = "layer" + std::to_string(number) + ".";
        const bool first = number == 0;
        const Irreps input = first ? Irreps("1x0e") : layer.input;

        const int m = linear(name + "m", name + "linear_1", h, input, layer.input, layer.linear_1, 1, first);
        const int w = radial(name, layer);
        const Polynomial convolution = nequix_message(checkpoint_, layer);
        const int sum = program_.apply(name + "message", convolution, {m, harmonics_, w});
        const Irreps summed = *irreps_of(convolution.operands.back());

        const int mixed = program_.sum(
            name + "mixed",
            {linear(name + "linear_2.out", name + "linear_2", sum, summed, layer.mixed, layer.linear_2),
             linear(name + "skip.out", name + "skip", h, input, layer.mixed, layer.skip, 1, first, checkpoint_.index_weights)});
        return gated(name, layer, checkpoint_.layer_norm ? normed(name, layer, mixed) : mixed);
    }

    /// Weights of the layer's paths for every edge.
    int radial(const std::string& name, const NequixLayer& layer) {
        const std::vector<std::int64_t> hidden(static_cast<std::size_t>(checkpoint_.radial_mlp_layers), checkpoint_.radial_mlp_size);
        const Program network = multilayer_perceptron(checkpoint_.radial_basis_size, hidden, layer.radial.back().shape.back(), silu(),
                                                      /*fan_in=*/false, "edge");
        std::vector<int> inputs = {basis_};
        for (std::size_t i = 0; i < layer.radial.size(); ++i) {
            const std::string matrix = name + "radial_" + std::to_string(i);
            inputs.push_back(
                weights(matrix, "", {{static_cast<std::int64_t>(layer.radial[i].values.size()), 1, {}}}, one_of(layer.radial[i])));
        }
        return program_.apply(name + "weights", network, inputs).front();
    }

    int normed(const std::string& name, const NequixLayer& layer, int x) {
        LayerNormOptions options;
        options.rows = "node";
        options.x.layout = options.out.layout = layout;
        std::vector<Segment> segments;
        for (const IrrepBlock& block : layer.mixed) segments.push_back({block.multiplicity, 1, Irrep{0, Parity::even}});
        const int scales = weights(name + "norm_scales", "", segments, layer.norm_scales);
        return program_.apply(name + "normed", layer_norm(layer.mixed, options), {x, scales}).front();
    }

    int gated(const std::string& name, const NequixLayer& layer, int x) {
        std::vector<IrrepBlock> scalars, others;
        for (const IrrepBlock& block : layer.output) (block.irrep.degree == 0 ? scalars : others).push_back(block);
        const Irreps gated(others);
        const bool gates = gated.num_irreps() > 0;
        GateOptions options;
        options.rows = "node";
        options.x.layout = options.out.layout = layout;
        const Program program =
            gate(Irreps(scalars), {scaled_silu()}, gates ? Irreps({{gated.num_irreps(), Irrep{0, Parity::even}}}) : Irreps(),
                 gates ? std::vector<Activation>{scaled_silu()} : std::vector<Activation>{}, gated, options);
        return program_.apply(name + "h", program, {x}).front();
    }

    /// `species`: x is the number 1 and stands for the one-hot species. `indexed`: the arrays have a leading axis of species.
    int linear(const std::string& out, const std::string& name, int x, const Irreps& from, const Irreps& to,
               std::span<const WeightArray> arrays, double scale = 1, bool species = false, bool indexed = false) {
        const auto elements = static_cast<std::int64_t>(checkpoint_.atomic_numbers.size());
        LinearOptions options;
        options.rows = "node";
        options.x.layout = options.out.layout = layout;
        options.scale = species ? scale / std::sqrt(static_cast<double>(elements)) : scale;
        if (species || indexed) {
            options.indices = {{"species", "node", "element", false}};
            options.weights.rows = row_of("species");
        }
        const Polynomial polynomial = clebsch::linear(from, to, options);
        const std::vector<Segment>& segments = polynomial.operands[1].segments;
        int matrices;
        if (species && indexed) matrices = weights(name, "element", segments, one_of(diagonal(arrays.front())));
        else matrices = weights(name, species || indexed ? "element" : "", segments, arrays);
        return program_.apply(out, polynomial, {x, matrices});
    }

    static std::span<const WeightArray> one_of(const WeightArray& array) { return {&array, 1}; }

    /// [species, species, channels] to [species, channels]: the rows that one-hot species pick.
    static WeightArray diagonal(const WeightArray& array) {
        const auto rows = static_cast<std::size_t>(array.shape[0]), channels = static_cast<std::size_t>(array.shape[2]);
        WeightArray result{{array.shape[0], array.shape[2]}, {}};
        for (std::size_t s = 0; s < rows; ++s)
            for (std::size_t c = 0; c < channels; ++c) result.values.push_back(array.values[(s * rows + s) * channels + c]);
        return result;
    }

    /// An input of the program. Its row holds the arrays one after another; per element, the arrays' rows.
    int weights(const std::string& name, const std::string& space, const std::vector<Segment>& segments,
                std::span<const WeightArray> arrays) {
        const std::size_t rows = space.empty() ? 1 : checkpoint_.atomic_numbers.size();
        ModelWeights result{name, {}};
        std::size_t numbers = 0;
        for (const WeightArray& array : arrays) numbers += array.values.size();
        result.values.reserve(numbers);
        for (std::size_t r = 0; r < rows; ++r) {
            for (const WeightArray& array : arrays) {
                const std::size_t size = array.values.size() / rows;
                const auto begin = array.values.begin() + static_cast<std::ptrdiff_t>(r * size);
                result.values.insert(result.values.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
            }
        }
        weights_.push_back(std::move(result));
        return program_.input(name, space, segments);
    }

    const NequixCheckpoint& checkpoint_;
    ProgramBuilder program_;
    std::vector<ModelWeights> weights_;
    int vectors_ = -1, harmonics_ = -1, basis_ = -1;
};

}  // namespace

RadialOptions nequix_basis(const NequixCheckpoint& checkpoint) {
    if (checkpoint.radial_polynomial_p != std::floor(checkpoint.radial_polynomial_p) || checkpoint.radial_polynomial_p > 64)
        throw Error(ErrorKind::unsupported,
                    "Nequix: expected a cutoff power that is an integer from 1 to 64, got " + number_text(checkpoint.radial_polynomial_p));
    RadialOptions options;
    options.basis_size = static_cast<int>(checkpoint.radial_basis_size);
    options.cutoff = checkpoint.cutoff;
    options.bessel_prefactor = 2 / checkpoint.cutoff;
    options.cutoff_power = static_cast<int>(checkpoint.radial_polynomial_p);
    options.from_vectors = true;
    return options;
}

Polynomial nequix_message(const NequixCheckpoint& checkpoint, const NequixLayer& layer) {
    std::vector<IrrepBlock> kept;
    for (const IrrepBlock& block : layer.message) kept.push_back({1, block.irrep});
    ConvolutionOptions options;
    options.scale = 1 / std::sqrt(checkpoint.avg_n_neighbors);
    options.x.layout = options.out.layout = layout;
    return convolution(layer.input, Irreps::spherical_harmonics(checkpoint.lmax), Irreps(kept), options);
}

Model nequix_model(const NequixCheckpoint& checkpoint) {
    Model model = NequixProgram(checkpoint).model();
    validate(model);
    return model;
}

}  // namespace clebsch
