#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "run/kernels/functions.hpp"
#include "schedule/cpu_target.hpp"

using namespace clebsch;

namespace {

template <class T>
void apply(InstructionSet isa, const Function& function, const T* x, T* y, std::int64_t count) {
    using Apply = void (*)(const FunctionCode&, const T*, T*, std::int64_t);
    static_cast<Apply>(CLEBSCH_SELECT(Apply, isa, apply_function))(code_of(function), x, y, count);
}

/// Distance in units of the last place of `exact`; `floor` is the size below which errors count absolutely.
template <class T>
double error_in_ulps(T value, long double exact, long double floor) {
    if (std::isnan(static_cast<T>(exact))) return std::isnan(value) ? 0 : 1e30;
    const T rounded = static_cast<T>(exact);
    if (value == rounded) return 0;
    if (!std::isfinite(value)) return 1e30;
    const T size = std::max(std::fabs(rounded), static_cast<T>(floor));
    const T unit = std::nextafter(size, std::numeric_limits<T>::infinity()) - size;
    return static_cast<double>(std::fabs(value - exact) / unit);
}

struct Case {
    const char* function;
    double low, high;  ///< uniform in between, and as many with logarithmically distributed sizes
    double ulps;
    double floor = 0;
};

const Case cases[] = {
    {"exp", -87, 88, 1.5},
    {"log", 1e-30, 100, 1.5},
    {"sin", -1000, 1000, 1.5},
    {"cos", -1000, 1000, 1.5},
    {"tanh", -12, 12, 2.5},
    {"sigmoid", -80, 80, 2.5},
    {"silu", -80, 80, 3},
    {"softplus", -80, 80, 2.5},
    {"erf", -6, 6, 2.5},
    {"absolute", -3, 3, 0},
    {"sign", -3, 3, 0},
    {"relu", -3, 3, 0},
    {"step", -3, 3, 0},
    {"power(0.5)", 0, 100, 0.5001},
    {"power(-0.5)", 0, 100, 1.5},
    {"power(-1)", -9, 9, 0.5001},
    {"power(2)", -9, 9, 0.5001},
    {"power(6)", -9, 9, 4},
    {"power(-1.5)", 0, 100, 2.5},
    {"power(0.3)", 0, 100, 1},
    {"power(0)", -3, 3, 0},
    {"power(1)", -3, 3, 0},
    // Derivatives of sin(x)/x cancel near their zeros: errors count against the largest value, 1 / (n + 1).
    {"sinc(0)", -40, 40, 2.5},
    {"sinc(1)", -40, 40, 4, 1.0 / 2},
    {"sinc(2)", -40, 40, 4, 1.0 / 3},
    {"sinc(3)", -40, 40, 4, 1.0 / 4},
    {"sinc(6)", -40, 40, 10, 1.0 / 7},  // grows with the order: neither form is well conditioned in between
};

template <class T>
void check_all() {
    for (const InstructionSet isa : available_instruction_sets()) {
        for (const Case& test : cases) {
            const Function function = parse_function(test.function);
            std::mt19937_64 random(20);
            std::vector<T> x = {0, T(-0.0), 1, -1, static_cast<T>(test.low), static_cast<T>(test.high)};
            std::uniform_real_distribution<double> uniform(test.low, test.high), power(-30, 0);
            for (int i = 0; i < 4000; ++i) {
                x.push_back(static_cast<T>(uniform(random)));
                x.push_back(static_cast<T>((i % 2 == 0 ? test.low : test.high) * std::exp(power(random))));
            }
            for (int n = 1; n < 40; ++n) x.push_back(static_cast<T>(n * 1.57079632679489661923));
            if (test.low >= 0) std::ranges::transform(x, x.begin(), [](T v) { return std::fabs(v); });
            std::vector<T> y(x.size());
            apply(isa, function, x.data(), y.data(), static_cast<std::int64_t>(x.size()));
            double worst = 0;
            T worst_at = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const double error = error_in_ulps<T>(y[i], evaluate(function, x[i]), test.floor);
                if (error > worst) worst = error, worst_at = x[i];
            }
            CAPTURE(to_text(isa));
            CAPTURE(std::string(test.function));
            CAPTURE(worst_at);
            CAPTURE(sizeof(T));
            CHECK(worst <= test.ulps);
        }
    }
}

}  // namespace

TEST_CASE("every function is within a few units in the last place, in float32") { check_all<float>(); }
TEST_CASE("every function is within a few units in the last place, in float64") { check_all<double>(); }

TEST_CASE_TEMPLATE("functions at the ends of the range, at infinity and of NaN", T, float, double) {
    const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const T tiny = std::numeric_limits<T>::denorm_min() * 1000, large = std::numeric_limits<T>::max();
    for (const InstructionSet isa : available_instruction_sets()) {
        CAPTURE(to_text(isa));
        const auto value = [&](const char* function, T x) {
            T y = 0;
            apply(isa, parse_function(function), &x, &y, 1);
            return y;
        };
        CHECK(value("exp", infinity) == infinity);
        CHECK(value("exp", large) == infinity);
        CHECK(value("exp", -infinity) == 0);
        const T below = sizeof(T) == 4 ? T(-100) : T(-740);
        CHECK(value("exp", below) == doctest::Approx(std::exp(below)).epsilon(1e-2));  // subnormal
        CHECK(value("exp", below) > 0);
        CHECK(value("log", 0) == -infinity);
        CHECK(std::isnan(value("log", -1)));
        CHECK(value("log", infinity) == infinity);
        CHECK(value("log", tiny) == doctest::Approx(std::log(tiny)).epsilon(1e-6));
        CHECK(value("log", large) == doctest::Approx(std::log(large)).epsilon(1e-6));
        CHECK(value("tanh", infinity) == 1);
        CHECK(value("tanh", -large) == -1);
        CHECK(value("tanh", tiny) == tiny);
        CHECK(value("sigmoid", -infinity) == 0);
        CHECK(value("sigmoid", large) == 1);
        CHECK(value("silu", -large) == 0);
        CHECK(value("silu", large) == large);
        CHECK(value("softplus", large) == large);
        CHECK(value("softplus", -large) == 0);
        CHECK(value("erf", infinity) == 1);
        CHECK(value("erf", -large) == -1);
        CHECK(value("erf", tiny) == doctest::Approx(tiny * 1.1283791670955126).epsilon(1e-2));
        CHECK(value("sin", T(1e8)) == doctest::Approx(std::sin(T(1e8))).epsilon(1e-6));
        CHECK(value("cos", T(-3e15)) == doctest::Approx(std::cos(T(-3e15))).epsilon(1e-6));
        CHECK(std::isnan(value("sin", infinity)));
        CHECK(value("sinc(0)", 0) == 1);
        CHECK(value("sinc(2)", 0) == doctest::Approx(-1.0 / 3));
        CHECK(value("sinc(0)", infinity) == 0);
        CHECK(value("power(-0.5)", 0) == 0);
        CHECK(value("power(-3)", T(-0.0)) == 0);
        CHECK(value("power(-0.3)", 0) == 0);
        CHECK(value("power(0)", 0) == 1);
        CHECK(std::isnan(value("power(0.5)", -1)));
        CHECK(value("step", 0) == 0);
        CHECK(value("sign", T(-0.0)) == 0);
        for (const char* function : {"exp", "log", "sin", "cos", "tanh", "sigmoid", "silu", "softplus", "erf", "absolute", "sign", "relu",
                                     "power(2.5)", "power(-1)", "power(0.3)", "sinc(0)", "sinc(3)"}) {
            CAPTURE(std::string(function));
            CHECK(std::isnan(value(function, nan)));
        }
    }
}

TEST_CASE_TEMPLATE("a function's value does not depend on where in an array its argument is", T, float, double) {
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal(0, 3);
    std::vector<T> x(257);
    for (T& v : x) v = static_cast<T>(std::fabs(normal(random)) + 0.01);
    for (const InstructionSet isa : available_instruction_sets()) {
        for (const Case& test : cases) {
            const Function function = parse_function(test.function);
            std::vector<T> whole(x.size()), one(x.size());
            apply(isa, function, x.data(), whole.data(), static_cast<std::int64_t>(x.size()));
            for (std::size_t i = 0; i < x.size(); ++i) apply(isa, function, x.data() + i, one.data() + i, 1);
            CAPTURE(std::string(test.function));
            CHECK(std::memcmp(whole.data(), one.data(), x.size() * sizeof(T)) == 0);
        }
    }
}
