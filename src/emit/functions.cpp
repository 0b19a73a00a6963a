#include "emit/functions.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace clebsch {
namespace {

/// Names the function of the C library that works on the type.
std::string library(const char* name, GpuNumber type) { return std::string(name) + (type == GpuNumber::float64 ? "" : "f"); }

/// x^n for an integer n >= 1 by squaring, as an expression of the variables it declares.
std::string write_integer_power(SourceText& source, int n, const std::string& type) {
    std::vector<std::string> factors;
    std::string square = "x";
    for (int bit = 1;; bit *= 2) {
        if ((n & bit) != 0) factors.push_back(square);
        if (bit * 2 > n) return joined(factors, " * ");
        const std::string next = "x_" + std::to_string(bit * 2), product = joined({square, square}, " * ");
        source.line(joined({"const", type, next, "=", product}, " ") + ";");
        square = next;
    }
}

/// Whole and half exponents by multiplications and a square root, others by the library in float64.
void write_power(SourceText& source, double p, GpuNumber number, const std::string& type) {
    constexpr double most_multiplied = 16;
    const double size = std::fabs(p);
    const bool integer = size <= most_multiplied && size == std::floor(size);
    const bool half = size <= most_multiplied && size == std::floor(size) + 0.5;
    if (p < 0) source.line("if (x == 0) return 0;");
    if (!integer && !half) {
        source.line("return static_cast<" + type + ">(pow(static_cast<double>(x), " + literal(p, GpuNumber::float64) + "));");
        return;
    }
    const int whole = static_cast<int>(size);
    std::string product = whole == 0 ? "" : write_integer_power(source, whole, type);
    if (half) product += (product.empty() ? "" : " * ") + library("sqrt", number) + "(x)";
    if (product.empty()) product = "1";
    source.line(p < 0 ? "return 1 / (" + product + ");" : "return " + product + ";");
}

/// n-th derivative f_n of sin(x)/x. Above 1 + n/e: x f_n = sin^(n)(x) - n f_(n-1). Below, where that would multiply errors, the series
/// f_n = sum over k >= n/2 of (-1)^k x^(2k-n) / ((2k+1) (2k-n)!).
void write_sinc(SourceText& source, int n, GpuNumber number, const std::string& type) {
    const auto text = [&](double value) { return literal(value, number); };
    const std::string sine = library("sin", number) + "(x)", cosine = library("cos", number) + "(x)";
    const std::string infinite =
        library("fabs", number) + "(x) > " +
        text(number == GpuNumber::float64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max());
    if (n == 0) {
        source.line("if (x == 0) return 1;");
        source.line("return " + infinite + " ? 0 : " + sine + " / x;");
        return;
    }
    const int terms = (number == GpuNumber::float64 ? 16 : 9) + n / 2, first = (n + 1) / 2;
    std::vector<double> coefficients;
    double inverse_factorial = 1;  // 1 / (2k-n)!
    for (int k = first; k < first + terms; ++k) {
        const int degree = 2 * k - n;
        if (degree >= 2) inverse_factorial /= static_cast<double>(degree) * (degree - 1);
        coefficients.push_back((k % 2 == 0 ? 1 : -1) * inverse_factorial / (2 * k + 1));
    }
    constexpr double e = 2.718281828459045;
    source.line("if (" + library("fabs", number) + "(x) <= " + text(1 + n / e) + ") {");
    source.line("const " + type + " z = x * x;");
    source.line(type + " sum = " + text(coefficients.back()) + ";");
    for (int k = terms - 2; k >= 0; --k) source.line("sum = sum * z + " + text(coefficients[static_cast<std::size_t>(k)]) + ";");
    source.line(n % 2 == 1 ? "return sum * x;" : "return sum;");
    source.line("}");
    source.line("if (" + infinite + ") return 0;");
    source.line("const " + type + " sine = " + sine + ", cosine = " + cosine + ", inverse = 1 / x;");
    source.line(type + " value = sine * inverse;");
    for (int order = 1; order <= n; ++order)
        source.line(std::string("value = (") + ((order & 2) != 0 ? "-" : "") + (order % 2 == 0 ? "sine" : "cosine") + " - " + text(order) +
                    " * value) * inverse;");
    source.line("return value;");
}

}  // namespace

void write_function(SourceText& source, const std::string& name, const Function& function, GpuNumber number) {
    const std::string type = type_name(number);
    const auto call = [&](const char* routine, const std::string& x) { return library(routine, number) + "(" + x + ")"; };
    const std::string decay = call("exp", "-" + call("fabs", "x"));
    source.line("// " + to_text(function));
    source.line("static __device__ __forceinline__ " + type + " " + name + "(" + type + " x) {");
    switch (function.kind) {
        case FunctionKind::exp:
            source.line("return " + call("exp", "x") + ";");
            break;
        case FunctionKind::log:
            source.line("return " + call("log", "x") + ";");
            break;
        case FunctionKind::sin:
            source.line("return " + call("sin", "x") + ";");
            break;
        case FunctionKind::cos:
            source.line("return " + call("cos", "x") + ";");
            break;
        case FunctionKind::tanh:
            source.line("return " + call("tanh", "x") + ";");
            break;
        case FunctionKind::sigmoid:
            source.line("const " + type + " e = " + decay + ";");
            source.line("return (x < 0 ? e : 1) / (1 + e);");
            break;
        case FunctionKind::silu:
            source.line("const " + type + " e = " + decay + ";");
            source.line("return x * (x < 0 ? e : 1) / (1 + e);");
            break;
        case FunctionKind::softplus:
            source.line("return (x > 0 ? x : 0) + " + call("log1p", decay) + ";");
            break;
        case FunctionKind::erf:
            source.line("return " + call("erf", "x") + ";");
            break;
        case FunctionKind::absolute:
            source.line("return " + call("fabs", "x") + ";");
            break;
        case FunctionKind::sign:
            source.line("return x > 0 ? 1 : x < 0 ? -1 : x * 0;");
            break;
        case FunctionKind::relu:
            source.line("return x < 0 ? 0 : x;");
            break;
        case FunctionKind::step:
            source.line("return x > 0 ? 1 : 0;");
            break;
        case FunctionKind::power:
            write_power(source, function.parameter, number, type);
            break;
        case FunctionKind::sinc:
            write_sinc(source, static_cast<int>(function.parameter), number, type);
            break;
    }
    source.line("}");
}

}  // namespace clebsch
