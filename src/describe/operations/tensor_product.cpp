#include "describe/operations/tensor_product.hpp"

#include <array>
#include <cmath>
#include <functional>

#include "base/error.hpp"
#include "base/number.hpp"
#include "describe/operations/text_fields.hpp"

namespace clebsch {
namespace {

/// Letters of the channels of each factor in each mode.
struct ModeLetters {
    std::string_view name, in1, in2, weights, out;
};
constexpr std::array<ModeLetters, 8> mode_letters = {{
    {"uvw", "u", "v", "uvw", "w"},
    {"uvu", "u", "v", "uv", "u"},
    {"uvv", "u", "v", "uv", "v"},
    {"uuw", "u", "u", "uw", "w"},
    {"uuu", "u", "u", "u", "u"},
    {"uvuv", "u", "v", "uv", "uv"},
    {"uvu<v", "u", "v", "(u<v)", "(u<v)"},
    {"u<vw", "u", "v", "(u<v)w", "w"},
}};
const ModeLetters& letters_of(ChannelMode mode) { return mode_letters[static_cast<std::size_t>(mode)]; }

std::int64_t pairs(std::int64_t n) { return channel_product({n, n - 1}) / 2; }

/// Terms that a sum over channels adds up (e3nn's num_elements).
double terms_of(ChannelMode mode, std::int64_t m1, std::int64_t m2) {
    switch (mode) {
        case ChannelMode::uvw:
            return static_cast<double>(m1) * static_cast<double>(m2);
        case ChannelMode::uvu:
            return static_cast<double>(m2);
        case ChannelMode::uvv:
        case ChannelMode::uuw:
            return static_cast<double>(m1);
        case ChannelMode::u_less_vw:
            return static_cast<double>(pairs(m1));
        case ChannelMode::uuu:
        case ChannelMode::uvuv:
        case ChannelMode::uvu_less_v:
            break;
    }
    return 1;
}

struct Multiplicities {
    std::int64_t in1, in2, out;
};

std::string describe(const Segment& segment) {
    return std::to_string(segment.multiplicity) + "x" +
           (segment.irrep ? to_text(*segment.irrep) : "(" + std::to_string(segment.components) + ")");
}

/// The product of three operands' segments: validity of instructions, their factors, their paths.
class ProductOfSegments {
 public:
    ProductOfSegments(const std::vector<Segment>& in1, const std::vector<Segment>& in2, const std::vector<Segment>& out,
                      const std::vector<Instruction>& instructions, const TensorProductOptions& options)
        : in1_(in1), in2_(in2), out_(out), instructions_(instructions), options_(options) {
        check_variances("first", options.in1_variances, in1);
        check_variances("second", options.in2_variances, in2);
        check_variances("output", options.out_variances, out);
        for (std::size_t i = 0; i < instructions.size(); ++i) check(i);
    }

    std::vector<double> coefficients() const {
        // What the sums into each output segment collect, and how many instructions write it.
        std::vector<double> collected(out_.size(), 0.0), count(out_.size(), 0.0);
        for (const Instruction& instruction : instructions_) {
            collected[static_cast<std::size_t>(instruction.out)] += variance_of_sum(instruction);
            count[static_cast<std::size_t>(instruction.out)] += 1;
        }
        std::vector<double> result;
        for (const Instruction& instruction : instructions_) {
            const auto slot = static_cast<std::size_t>(instruction.out);
            double alpha = 1;
            if (options_.irrep_normalization == IrrepNormalization::component) alpha = out(instruction).components;
            if (options_.irrep_normalization == IrrepNormalization::norm)
                alpha = double{1} * in1(instruction).components * in2(instruction).components;
            double x = 1;
            if (options_.path_normalization == PathNormalization::element) x = collected[slot];
            if (options_.path_normalization == PathNormalization::path) x = variance_of_sum(instruction) * count[slot];
            if (x > 0) alpha /= x;
            result.push_back(std::sqrt(alpha * variance(options_.out_variances, instruction.out) * instruction.path_weight));
        }
        return result;
    }

    Polynomial build() const {
        Polynomial polynomial;
        polynomial.rows = options_.rows;
        polynomial.indices = options_.indices;
        polynomial.operands = {make_operand(options_.x, in1_, Role::input), make_operand(options_.y, in2_, Role::input)};
        std::vector<Segment> weights;
        bool weighted = false;
        for (const Instruction& instruction : instructions_) {
            if (!instruction.weighted) continue;
            weighted = true;
            const Multiplicities m = multiplicities(instruction);
            weights.push_back({weight_count(instruction.mode, m.in1, m.in2, m.out), 1, {}});
        }
        if (weighted) polynomial.operands.push_back(make_operand(options_.weights, weights, Role::input));
        polynomial.operands.push_back(make_operand(options_.out, out_, Role::output));

        const std::vector<double> scales = coefficients();
        int weight_segment = 0;
        for (std::size_t i = 0; i < instructions_.size(); ++i) {
            const Instruction& instruction = instructions_[i];
            const ModeLetters& letters = letters_of(instruction.mode);
            std::vector<Factor> factors = {{0, instruction.in1, std::string(letters.in1), 0},
                                           {1, instruction.in2, std::string(letters.in2), 1}};
            if (instruction.weighted) factors.push_back({2, weight_segment++, std::string(letters.weights), -1});
            const bool summed = instruction.mode == ChannelMode::uuw && !instruction.weighted;
            factors.push_back({weighted ? 3 : 2, instruction.out, summed ? "" : std::string(letters.out), 2});
            add_path(polynomial, std::move(factors), coupling(instruction), scales[i], extents(instruction, letters, summed));
        }
        validate(polynomial);
        return polynomial;
    }

 private:
    const std::vector<Segment>&in1_, &in2_, &out_;
    const std::vector<Instruction>& instructions_;
    const TensorProductOptions& options_;

    const Segment& in1(const Instruction& i) const { return in1_[static_cast<std::size_t>(i.in1)]; }
    const Segment& in2(const Instruction& i) const { return in2_[static_cast<std::size_t>(i.in2)]; }
    const Segment& out(const Instruction& i) const { return out_[static_cast<std::size_t>(i.out)]; }
    Multiplicities multiplicities(const Instruction& i) const { return {in1(i).multiplicity, in2(i).multiplicity, out(i).multiplicity}; }

    static double variance(const std::vector<double>& variances, int segment) {
        return variances.empty() ? 1.0 : variances[static_cast<std::size_t>(segment)];
    }

    double variance_of_sum(const Instruction& i) const {
        return variance(options_.in1_variances, i.in1) * variance(options_.in2_variances, i.in2) *
               terms_of(i.mode, in1(i).multiplicity, in2(i).multiplicity);
    }

    static void check_variances(const char* which, const std::vector<double>& variances, const std::vector<Segment>& segments) {
        if (!variances.empty() && variances.size() != segments.size())
            fail(std::string("tensor product: expected ") + std::to_string(segments.size()) + " variances of the " + which +
                 " operand, one per segment, got " + std::to_string(variances.size()));
        for (double value : variances)
            if (!(value >= 0) || !std::isfinite(value))
                fail(std::string("tensor product: expected variances of the ") + which + " operand that are finite and not negative, got " +
                     number_text(value));
    }

    void check(std::size_t number) const {
        const Instruction& i = instructions_[number];
        const std::string where = "tensor product, instruction " + std::to_string(number) + ": ";
        auto in_range = [&](const char* what, int segment, std::size_t count) {
            if (segment < 0 || static_cast<std::size_t>(segment) >= count)
                fail(where + what + " segment " + std::to_string(segment) + " does not exist, there are " + std::to_string(count));
        };
        in_range("first input", i.in1, in1_.size());
        in_range("second input", i.in2, in2_.size());
        in_range("output", i.out, out_.size());
        if (!(i.path_weight >= 0) || !std::isfinite(i.path_weight))
            fail(where + "expected a path weight that is finite and not negative, got " + number_text(i.path_weight));

        const Multiplicities m = multiplicities(i);
        const std::string shapes = describe(in1(i)) + " x " + describe(in2(i)) + " -> " + describe(out(i)) + " in mode " + to_text(i.mode);
        auto need = [&](bool holds, const std::string& expected) {
            if (!holds) fail(where + "expected " + expected + ", got " + shapes);
        };
        switch (i.mode) {
            case ChannelMode::uvw:
                break;
            case ChannelMode::uvu:
                need(m.out == m.in1, "as many channels in the output as in the first input");
                break;
            case ChannelMode::uvv:
                need(m.out == m.in2, "as many channels in the output as in the second input");
                break;
            case ChannelMode::uuw:
                need(m.in1 == m.in2, "equal numbers of channels in both inputs");
                need(i.weighted || m.out == 1, "one output channel where there are no weights");
                break;
            case ChannelMode::uuu:
                need(m.in1 == m.in2 && m.in2 == m.out, "equal numbers of channels");
                break;
            case ChannelMode::uvuv:
                need(m.out == channel_product({m.in1, m.in2}), "the product of the inputs' numbers of channels in the output");
                break;
            case ChannelMode::uvu_less_v:
                need(m.in1 == m.in2, "equal numbers of channels in both inputs");
                need(m.out == pairs(m.in1), "m(m-1)/2 output channels");
                break;
            case ChannelMode::u_less_vw:
                need(m.in1 == m.in2, "equal numbers of channels in both inputs");
                break;
        }
        if (!i.weighted && (i.mode == ChannelMode::uvw || i.mode == ChannelMode::u_less_vw))
            fail(where + "mode " + to_text(i.mode) + " needs weights");

        if (i.coefficients) {
            const std::vector<int> expected = {in1(i).components, in2(i).components, out(i).components};
            if (i.coefficients->shape() != expected)
                fail(where + "expected coefficients of shape " + std::to_string(expected[0]) + " x " + std::to_string(expected[1]) + " x " +
                     std::to_string(expected[2]) + ", got " + i.coefficients->to_text());
            return;
        }
        if (!in1(i).irrep || !in2(i).irrep || !out(i).irrep) fail(where + "segments without irreps need coefficients, got " + shapes);
        if (!couples(*in1(i).irrep, *in2(i).irrep, *out(i).irrep))
            fail(where + to_text(*out(i).irrep) + " does not appear in " + to_text(*in1(i).irrep) + " x " + to_text(*in2(i).irrep));
    }

    Coefficients coupling(const Instruction& i) const {
        if (i.coefficients) return *i.coefficients;
        return Coefficients::cg(*in1(i).irrep, *in2(i).irrep, *out(i).irrep, options_.signs == SignTable::e3nn_0_4);
    }

    std::vector<std::pair<char, std::int64_t>> extents(const Instruction& i, const ModeLetters& letters, bool summed) const {
        const Multiplicities m = multiplicities(i);
        std::vector<std::pair<char, std::int64_t>> result = {{'u', m.in1}};
        if (letters.in2 == "v") result.emplace_back('v', m.in2);
        if (letters.out == "w" && !summed) result.emplace_back('w', m.out);
        return result;
    }
};

}  // namespace

std::string to_text(ChannelMode mode) { return std::string(letters_of(mode).name); }

ChannelMode parse_channel_mode(std::string_view text) {
    for (std::size_t i = 0; i < mode_letters.size(); ++i)
        if (mode_letters[i].name == text) return static_cast<ChannelMode>(i);
    fail("channel mode '" + std::string(text) + "': expected uvw, uvu, uvv, uuw, uuu, uvuv, uvu<v or u<vw");
}

std::vector<Instruction> parse_instructions(std::string_view text) {
    std::vector<Instruction> instructions;
    for (const std::string& line : split_fields(text, ';')) {
        const std::string where = "instruction '" + line + "'";
        const std::vector<std::string> fields = split_fields(line, ',');
        if (fields.size() < 5 || fields.size() > 6)
            fail(where + ": expected in1, in2, out, mode, weighted or plain, and perhaps a path weight; got " +
                 std::to_string(fields.size()) + " fields");
        Instruction instruction;
        instruction.in1 = parse_integer<int>(fields[0], where);
        instruction.in2 = parse_integer<int>(fields[1], where);
        instruction.out = parse_integer<int>(fields[2], where);
        instruction.mode = parse_channel_mode(fields[3]);
        if (fields[4] != "weighted" && fields[4] != "plain") fail(where + ": expected weighted or plain, got '" + fields[4] + "'");
        instruction.weighted = fields[4] == "weighted";
        if (fields.size() == 6) instruction.path_weight = parse_number(fields[5], where);
        instructions.push_back(std::move(instruction));
    }
    return instructions;
}

std::int64_t weight_count(ChannelMode mode, std::int64_t in1, std::int64_t in2, std::int64_t out) {
    switch (mode) {
        case ChannelMode::uvw:
            return channel_product({in1, in2, out});
        case ChannelMode::uvu:
        case ChannelMode::uvv:
        case ChannelMode::uvuv:
            return channel_product({in1, in2});
        case ChannelMode::uuw:
            return channel_product({in1, out});
        case ChannelMode::uuu:
            return in1;
        case ChannelMode::uvu_less_v:
            return pairs(in1);
        case ChannelMode::u_less_vw:
            return channel_product({pairs(in1), out});
    }
    return 0;
}

std::vector<double> path_coefficients(const std::vector<Segment>& in1, const std::vector<Segment>& in2, const std::vector<Segment>& out,
                                      const std::vector<Instruction>& instructions, const TensorProductOptions& options) {
    return ProductOfSegments(in1, in2, out, instructions, options).coefficients();
}

Polynomial tensor_product(const std::vector<Segment>& in1, const std::vector<Segment>& in2, const std::vector<Segment>& out,
                          const std::vector<Instruction>& instructions, const TensorProductOptions& options) {
    return ProductOfSegments(in1, in2, out, instructions, options).build();
}

Polynomial tensor_product(const Irreps& in1, const Irreps& in2, const Irreps& out, const std::vector<Instruction>& instructions,
                          const TensorProductOptions& options) {
    return tensor_product(segments_of(in1), segments_of(in2), segments_of(out), instructions, options);
}

}  // namespace clebsch
