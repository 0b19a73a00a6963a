#include "describe/operations/linear.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"

namespace clebsch {
namespace {

using Pairs = std::vector<std::pair<int, int>>;

Pairs pairs_of_equal_irreps(const Irreps& in, const Irreps& out) {
    Pairs pairs;
    for (std::size_t i = 0; i < in.size(); ++i)
        for (std::size_t k = 0; k < out.size(); ++k)
            if (in[i].irrep == out[k].irrep) pairs.emplace_back(static_cast<int>(i), static_cast<int>(k));
    return pairs;
}

void check(const Irreps& in, const Irreps& out, const Pairs& pairs, const LinearOptions& options) {
    for (std::size_t n = 0; n < pairs.size(); ++n) {
        const auto [i, k] = pairs[n];
        const std::string where = "linear, instruction " + std::to_string(n) + ": ";
        if (i < 0 || static_cast<std::size_t>(i) >= in.size())
            fail(where + "input segment " + std::to_string(i) + " does not exist, there are " + std::to_string(in.size()));
        if (k < 0 || static_cast<std::size_t>(k) >= out.size())
            fail(where + "output segment " + std::to_string(k) + " does not exist, there are " + std::to_string(out.size()));
        const Irrep a = in[static_cast<std::size_t>(i)].irrep, b = out[static_cast<std::size_t>(k)].irrep;
        if (a != b) fail(where + "expected equal irreps, got " + to_text(a) + " and " + to_text(b));
    }
    const std::vector<int> scalars = scalar_segments(out);
    for (std::size_t b = 0; b < options.biases.size(); ++b) {
        const int slot = options.biases[b];
        if (std::ranges::find(scalars, slot) == scalars.end())
            fail("linear: only segments of irrep 0e can have a bias, got output segment " + std::to_string(slot) + " of '" + to_text(out) +
                 "'");
        if (b > 0 && options.biases[b - 1] >= slot) fail("linear: expected the output segments of biases in increasing order");
    }
    for (const auto& [what, copies] : {std::pair("f_in", options.f_in), std::pair("f_out", options.f_out)})
        if (copies < 1 || copies > 4096) fail(std::string("linear: expected ") + what + " of 1 to 4096, got " + std::to_string(copies));
    if (!std::isfinite(options.scale)) fail("linear: expected a finite scale, got " + number_text(options.scale));
}

double fan_in(const Irreps& in, const Pairs& pairs, const std::pair<int, int>& own, const LinearOptions& options) {
    auto channels = [&](const std::pair<int, int>& pair) {
        return static_cast<double>(in[static_cast<std::size_t>(pair.first)].multiplicity);
    };
    double all = 0, count = 0;
    for (const auto& pair : pairs) {
        if (pair.second != own.second) continue;
        all += channels(pair);
        count += 1;
    }
    double x = options.f_in;
    if (options.path_normalization == PathNormalization::element) x *= all;
    if (options.path_normalization == PathNormalization::path) x *= channels(own) * count;
    return x == 0 ? 1.0 : x;
}

}  // namespace

std::vector<int> scalar_segments(const Irreps& irreps) {
    std::vector<int> segments;
    for (std::size_t i = 0; i < irreps.size(); ++i)
        if (irreps[i].irrep.degree == 0 && irreps[i].irrep.parity != Parity::odd) segments.push_back(static_cast<int>(i));
    return segments;
}

Polynomial linear(const Irreps& in, const Irreps& out, const LinearOptions& options) {
    const Pairs pairs = options.instructions.value_or(pairs_of_equal_irreps(in, out));
    check(in, out, pairs, options);

    std::vector<Segment> weights, biases;
    for (int copy = 0; copy < options.f_in * options.f_out; ++copy)
        for (const auto& [i, k] : pairs)
            weights.push_back(
                {channel_product({in[static_cast<std::size_t>(i)].multiplicity, out[static_cast<std::size_t>(k)].multiplicity}), 1, {}});
    for (int copy = 0; copy < options.f_out; ++copy)
        for (int slot : options.biases) biases.push_back({out[static_cast<std::size_t>(slot)].multiplicity, 1, {}});

    Polynomial polynomial;
    polynomial.rows = options.rows;
    polynomial.indices = options.indices;
    polynomial.operands = {make_operand(options.x, segments_of(in.repeated(options.f_in)), Role::input),
                           make_operand(options.weights, weights, Role::input)};
    if (!biases.empty()) polynomial.operands.push_back(make_operand(options.bias, biases, Role::input));
    const int output = static_cast<int>(polynomial.operands.size());
    polynomial.operands.push_back(make_operand(options.out, segments_of(out.repeated(options.f_out)), Role::output));

    int weight = 0;
    for (int from = 0; from < options.f_in; ++from) {
        for (int to = 0; to < options.f_out; ++to) {
            for (const auto& pair : pairs) {
                const IrrepBlock &a = in[static_cast<std::size_t>(pair.first)], &b = out[static_cast<std::size_t>(pair.second)];
                const int x_segment = from * static_cast<int>(in.size()) + pair.first,
                          out_segment = to * static_cast<int>(out.size()) + pair.second;
                add_path(polynomial, {{0, x_segment, "u", 0}, {1, weight++, "uv", -1}, {output, out_segment, "v", 1}},
                         Coefficients::identity(a.irrep.dim()), options.scale / std::sqrt(fan_in(in, pairs, pair, options)),
                         {{'u', a.multiplicity}, {'v', b.multiplicity}});
            }
        }
    }
    int bias = 0;
    for (int to = 0; to < options.f_out; ++to)
        for (int slot : options.biases)
            add_path(polynomial, {{2, bias++, "v", -1}, {output, to * static_cast<int>(out.size()) + slot, "v", -1}}, Coefficients(), 1.0,
                     {{'v', out[static_cast<std::size_t>(slot)].multiplicity}});
    validate(polynomial);
    return polynomial;
}

Polynomial dense(std::int64_t in, std::int64_t out, bool fan_in, const LinearOptions& options, bool bias) {
    LinearOptions scalar = options;
    scalar.path_normalization = fan_in ? PathNormalization::element : PathNormalization::none;
    if (bias) scalar.biases = {0};
    const Irrep plain{0, Parity::even};
    return linear(Irreps({{in, plain}}), Irreps({{out, plain}}), scalar);
}

}  // namespace clebsch
