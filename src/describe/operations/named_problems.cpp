#include "describe/operations/named_problems.hpp"

#include <algorithm>
#include <tuple>

#include "base/error.hpp"
#include "describe/operations/convolution.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/products.hpp"
#include "describe/operations/symmetric_contraction.hpp"

namespace clebsch {
namespace {

enum class Kind {
    convolution,
    nequip_convolution,
    fully_connected_shared,
    fully_connected_per_row,
    product,
    linear,
    harmonics,
    contraction
};

struct Problem {
    std::string label;
    Kind kind;
    std::string in, edge, out;  // first input, second input (or correlation), output or filter
    std::string origin;
    std::string published = {};  // OpenEquivariance's label, where it is another
};

const char* kind_text(Kind kind) {
    switch (kind) {
        case Kind::convolution:
        case Kind::nequip_convolution:
            return "convolution";
        case Kind::fully_connected_shared:
        case Kind::fully_connected_per_row:
            return "fully connected";
        case Kind::product:
            return "product";
        case Kind::linear:
            return "linear";
        case Kind::harmonics:
            return "harmonics";
        case Kind::contraction:
            return "symmetric contraction";
    }
    return "";
}

/// "128x0e+128x1o+...": every degree up to lmax with natural parity.
std::string natural(int lmax, int channels) {
    std::vector<IrrepBlock> blocks = Irreps::spherical_harmonics(lmax).blocks();
    for (IrrepBlock& block : blocks) block.multiplicity = channels;
    return to_text(Irreps(std::move(blocks)));
}

std::vector<Problem> all_problems() {
    const std::string sh1 = "1x0e+1x1o", sh2 = "1x0e+1x1o+1x2e", sh3 = "1x0e+1x1o+1x2e+1x3o", even3 = "1x0e+1x1e+1x2e+1x3e";
    const std::string nequix = "128x0e+64x1o+32x2e+32x3o", sevennet = "128x0e+64x1e+32x2e+32x3e";
    const std::string diffdock = "10x1o+10x1e+48x0e+48x0o", tetris = "64x0e+24x1e+24x1o+16x2e+16x2o";
    auto both = [](int lmax, const std::string& channels) {
        std::string text;
        for (int l = 0; l <= lmax; ++l)
            for (const char* parity : {"o", "e"}) text += (text.empty() ? "" : "+") + channels + "x" + std::to_string(l) + parity;
        return text;
    };
    std::vector<Problem> problems = {
        {"mace-large", Kind::convolution, "128x0e+128x1o+128x2e", sh3, "0e+1o+2e+3o", "MACE-MP-0 large, second layer"},
        {"mace-medium", Kind::convolution, "128x0e+128x1o", sh3, "0e+1o+2e", "MACE medium as OpenEquivariance measures it"},
        {"mace-mp-medium", Kind::convolution, "128x0e+128x1o", sh3, "0e+1o+2e+3o", "MACE-MP-0 medium, second layer; MACE-MH-1"},
        {"mace-first", Kind::convolution, "128x0e", sh3, "0e+1o+2e+3o", "MACE, first layer; MACE small"},
        {"nequip-lips", Kind::nequip_convolution, both(2, "32"), sh2, both(2, "1"), "NequIP, Li6PS5Cl"},
        {"nequip-revmd17-aspirin", Kind::nequip_convolution, both(1, "64"), sh1, both(1, "1"), "NequIP, revised MD17"},
        {"nequip-revmd17-toluene", Kind::nequip_convolution, both(2, "64"), sh2, both(2, "1"), "NequIP, revised MD17"},
        {"nequip-revmd17-benzene", Kind::nequip_convolution, both(3, "64"), sh3, both(3, "1"), "NequIP, revised MD17"},
        {"nequip-water", Kind::nequip_convolution, both(1, "32"), sh1, both(1, "1"), "NequIP, water"},
        {"nequip-oam-l", Kind::nequip_convolution, nequix, sh3, "0e+1o+2e+3o", "NequIP-OAM-L, middle layers"},
        {"nequip-oam-xl", Kind::nequip_convolution, "320x0e+96x1o+64x2e+32x3o+32x4e", sh3 + "+1x4e", "0e+1o+2e+3o+4e",
         "NequIP-OAM-XL, middle layers"},
        {"nequix-first", Kind::convolution, "89x0e", sh3, "0e+1o+2e+3o", "Nequix MP-1, first layer", "nequix-mp-1-first_layer"},
        {"nequix-main", Kind::convolution, nequix, sh3, "0e+1o+2e+3o", "Nequix MP-1, middle layers", "nequix-mp-1-main_layers"},
        {"nequix-last", Kind::convolution, nequix, sh3, "0e", "Nequix MP-1, last layer", "nequix-mp-1-last_layer"},
        {"sevennet-l3i5-first", Kind::convolution, "128x0e", even3, "0e+1e+2e+3e", "SevenNet-l3i5, first layer", "SevenNet_l3i5-first"},
        {"sevennet-l3i5-main", Kind::convolution, sevennet, even3, "0e+1e+2e+3e", "SevenNet-l3i5, middle layers", "SevenNet_l3i5-main"},
        {"sevennet-l3i5-last", Kind::convolution, sevennet, even3, "0e", "SevenNet-l3i5, last layer", "SevenNet_l3i5-last"},
        {"sevennet-0", Kind::convolution, "128x0e+64x1e+32x2e", "1x0e+1x1e+1x2e", "0e+1e+2e", "SevenNet-0, middle layers"},
        {"sevennet-omni", Kind::convolution, "128x0e+64x1o+64x1e+32x2o+32x2e+32x3o+32x3e", sh3, "0e+0o+1o+1e+2o+2e+3o+3e",
         "SevenNet-MF-ompa and Omni, middle layers"},
        {"diffdock-1", Kind::fully_connected_per_row, diffdock, sh1, diffdock, "DiffDock, harmonics to 1", "DiffDock-L=1"},
        {"diffdock-2", Kind::fully_connected_per_row, diffdock, sh2, diffdock, "DiffDock, harmonics to 2", "DiffDock-L=2"},
        {"tetris-poly-1", Kind::fully_connected_shared, sh3, sh3, tetris, "e3nn's tetris example, first product"},
        {"tetris-poly-2", Kind::fully_connected_shared, tetris, sh2, "1x0o+6x0e", "e3nn's tetris example, second product"},
        {"tetris-poly-2-per-row", Kind::fully_connected_per_row, tetris, sh2, "1x0o+6x0e", "the same with weights per row"},
        {"e3tools-conv", Kind::fully_connected_per_row, "64x0e+16x1o", sh1, "80x0e+16x1o", "e3tools, convolution", "e3tools_conv"},
        {"e3tools-transformer", Kind::fully_connected_shared, "64x0e+16x1o", sh1, "64x0e+16x1o", "e3tools, transformer",
         "e3tools_transformer"},
        {"linear-128", Kind::linear, "128x0e+128x1o+128x2e", "", "128x0e+128x1o+128x2e", "linear map to itself"},
        {"harmonics-3", Kind::harmonics, "", "", natural(3, 1), "normalised vectors, degrees 0 to 3"},
        {"harmonics-6", Kind::harmonics, "", "", natural(6, 1), "normalised vectors, degrees 0 to 6"},
        {"symmetric-contraction-128", Kind::contraction, natural(3, 128), "3", "128x0e+128x1o", "MACE, correlation 3, weights per element"},
    };
    for (const auto& [a, b, c] : {std::tuple{"1e", "1e", "1e"},
                                  {"2e", "1e", "2e"},
                                  {"3e", "3e", "3e"},
                                  {"5e", "5e", "3e"},
                                  {"5e", "3e", "5e"},
                                  {"6e", "3e", "6e"},
                                  {"7e", "4e", "7e"},
                                  {"7e", "7e", "7e"}}) {
        std::string label = "roofline-";
        label.append(a).append("-").append(b).append("-").append(c);
        problems.push_back({label, Kind::product, std::string("128x") + a, std::string("1x") + b, c, "one path, 128 channels"});
    }
    for (int lmax : {2, 3})
        for (int channels : {64, 128, 256, 512, 1024})
            problems.push_back({"natural-l" + std::to_string(lmax) + "-" + std::to_string(channels), Kind::convolution,
                                natural(lmax, channels), natural(lmax, 1), natural(lmax, 1), "natural parities, as published for an H100"});
    return problems;
}

const std::vector<Problem>& problem_table() {
    static const std::vector<Problem> table = all_problems();
    return table;
}

std::string summary_of(const Problem& problem) {
    switch (problem.kind) {
        case Kind::linear:
            return problem.in + " -> " + problem.out + " (" + problem.origin + ")";
        case Kind::harmonics:
            return problem.out + " (" + problem.origin + ")";
        case Kind::contraction:
            return problem.in + " -> " + problem.out + ", correlation " + problem.edge + " (" + problem.origin + ")";
        default:
            return problem.in + " x " + problem.edge + " -> " + problem.out + " (" + problem.origin + ")";
    }
}

Description build(const Problem& problem, ProblemForm form) {
    const Irreps in(problem.in), out(problem.out);
    TensorProductOptions per_row;
    per_row.weights.rows = each_row();
    switch (problem.kind) {
        case Kind::convolution:
        case Kind::nequip_convolution: {
            ConvolutionOptions options;
            if (problem.kind == Kind::nequip_convolution) options.weight_order = WeightOrder::generation;
            if (form == ProblemForm::product)
                return tensor_product(channelwise_product(in, Irreps(problem.edge), out, options.weight_order), per_row);
            return convolution(in, Irreps(problem.edge), out, options);
        }
        case Kind::product:
            return tensor_product(channelwise_product(in, Irreps(problem.edge), out), per_row);
        case Kind::fully_connected_shared:
            return tensor_product(fully_connected(in, Irreps(problem.edge), out));
        case Kind::fully_connected_per_row:
            return tensor_product(fully_connected(in, Irreps(problem.edge), out), per_row);
        case Kind::linear:
            return linear(in, out);
        case Kind::harmonics:
            return normalized_harmonics(out);
        case Kind::contraction:
            break;
    }
    return symmetric_contraction(in, out, std::stoi(problem.edge));
}

}  // namespace

const std::vector<NamedProblem>& named_problems() {
    static const std::vector<NamedProblem> list = [] {
        std::vector<NamedProblem> problems;
        for (const Problem& problem : problem_table())
            problems.push_back({problem.label, kind_text(problem.kind), summary_of(problem), problem.published});
        return problems;
    }();
    return list;
}

Description named_problem(std::string_view label, ProblemForm form) {
    const auto found =
        std::ranges::find_if(problem_table(), [&](const Problem& problem) { return label == problem.label || label == problem.published; });
    if (found != problem_table().end()) return build(*found, form);
    std::string labels;
    for (const Problem& problem : problem_table()) labels += (labels.empty() ? "" : ", ") + problem.label;
    throw Error(ErrorKind::not_found, "no problem is called '" + std::string(label) + "'; there are " + labels);
}

}  // namespace clebsch
