#include "describe/operations/operation_table.hpp"

#include "base/error.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/custom.hpp"
#include "describe/operations/gate.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/layout_change.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/named_problems.hpp"
#include "describe/operations/norm.hpp"
#include "describe/operations/pooling.hpp"
#include "describe/operations/products.hpp"
#include "describe/operations/radial_network.hpp"
#include "describe/operations/rotation.hpp"
#include "describe/operations/symmetric_contraction.hpp"
#include "describe/operations/tensor_square.hpp"
#include "describe/operations/text_fields.hpp"

namespace clebsch {
namespace {

using Options = std::vector<OptionInfo>;

// Options
// -------------------------------------------------------------------------------------------------------------------------------------------------

OptionInfo required(const char* name, const char* type, const char* help) { return {name, type, "", true, {}, help}; }
OptionInfo optional(const char* name, const char* type, const char* value, const char* help) {
    return {name, type, value, false, {}, help};
}
OptionInfo one_of(const char* name, std::vector<std::string> choices, const char* help) {
    std::string first = choices.front();
    return {name, "choice", std::move(first), false, std::move(choices), help};
}
OptionInfo layout_of(const char* name, const char* help) { return one_of(name, {"mul_ir", "ir_mul"}, help); }

Options together(Options options, const Options& more) {
    options.insert(options.end(), more.begin(), more.end());
    return options;
}

const Options normalizations = {
    one_of("irrep_normalization", {"component", "norm", "none"}, "size of the outputs' irreps"),
    one_of("path_normalization", {"element", "path", "none"}, "what counts alike in a sum: terms, instructions"),
    one_of("signs", {"e3nn-0.5", "e3nn-0.4"}, "sign table of the coupling coefficients")};
const Options weight_use = {
    one_of("weights", {"shared", "per_row", "species"}, "one set, one per row, or one per species (index species: row -> element)")};
const Options two_layouts = {layout_of("x_layout", "of the input"), layout_of("out_layout", "of the output")};
const Options three_layouts = {layout_of("x_layout", "of the first input"), layout_of("y_layout", "of the second input"),
                               layout_of("out_layout", "of the output")};
const Options activation_options = {
    one_of("normalization", {"e3nn", "exact", "none", "nequix"}, "where the functions' factors come from; 'silu:1.5' states one")};

Layout layout(const OptionValues& options, std::string_view name) {
    return options.choice(name) == "mul_ir" ? Layout::mul_ir : Layout::ir_mul;
}

IrrepNormalization irrep_normalization(const OptionValues& options) {
    const std::string value = options.choice("irrep_normalization");
    if (value == "component") return IrrepNormalization::component;
    return value == "norm" ? IrrepNormalization::norm : IrrepNormalization::none;
}

PathNormalization path_normalization(const OptionValues& options) {
    const std::string value = options.choice("path_normalization");
    if (value == "element") return PathNormalization::element;
    return value == "path" ? PathNormalization::path : PathNormalization::none;
}

SignTable signs(const OptionValues& options) { return options.choice("signs") == "e3nn-0.5" ? SignTable::e3nn_0_5 : SignTable::e3nn_0_4; }

/// Weights shared, per row or per species: their rows, and the index that takes.
template <class AnyOptions>
void set_weights(AnyOptions& result, const OptionValues& options) {
    const std::string use = options.choice("weights");
    if (use == "shared") result.weights.rows = shared_row();
    if (use == "per_row") result.weights.rows = each_row();
    if (use == "species") {
        result.indices = {{"species", result.rows, "element", false}};
        result.weights.rows = row_of("species");
    }
}

TensorProductOptions product_options(const OptionValues& options, bool weighted) {
    TensorProductOptions result;
    result.irrep_normalization = irrep_normalization(options);
    result.path_normalization = path_normalization(options);
    result.signs = signs(options);
    result.x.layout = layout(options, "x_layout");
    result.y.layout = layout(options, "y_layout");
    result.out.layout = layout(options, "out_layout");
    if (weighted) set_weights(result, options);
    return result;
}

template <class AnyOptions>
void set_layouts(AnyOptions& result, const OptionValues& options) {
    result.x.layout = layout(options, "x_layout");
    result.out.layout = layout(options, "out_layout");
}

std::vector<Activation> activations(const OptionValues& options, std::string_view name) {
    return parse_activations(options.text(name), parse_activation_normalization(options.choice("normalization")));
}

// Operations
// ----------------------------------------------------------------------------------------------------------------------------------------------

Description build_tensor_product(const OptionValues& options) {
    TensorProductOptions result = product_options(options, true);
    result.in1_variances = options.numbers("in1_variances");
    result.in2_variances = options.numbers("in2_variances");
    result.out_variances = options.numbers("out_variances");
    return tensor_product(options.irreps("in1"), options.irreps("in2"), options.irreps("out"),
                          parse_instructions(options.text("instructions")), result);
}

/// The tensor product over any segments, with coefficients given as entries for each instruction.
Description build_custom(const OptionValues& options) {
    TensorProductOptions result = product_options(options, true);
    const std::vector<Segment> in1 = parse_segments(options.text("in1"), "in1"), in2 = parse_segments(options.text("in2"), "in2"),
                               out = parse_segments(options.text("out"), "out");
    std::vector<Instruction> instructions = parse_instructions(options.text("instructions"));
    const std::vector<std::string> coefficients = split_fields(options.text("coefficients"), ';');
    if (coefficients.size() != instructions.size())
        fail("custom_product: expected coefficients for " + std::to_string(instructions.size()) + " instructions, got " +
             std::to_string(coefficients.size()));
    for (std::size_t i = 0; i < instructions.size(); ++i) {
        Instruction& instruction = instructions[i];
        auto components = [&](const std::vector<Segment>& segments, int segment) {
            if (segment < 0 || static_cast<std::size_t>(segment) >= segments.size())
                fail("custom_product, instruction " + std::to_string(i) + ": segment " + std::to_string(segment) +
                     " does not exist, there are " + std::to_string(segments.size()));
            return segments[static_cast<std::size_t>(segment)].components;
        };
        if (coefficients[i].empty()) continue;  // wigner_3j of the segments' irreps
        instruction.coefficients =
            Coefficients::literal({components(in1, instruction.in1), components(in2, instruction.in2), components(out, instruction.out)},
                                  parse_entries(coefficients[i], "custom_product, coefficients of instruction " + std::to_string(i)));
    }
    return tensor_product(in1, in2, out, instructions, result);
}

Description build_fully_connected(const OptionValues& options) {
    return tensor_product(fully_connected(options.irreps("in1"), options.irreps("in2"), options.irreps("out")),
                          product_options(options, true));
}

Description build_full(const OptionValues& options) {
    return tensor_product(full_product(options.irreps("in1"), options.irreps("in2"), options.irrep_list("filter")),
                          product_options(options, false));
}

Description build_elementwise(const OptionValues& options) {
    return tensor_product(elementwise_product(options.irreps("in1"), options.irreps("in2"), options.irrep_list("filter")),
                          product_options(options, false));
}

Description build_channelwise(const OptionValues& options) {
    const WeightOrder order = options.choice("weight_order") == "generation" ? WeightOrder::generation : WeightOrder::by_output;
    const OutputSegments outputs = options.choice("output_segments") == "per_path" ? OutputSegments::per_path : OutputSegments::merged;
    return tensor_product(channelwise_product(options.irreps("in1"), options.irreps("in2"), options.irreps("filter"), order, outputs),
                          product_options(options, true));
}

Description build_tensor_square(const OptionValues& options) {
    TensorSquareOptions result;
    result.irrep_normalization = irrep_normalization(options);
    result.path_normalization = path_normalization(options);
    result.signs = signs(options);
    result.filter = options.irrep_list("filter");
    set_layouts(result, options);
    set_weights(result, options);
    if (options.empty("out")) return tensor_square(options.irreps("in"), result);
    return tensor_square(options.irreps("in"), options.irreps("out"), result);
}

/// "true": every 0e; "false"; or the numbers of output segments.
std::vector<int> bias_segments(const OptionValues& options, const Irreps& out) {
    const std::string text = options.text("biases");
    if (text == "true") return scalar_segments(out);
    if (text == "false") return {};
    std::vector<int> segments;
    for (const std::string& field : split_fields(text, ','))
        segments.push_back(parse_integer<int>(field, "linear, option biases (true, false or output segments)"));
    return segments;
}

Description build_linear(const OptionValues& options) {
    LinearOptions result;
    result.path_normalization = path_normalization(options);
    result.scale = options.number("scale");
    result.f_in = options.small_integer("f_in");
    result.f_out = options.small_integer("f_out");
    set_layouts(result, options);
    set_weights(result, options);
    const Irreps out = options.irreps("out");
    result.biases = bias_segments(options, out);
    if (!options.empty("instructions")) {
        result.instructions.emplace();
        for (const std::string& pair : split_fields(options.text("instructions"), ';')) {
            const std::vector<std::string> ends = split_fields(pair, ',');
            const std::string where = "linear, instruction '" + pair + "'";
            if (ends.size() != 2) fail(where + ": expected input segment,output segment");
            result.instructions->emplace_back(parse_integer<int>(ends[0], where), parse_integer<int>(ends[1], where));
        }
    }
    if (result.weights.rows == row_of("species")) result.bias.rows = result.weights.rows;
    return linear(options.irreps("in"), out, result);
}

Description build_convolution(const OptionValues& options) {
    ConvolutionOptions result;
    result.irrep_normalization = irrep_normalization(options);
    result.path_normalization = path_normalization(options);
    result.signs = signs(options);
    result.x.layout = layout(options, "x_layout");
    result.y.layout = layout(options, "y_layout");
    result.out.layout = layout(options, "out_layout");
    result.weight_order = options.choice("weight_order") == "generation" ? WeightOrder::generation : WeightOrder::by_output;
    result.output_segments = options.choice("output_segments") == "per_path" ? OutputSegments::per_path : OutputSegments::merged;
    result.scale = options.number("scale");
    result.receivers_sorted = options.boolean("sorted");
    const std::string weights = options.choice("weights");
    result.weighted = weights != "none";
    if (weights == "shared") result.weights.rows = shared_row();
    const Irreps in = options.irreps("in"), edge = options.irreps("edge"), out = options.irreps("out");
    if (options.choice("product") == "channelwise") return convolution(in, edge, out, result);
    ProductPlan plan = fully_connected(in, edge, out);
    return convolution(plan, result);
}

Description build_harmonics(const OptionValues& options) {
    HarmonicsOptions result;
    const std::string normalization = options.choice("normalization");
    if (normalization == "norm") result.normalization = HarmonicsNormalization::norm;
    if (normalization == "integral") result.normalization = HarmonicsNormalization::integral;
    result.rows = options.text("rows");
    result.out.layout = layout(options, "out_layout");
    if (options.boolean("normalize")) return normalized_harmonics(options.irreps("irreps"), result);
    return spherical_harmonics(options.irreps("irreps"), result);
}

Description build_contraction(const OptionValues& options) {
    ContractionOptions result;
    set_layouts(result, options);
    const std::string weights = options.choice("weights");
    if (weights == "shared") result.weights.rows = shared_row();
    if (weights == "per_row") result.weights.rows = each_row();
    if (!options.empty("bases"))
        return symmetric_contraction(options.irreps("in"), options.irreps("out"), parse_bases(options.text("bases")), result);
    return symmetric_contraction(options.irreps("in"), options.irreps("out"), options.small_integer("correlation"), result);
}

Description build_rotation(const OptionValues& options) {
    RotationOptions result;
    result.inverse = options.boolean("inverse");
    result.matrix_per_irrep = options.boolean("matrix_per_irrep");
    set_layouts(result, options);
    return rotation(options.irreps("irreps"), result);
}

Description build_layout_change(const OptionValues& options) {
    CopyOptions result;
    set_layouts(result, options);
    result.scale = options.number("scale");
    return copy(segments_of(options.irreps("irreps")), result);
}

Description build_pooling(const OptionValues& options) {
    PoolingOptions result;
    result.rows = options.text("rows");
    result.groups = options.text("groups");
    result.index = options.text("index");
    result.sorted = options.boolean("sorted");
    result.scale = options.number("scale");
    set_layouts(result, options);
    const std::vector<Segment> segments = segments_of(options.irreps("irreps"));
    return options.choice("direction") == "sum" ? pool_rows(segments, result) : broadcast_rows(segments, result);
}

Description build_gate(const OptionValues& options) {
    GateOptions result;
    set_layouts(result, options);
    return gate(options.irreps("scalars"), activations(options, "scalar_functions"), options.irreps("gates"),
                activations(options, "gate_functions"), options.irreps("gated"), result);
}

Description build_activation(const OptionValues& options) {
    ActivationOptions result;
    set_layouts(result, options);
    return activation(options.irreps("irreps"), activations(options, "functions"), result);
}

Description build_norm(const OptionValues& options) {
    NormOptions result;
    set_layouts(result, options);
    if (options.boolean("squared")) return squared_norm(options.irreps("irreps"), result);
    return norm(options.irreps("irreps"), result);
}

Description build_norm_activation(const OptionValues& options) {
    NormActivationOptions result;
    set_layouts(result, options);
    result.normalize = options.boolean("normalize");
    result.bias = options.boolean("bias");
    result.epsilon = options.number("epsilon");
    return norm_activation(options.irreps("irreps"),
                           parse_activation(options.text("function"), parse_activation_normalization(options.choice("normalization"))),
                           result);
}

Description build_layer_norm(const OptionValues& options) {
    LayerNormOptions result;
    set_layouts(result, options);
    result.epsilon = options.number("epsilon");
    return layer_norm(options.irreps("irreps"), result);
}

Description build_radial_network(const OptionValues& options) {
    RadialOptions result;
    result.basis = parse_radial_basis(options.choice("basis"));
    result.basis_size = options.small_integer("basis_size");
    result.cutoff = options.number("cutoff");
    if (!options.empty("bessel_prefactor")) result.bessel_prefactor = options.number("bessel_prefactor");
    result.start = options.number("start");
    result.open_ends = options.boolean("open_ends");
    result.cutoff_power = options.small_integer("cutoff_power");
    result.hidden = options.integers("hidden");
    result.outputs = options.integer("outputs");
    result.activation = parse_activation(options.text("function"), parse_activation_normalization(options.choice("normalization")));
    result.fan_in = options.boolean("fan_in");
    result.from_vectors = options.choice("input") == "vectors";
    return radial_network(result);
}

Description build_perceptron(const OptionValues& options) {
    return multilayer_perceptron(
        options.integer("inputs"), options.integers("hidden"), options.integer("outputs"),
        parse_activation(options.text("function"), parse_activation_normalization(options.choice("normalization"))),
        options.boolean("fan_in"), options.text("rows"));
}

Description build_named(const OptionValues& options) {
    return named_problem(options.text("label"), options.choice("form") == "product" ? ProblemForm::product : ProblemForm::as_measured);
}

std::vector<OperationEntry> make_table() {
    const OptionInfo in1 = required("in1", "irreps", "first input"), in2 = required("in2", "irreps", "second input"),
                     out = required("out", "irreps", "output");
    const OptionInfo in = required("in", "irreps", "input"), irreps = required("irreps", "irreps", "irreps of input and output");
    const OptionInfo filter = optional("filter", "irreps", "", "keep only these output irreps; empty: all");
    const OptionInfo scale = optional("scale", "number", "1", "factor of the result");
    const OptionInfo weight_order = one_of("weight_order", {"by_output", "generation"},
                                           "order of paths: by output segment (MACE, SevenNet, Nequix) or as generated (NequIP)");
    const OptionInfo output_segments =
        one_of("output_segments", {"per_path", "merged"}, "one output segment per path, or equal ones summed");
    const OptionInfo function = optional("function", "text", "silu", "e.g. silu, tanh, sigmoid, none, silu:1.6766");
    const OptionInfo fan_in = optional("fan_in", "boolean", "true", "divide every matrix by the root of its number of inputs");
    const OptionInfo rows = optional("rows", "text", "row", "name of the row space");
    return {
        {{"tensor_product", "tensor product by instructions (e3nn's TensorProduct)",
          together(together({in1, in2, out,
                             required("instructions", "text",
                                      "in1,in2,out,mode,weighted|plain[,path weight]; ... with modes uvw uvu uvv uuw uuu uvuv uvu<v u<vw"),
                             optional("in1_variances", "list", "", "one number per block; empty: 1"),
                             optional("in2_variances", "list", "", "likewise"), optional("out_variances", "list", "", "likewise")},
                            together(normalizations, weight_use)),
                   three_layouts)},
         build_tensor_product},
        {{"custom_product", "tensor product of any segments with coefficients of one's own",
          together(
              together({required("in1", "segments", "first input, e.g. 2x1o+4x(3): irreps, or channels of plain components in brackets"),
                        required("in2", "segments", "second input"), required("out", "segments", "output"),
                        required("instructions", "text", "as for tensor_product"),
                        required("coefficients", "text",
                                 "per instruction 'i,j,k:value i,j,k:value', separated by ';'; empty: the irreps' coupling")},
                       together(normalizations, weight_use)),
              three_layouts)},
         build_custom},
        {{"fully_connected", "every allowed triple of blocks, all channels mixed",
          together({in1, in2, out}, together(together(normalizations, weight_use), three_layouts))},
         build_fully_connected},
        {{"full_product", "every product of two blocks, no weights", together({in1, in2, filter}, together(normalizations, three_layouts))},
         build_full},
        {{"elementwise_product", "channel n with channel n, no weights",
          together({in1, in2, filter}, together(normalizations, three_layouts))},
         build_elementwise},
        {{"channelwise_product", "channels of the first input kept apart (uvu), one weight per path and channel",
          together({in1, in2, filter, weight_order, output_segments}, together(together(normalizations, weight_use), three_layouts))},
         build_channelwise},
        {{"tensor_square", "an input with itself; with out: fully connected and weighted",
          together({in, optional("out", "irreps", "", "output; empty: every product, no weights"), filter},
                   together(together(normalizations, weight_use), two_layouts))},
         build_tensor_square},
        {{"linear", "channels mixed within equal irreps",
          together({in, out, one_of("path_normalization", {"element", "path", "none"}, "what counts alike in a sum"),
                    optional("biases", "text", "false", "true: a bias for every 0e output; or a list of output segments"),
                    optional("instructions", "text", "", "input segment,output segment; ... (empty: every pair of equal irreps)"),
                    optional("f_in", "integer", "1", "copies of the input irreps in a row"),
                    optional("f_out", "integer", "1", "copies of the output irreps"), scale},
                   together(weight_use, two_layouts))},
         build_linear},
        {{"convolution", "gather at the sender, tensor product with the edge, sum at the receiver",
          together({in, required("edge", "irreps", "of the edges' harmonics"),
                    required("out", "irreps", "output irreps to keep (channelwise) or output (fully_connected)"),
                    one_of("product", {"channelwise", "fully_connected"}, "uvu, or uvw"), weight_order, output_segments,
                    one_of("weights", {"per_edge", "shared", "none"}, "per edge, one set, or none (channelwise)"), scale,
                    optional("sorted", "boolean", "true", "edges are sorted by receiver")},
                   together(normalizations, three_layouts))},
         build_convolution},
        {{"spherical_harmonics",
          "real spherical harmonics of vectors",
          {irreps, one_of("normalization", {"component", "norm", "integral"}, "size on the unit sphere"),
           optional("normalize", "boolean", "true", "of the normalised vector (a program), or of the vector as it is"), rows,
           layout_of("out_layout", "of the output")}},
         build_harmonics},
        {{"symmetric_contraction", "powers of features coupled channel by channel (MACE)",
          together({in, out, optional("correlation", "integer", "3", "highest power"),
                    one_of("weights", {"species", "shared", "per_row"}, "by index species: node -> element, one set, or per node"),
                    optional("bases", "text", "",
                             "a basis of one's own instead of correlation: 'output segment,correlation,parameters: "
                             "i,j,..,parameter,m:value ...; ...'")},
                   two_layouts)},
         build_contraction},
        {{"rotation", "features times a Wigner matrix per row",
          together(
              {irreps, optional("inverse", "boolean", "false", "transposed matrices"),
               optional("matrix_per_irrep", "boolean", "false", "one matrix per irrep (inversions too) instead of one per degree above 0")},
              two_layouts)},
         build_rotation},
        {{"layout_change", "copy into another layout", together({irreps, scale}, two_layouts)}, build_layout_change},
        {{"pooling", "sums of rows over groups, or the reverse",
          together({irreps, one_of("direction", {"sum", "broadcast"}, "rows to groups, or groups to rows"),
                    optional("rows", "text", "node", "row space"), optional("groups", "text", "graph", "row space of groups"),
                    optional("index", "text", "graph_of_node", "index from rows to groups"),
                    optional("sorted", "boolean", "true", "whether the index is sorted"), scale},
                   two_layouts)},
         build_pooling},
        {{"gate", "scalars through functions, other channels times activated scalars",
          together(
              together({optional("scalars", "irreps", "", "scalars kept"),
                        optional("scalar_functions", "list", "", "one per block, e.g. silu,tanh"),
                        required("gates", "irreps", "as many scalars as gated channels"),
                        required("gate_functions", "list", "one per block, e.g. sigmoid"), required("gated", "irreps", "what is gated")},
                       activation_options),
              two_layouts)},
         build_gate},
        {{"activation", "functions of scalar blocks",
          together(together({irreps, required("functions", "list", "one per block, e.g. silu,tanh,none")}, activation_options),
                   two_layouts)},
         build_activation},
        {{"norm", "norm of every channel",
          together({irreps, optional("squared", "boolean", "false", "the square, a polynomial")}, two_layouts)},
         build_norm},
        {{"norm_activation", "channels times a function of their norm",
          together(
              together({irreps, function, optional("normalize", "boolean", "true", "divide by the norm"),
                        optional("bias", "boolean", "false", "a bias per channel"), optional("epsilon", "number", "1e-8", "smallest norm")},
                       {one_of("normalization", {"none", "e3nn", "exact", "nequix"}, "where the function's factor comes from")}),
              two_layouts)},
         build_norm_activation},
        {{"layer_norm", "channels times a scale each, over the size of the whole row",
          together({irreps, optional("epsilon", "number", "1e-12", "added to the mean square")}, two_layouts)},
         build_layer_norm},
        {{"radial_network", "edge lengths to weights: basis, cutoff, multilayer perceptron",
          together({optional("outputs", "integer", "0", "number of weights; 0: the basis itself"),
                    one_of("basis", {"bessel", "gaussian", "smooth_finite"}, "radial functions"),
                    optional("basis_size", "integer", "8", "number of them"), optional("cutoff", "number", "5", "radius"),
                    optional("bessel_prefactor", "number", "", "default sqrt(2/cutoff); NequIP and Nequix 2/cutoff"),
                    optional("start", "number", "0", "where centres start"),
                    optional("open_ends", "boolean", "true", "centres keep off both ends"),
                    optional("cutoff_power", "integer", "6", "of the polynomial cutoff; 0: none"),
                    optional("hidden", "list", "64,64", "widths between matrices"), function, fan_in,
                    one_of("input", {"lengths", "vectors"}, "one number or a vector per edge")},
                   activation_options)},
         build_radial_network},
        {{"perceptron", "multilayer perceptron on plain channels (e3nn's FullyConnectedNet)",
          together({required("inputs", "integer", "width"), optional("hidden", "list", "64", "widths between matrices"),
                    required("outputs", "integer", "width"), function, fan_in, rows},
                   activation_options)},
         build_perceptron},
        {{"named",
          "a problem that is measured in this field, by label",
          {required("label", "text", "e.g. mace-large, nequix-main, tetris-poly-2"),
           one_of("form", {"as_measured", "product"}, "a convolution as it is, or its product per edge")}},
         build_named},
    };
}

}  // namespace

const std::vector<OperationEntry>& operation_table() {
    static const std::vector<OperationEntry> table = make_table();
    return table;
}

}  // namespace clebsch
