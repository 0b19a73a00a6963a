#include "describe/operations/radial_network.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "base/number.hpp"
#include "describe/operations/harmonics.hpp"
#include "describe/operations/linear.hpp"
#include "describe/operations/program_builder.hpp"

namespace clebsch {
namespace {

constexpr int largest_basis = 4096;

Function power(double exponent) { return {FunctionKind::power, exponent}; }
Operand scalar_output(const std::string& name) { return make_operand({name}, {{1, 1, {}}}, Role::output); }
Operand basis_output(const std::string& name, int size) { return make_operand({name}, {{1, size, {}}}, Role::output); }

/// A tensor of `axes` equal axes with values on its diagonal.
Coefficients diagonal(int axes, const std::vector<double>& values) {
    const int size = static_cast<int>(values.size());
    std::vector<CoefficientEntry> entries;
    entries.reserve(values.size());
    for (int n = 0; n < size; ++n)
        entries.push_back({std::vector<int>(static_cast<std::size_t>(axes), n), values[static_cast<std::size_t>(n)]});
    return Coefficients::literal(std::vector<int>(static_cast<std::size_t>(axes), size), std::move(entries));
}

/// factors[n] x length + constants[n].
int spread(ProgramBuilder& program, const std::string& rows, const std::string& name, int length, const std::vector<double>& factors,
           const std::vector<double>& constants) {
    Assembly out(program, rows, basis_output(name, static_cast<int>(factors.size())));
    const int operand = out.operand(length);
    add_path(out.polynomial, {{operand, 0, "", -1}, {0, 0, "", 0}}, diagonal(1, factors), 1.0, {});
    if (std::ranges::any_of(constants, [](double c) { return c != 0; }))
        add_path(out.polynomial, {{0, 0, "", 0}}, diagonal(1, constants), 1.0, {});
    return out.finish();
}

/// factors[n] x product over values of value[n]; a value of one number counts for every n.
int multiply(ProgramBuilder& program, const std::string& rows, const std::string& name, const std::vector<int>& values,
             const std::vector<double>& factors) {
    Assembly out(program, rows, basis_output(name, static_cast<int>(factors.size())));
    std::vector<Factor> path;
    int axes = 0;
    for (int value : values) {
        const bool single = program.value(value).size() == 1 && factors.size() != 1;
        path.push_back({out.operand(value), 0, "", single ? -1 : axes++});
    }
    path.push_back({0, 0, "", axes++});
    add_path(out.polynomial, std::move(path), diagonal(axes, factors), 1.0, {});
    return out.finish();
}

/// acc x t^count + the sum over k < count of (first + k + 1)(first + k + 2)/2 t^k; without acc the sum alone.
int add_powers(ProgramBuilder& program, const std::string& rows, const std::string& name, int t, int first, int count, int acc) {
    Assembly out(program, rows, scalar_output(name));
    std::vector<Factor> powers;
    const int operand = out.operand(t);
    for (int k = 0; k <= count; ++k, powers.push_back({operand, 0, "", -1})) {
        if (k == count && acc < 0) break;
        std::vector<Factor> path = powers;
        if (k == count) path.push_back({out.operand(acc), 0, "", -1});
        path.push_back({0, 0, "", -1});
        const double n = first + k;
        add_path(out.polynomial, std::move(path), Coefficients(), k == count ? 1.0 : (n + 1) * (n + 2) / 2, {});
    }
    return out.finish();
}

/// u(d/cutoff) = w^3 times the sum over k < p of (k+1)(k+2)/2 t^k with w = relu(1 - d/cutoff), t = 1 - w: the polynomial of RadialOptions
/// with its three zeros at t = 1 taken out. Its terms are all positive, so nothing cancels next to the cutoff, where the expanded form
/// loses all its digits. By Horner's rule, eight powers at a time.
int cutoff_value(ProgramBuilder& program, const RadialOptions& options, int length) {
    constexpr int together = 8;
    const int inside =
        program.apply("inside", Function{FunctionKind::relu, 0}, program.affine("one_minus_t", length, -1 / options.cutoff, 1));
    const int t = program.affine("t", inside, -1, 1);
    int sum = -1;
    for (int end = options.cutoff_power; end > 0;) {
        const int first = (end - 1) / together * together;
        sum = add_powers(program, options.edges, "cutoff_powers_" + std::to_string(first), t, first, end - first, sum);
        end = first;
    }
    Assembly u(program, options.edges, scalar_output("cutoff"));
    const Factor w{u.operand(inside), 0, "", -1}, q{u.operand(sum), 0, "", -1}, out{0, 0, "", -1};
    add_path(u.polynomial, {w, w, w, q, out}, Coefficients(), 1.0, {});
    return u.finish();
}

/// exp(-1/x) for x > 0, else 0. 1/x is kept below 1/tiny, where the value is 0 to any precision of use and the derivative does not
/// overflow.
int smooth_step(ProgramBuilder& program, const std::string& name, int x) {
    constexpr double tiny = 1.0 / 80;  // exp(-80) = 1.8e-35
    const int above = program.apply(name + "_above", Function{FunctionKind::relu, 0}, program.affine(name + "_shifted", x, 1, -tiny));
    const int inverse = program.apply(name + "_inverse", power(-1), program.affine(name + "_kept", above, 1, tiny));
    const int value = program.apply(name + "_exp", Function{FunctionKind::exp, 0}, program.affine(name + "_negative", inverse, -1));
    const int inside = program.apply(name + "_inside", Function{FunctionKind::step, 0}, x);
    return multiply(program, program.value(x).space, name, {inside, value},
                    std::vector<double>(static_cast<std::size_t>(program.value(x).size()), 1.0));
}

int basis_value(ProgramBuilder& program, const RadialOptions& options, int length, const std::vector<int>& cutoff,
                const std::string& name) {
    const auto size = static_cast<std::size_t>(options.basis_size);
    std::vector<double> slopes(size), constants(size, 0.0), factors(size);
    auto with_cutoff = [&](std::vector<int> values) {
        values.insert(values.end(), cutoff.begin(), cutoff.end());
        return values;
    };
    if (options.basis == RadialBasis::bessel) {
        const double prefactor = options.bessel_prefactor.value_or(std::sqrt(2 / options.cutoff));
        for (std::size_t n = 0; n < size; ++n) {
            slopes[n] = static_cast<double>(n + 1) * std::numbers::pi / options.cutoff;
            factors[n] = prefactor * slopes[n];  // sin(k d)/d = k sin(k d)/(k d)
        }
        const int angles = spread(program, options.edges, "angles", length, slopes, constants);
        return multiply(program, options.edges, name,
                        with_cutoff({program.apply("sinc_of_angles", Function{FunctionKind::sinc, 0}, angles)}), factors);
    }
    const double intervals = options.open_ends ? options.basis_size + 1 : options.basis_size - 1;
    const double step = (options.cutoff - options.start) / intervals;
    for (std::size_t n = 0; n < size; ++n) {
        slopes[n] = 1 / step;
        constants[n] = -(options.start / step + static_cast<double>(n) + (options.open_ends ? 1 : 0));
    }
    const int distance = spread(program, options.edges, "scaled_distances", length, slopes, constants);
    if (options.basis == RadialBasis::gaussian) {
        const int exponent = multiply(program, options.edges, "exponents", {distance, distance}, std::vector<double>(size, -1.0));
        factors.assign(size, 1 / 1.12);
        return multiply(program, options.edges, name, with_cutoff({program.apply("gaussians", Function{FunctionKind::exp, 0}, exponent)}),
                        factors);
    }
    const int rising = smooth_step(program, "rising", program.affine("rising_argument", distance, 1, 1));
    const int falling = smooth_step(program, "falling", program.affine("falling_argument", distance, -1, 1));
    factors.assign(size, 1.14136 * std::exp(2.0));
    return multiply(program, options.edges, name, with_cutoff({rising, falling}), factors);
}

/// Matrices with activations between them; the constant of an activation goes into the next matrix's scale.
int perceptron(ProgramBuilder& program, const std::string& rows, int x, std::int64_t inputs, const std::vector<std::int64_t>& hidden,
               std::int64_t outputs, const Activation& activation, bool fan_in, const std::string& name) {
    std::vector<std::int64_t> widths = {inputs};
    widths.insert(widths.end(), hidden.begin(), hidden.end());
    widths.push_back(outputs);
    for (std::int64_t width : widths)
        if (width < 1) fail("multilayer perceptron: expected widths of at least 1, got " + std::to_string(width));
    LinearOptions options;
    options.rows = rows;
    for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
        const std::string number = std::to_string(layer);
        const bool last = layer + 2 == widths.size();
        const Polynomial polynomial = dense(widths[layer], widths[layer + 1], fan_in, options);
        const int matrix = program.input("matrix_" + number, "", {{channel_product({widths[layer], widths[layer + 1]}), 1, {}}});
        x = program.apply(last ? name : "layer_" + number, polynomial, {x, matrix});
        if (last) break;
        if (activation.function) x = program.apply("activated_layer_" + number, *activation.function, x);
        options.scale = activation.scale;
    }
    return x;
}

void check(const RadialOptions& options) {
    const std::string where = "radial network: ";
    // Far below and above any length, but powers of it are finite numbers that are not zero.
    if (!(options.cutoff > 1e-50 && options.cutoff < 1e50))
        fail(where + "expected a cutoff of 1e-50 to 1e50, got " + number_text(options.cutoff));
    if (options.basis_size < 1 || options.basis_size > largest_basis)
        fail(where + "expected a basis of 1 to " + std::to_string(largest_basis) + " functions, got " + std::to_string(options.basis_size));
    if (options.basis != RadialBasis::bessel) {
        if (!(options.start < options.cutoff))
            fail(where + "expected centres that start below the cutoff, got " + number_text(options.start));
        if (!options.open_ends && options.basis_size < 2) fail(where + "expected at least 2 centres with both ends among them");
    }
    if (options.cutoff_power < 0 || options.cutoff_power > 64)
        fail(where + "expected a cutoff power of 0 (none) to 64, got " + std::to_string(options.cutoff_power));
    if (options.bessel_prefactor && !std::isfinite(*options.bessel_prefactor)) fail(where + "expected a finite prefactor");
    if (options.outputs < 0) fail(where + "expected a number of outputs of at least 0, got " + std::to_string(options.outputs));
}

}  // namespace

RadialBasis parse_radial_basis(std::string_view text) {
    if (text == "bessel") return RadialBasis::bessel;
    if (text == "gaussian") return RadialBasis::gaussian;
    if (text == "smooth_finite") return RadialBasis::smooth_finite;
    fail("radial basis '" + std::string(text) + "': expected bessel, gaussian or smooth_finite");
}

Program radial_network(const RadialOptions& options) {
    check(options);
    ProgramBuilder program;
    int length;
    if (options.from_vectors) {
        const int vectors = program.input("vectors", options.edges, {{1, 3, Irrep{1, Parity::odd}}});
        length = program.apply("lengths", power(0.5), unit_vector(program, vectors).squared_length);
    } else {
        length = program.input("lengths", options.edges, {{1, 1, {}}});
    }
    std::vector<int> cutoff;
    if (options.cutoff_power > 0) cutoff.push_back(cutoff_value(program, options, length));
    const bool matrices = options.outputs > 0;
    int output = basis_value(program, options, length, cutoff, matrices ? "basis" : options.output);
    if (matrices)
        output = perceptron(program, options.edges, output, options.basis_size, options.hidden, options.outputs, options.activation,
                            options.fan_in, options.output);
    return simplified(program.finish({output}));
}

Program multilayer_perceptron(std::int64_t inputs, const std::vector<std::int64_t>& hidden, std::int64_t outputs,
                              const Activation& activation, bool fan_in, const std::string& rows) {
    ProgramBuilder program;
    const int x = program.input("x", rows, {{inputs, 1, {}}});
    return program.finish({perceptron(program, rows, x, inputs, hidden, outputs, activation, fan_in, "out")});
}

}  // namespace clebsch
