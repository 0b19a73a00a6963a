// The closed list of unary functions: names, and their meaning in long double.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.hpp"
#include "describe/program.hpp"
#include "describe/text_cursor.hpp"

namespace clebsch {
namespace {

struct NamedFunction {
    FunctionKind kind;
    std::string_view name;
};
constexpr std::array<NamedFunction, 15> functions = {{
    {FunctionKind::exp, "exp"},
    {FunctionKind::log, "log"},
    {FunctionKind::sin, "sin"},
    {FunctionKind::cos, "cos"},
    {FunctionKind::tanh, "tanh"},
    {FunctionKind::sigmoid, "sigmoid"},
    {FunctionKind::silu, "silu"},
    {FunctionKind::softplus, "softplus"},
    {FunctionKind::erf, "erf"},
    {FunctionKind::absolute, "absolute"},
    {FunctionKind::sign, "sign"},
    {FunctionKind::relu, "relu"},
    {FunctionKind::step, "step"},
    {FunctionKind::power, "power"},
    {FunctionKind::sinc, "sinc"},
}};

constexpr double max_sinc_order = 64;

/// d^n/dx^n of sin x: sin, cos, -sin, -cos, ...
long double sine_derivative(int n, long double x) {
    switch (n % 4) {
        case 0:
            return std::sin(x);
        case 1:
            return std::cos(x);
        case 2:
            return -std::sin(x);
        default:
            return -std::cos(x);
    }
}

/// n-th derivative f_n of sin(x)/x. Differentiating x f = sin x n times gives x f_n + n f_(n-1) = sin^(n)(x); going up in n multiplies
/// errors by up to n!/x^n, so below x = 1 + n/e the Taylor series takes over: f_n(x) = sum over k >= n/2 of (-1)^k x^(2k-n) / ((2k+1)
/// (2k-n)!).
long double sinc_derivative(int n, long double x) {
    const long double size = std::fabs(x);
    if (!(size < std::numeric_limits<long double>::infinity())) return std::isnan(x) ? x : 0.0L;
    if (size > 1.0L + n / std::numbers::e_v<long double>) {
        long double value = std::sin(x) / x;
        for (int order = 1; order <= n; ++order) value = (sine_derivative(order, x) - order * value) / x;
        return value;
    }
    int k = (n + 1) / 2;
    long double power = (k % 2 == 0 ? 1.0L : -1.0L) * (2 * k == n ? 1.0L : x);  // (-1)^k x^(2k-n) / (2k-n)!
    long double sum = 0;
    for (int terms = 0; terms < 200; ++terms, ++k) {
        const long double next = sum + power / (2 * k + 1);
        if (next == sum && terms > n) break;
        sum = next;
        const int degree = 2 * k - n;
        power *= -x * x / ((degree + 1.0L) * (degree + 2.0L));
    }
    return sum;
}

}  // namespace

std::string to_text(const Function& function) {
    for (const NamedFunction& known : functions) {
        if (known.kind != function.kind) continue;
        const bool has_parameter = function.kind == FunctionKind::power || function.kind == FunctionKind::sinc;
        return std::string(known.name) + (has_parameter ? '(' + number_text(function.parameter) + ')' : "");
    }
    fail("function " + std::to_string(static_cast<int>(function.kind)) + " is not in the list of functions");
}

Function parse_function(std::string_view text) {
    TextCursor cursor(text, "function");
    cursor.skip_space();
    const std::string_view word = cursor.peek_word();
    for (const NamedFunction& known : functions) {
        if (known.name != word) continue;
        cursor.expect(word);
        Function function{known.kind, 0};
        if (known.kind == FunctionKind::power || known.kind == FunctionKind::sinc) {
            cursor.expect("(");
            cursor.skip_blank();
            const std::size_t at = cursor.position();
            function.parameter = cursor.number(known.kind == FunctionKind::power ? "an exponent" : "the order of a derivative");
            if (known.kind == FunctionKind::sinc &&
                (function.parameter < 0 || function.parameter > max_sinc_order || function.parameter != std::floor(function.parameter))) {
                cursor.error(at, "expected an integer from 0 to 64, the order of a derivative of sin(x)/x");
            }
            cursor.expect(")");
        }
        cursor.skip_space();
        if (!cursor.at_end()) cursor.expected("the end of the function");
        return function;
    }
    std::string names;
    for (const NamedFunction& known : functions) names += (names.empty() ? "" : ", ") + std::string(known.name);
    cursor.expected("a function, one of " + names);
}

long double evaluate(const Function& function, long double x) {
    switch (function.kind) {
        case FunctionKind::exp:
            return std::exp(x);
        case FunctionKind::log:
            return std::log(x);
        case FunctionKind::sin:
            return std::sin(x);
        case FunctionKind::cos:
            return std::cos(x);
        case FunctionKind::tanh:
            return std::tanh(x);
        case FunctionKind::sigmoid:
            return 1.0L / (1.0L + std::exp(-x));
        case FunctionKind::silu:
            return x / (1.0L + std::exp(-x));
        case FunctionKind::softplus:
            return std::fmax(x, 0.0L) + std::log1p(std::exp(-std::fabs(x)));
        case FunctionKind::erf:
            return std::erf(x);
        case FunctionKind::absolute:
            return std::fabs(x);
        case FunctionKind::sign:
            return x > 0 ? 1.0L : x < 0 ? -1.0L : x;  // NaN stays one
        case FunctionKind::relu:
            return x < 0 ? 0.0L : x;
        case FunctionKind::step:
            return x > 0 ? 1.0L : 0.0L;
        case FunctionKind::power:
            if (x == 0 && function.parameter < 0) return 0;
            if (x < 0 && function.parameter != std::floor(function.parameter)) return std::numeric_limits<long double>::quiet_NaN();
            return std::pow(x, static_cast<long double>(function.parameter));
        case FunctionKind::sinc:
            return sinc_derivative(static_cast<int>(function.parameter), x);
    }
    fail("function " + std::to_string(static_cast<int>(function.kind)) + " is not in the list of functions");
}

}  // namespace clebsch
