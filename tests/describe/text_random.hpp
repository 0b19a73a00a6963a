#pragma once
// Random valid polynomials and programs that use every construct of the grammar; they need not make sense as operations.
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "describe/polynomial.hpp"
#include "describe/program.hpp"

namespace clebsch::testing {

class RandomDescription {
 public:
    explicit RandomDescription(std::uint64_t seed) : random_(seed) {}

    int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }

    double number() {
        switch (below(4)) {
            case 0:
                return below(9) - 4;
            case 1:
                return std::normal_distribution<>()(random_);
            case 2:
                return std::ldexp(std::normal_distribution<>()(random_), below(1800) - 900);
            default:
                return 0.1 * (1 + below(1000));
        }
    }

    std::string name(const std::string& base) {
        static constexpr const char* tails[] = {"", ".0", "_1", ".weights.2", "X"};
        return base + tails[below(5)];
    }

    Polynomial polynomial() {
        Polynomial p;
        p.rows = below(4) == 0 ? "each" : "edge";  // a keyword of the grammar is a fine name
        p.indices = {{"sender", p.rows, "node", false}, {"receiver", p.rows, "node", true}, {"shared", "node", "graph", below(2) == 0}};
        const int inputs = 1 + below(4);
        for (int i = 0; i <= inputs; ++i) {
            Operand operand;
            operand.name = name(std::string(1, static_cast<char>('a' + i)));
            operand.role = i == inputs ? Role::output : Role::input;
            operand.layout = below(2) == 0 ? Layout::mul_ir : Layout::ir_mul;
            switch (below(5)) {
                case 0:
                    operand.rows = each_row();
                    break;
                case 1:
                    operand.rows = shared_row();
                    break;
                case 2:
                    operand.rows = row_of("sender");
                    break;
                case 3:
                    operand.rows = row_of(std::vector<std::string>{"receiver", "shared"});
                    break;
                default:
                    operand.rows = row_of("receiver");
                    break;
            }
            // Segments 0 .. 4: u channels of a vector, u x v channels of one number, none, pairs, a scalar without channels.
            operand.segments = {{4, 3, Irrep{1, below(2) == 0 ? Parity::odd : Parity::even}},
                                {20, 1, std::nullopt},
                                {0, 2, std::nullopt},
                                {6, 3, std::nullopt},
                                {1, 1, Irrep{0, Parity::even}}};
            p.operands.push_back(operand);
        }
        if (below(8) == 0) p.operands.push_back({"nothing", {}, Layout::mul_ir, Role::input, each_row()});
        const int paths = below(6);
        for (int i = 0; i < paths; ++i) p.paths.push_back(path(inputs));
        return p;
    }

 private:
    Path path(int inputs) {
        const auto input = [&] { return below(inputs); };
        Path path;
        path.scale = below(3) == 0 ? 1.0 : number();
        switch (below(6)) {
            case 0:
                path.coefficients = Coefficients::identity(3);
                path.factors = {{input(), 0, "u", 1}, {inputs, 0, "u", 0}};
                path.extents = {{'u', 4}};
                break;
            case 1:
                path.coefficients = Coefficients::literal({3, 3, 3}, {{{0, 1, 2}, number()}, {{2, 2, 0}, number()}, {{1, 0, 1}, number()}});
                path.factors = {{input(), 0, "v", 2}, {input(), 3, "(u<w)", 0}, {inputs, 0, "v", 1}};
                path.extents = {{'u', 4}, {'v', 4}, {'w', 4}};
                break;
            case 2:
                path.factors = {{input(), 4, "", -1}, {input(), 1, "uv", -1}, {inputs, 1, "uv", -1}};
                path.extents = {{'u', 4}, {'v', 5}};
                break;
            case 3:  // a constant
                path.factors = {{inputs, 4, "", -1}};
                break;
            case 4:
                path.coefficients = Coefficients::cg({1, Parity::odd}, {1, Parity::odd}, {1, Parity::even}, below(2) == 0);
                path.factors = {{input(), 3, "z", 0}, {input(), 0, "u", 1}, {inputs, 3, "z", 2}};
                path.extents = {{'u', 4}, {'z', 6}};
                break;
            default:
                path.coefficients = below(2) == 0 ? Coefficients::literal({}, {{{}, number()}}) : Coefficients::literal({}, {});
                path.factors = {{input(), 1, "u", -1}, {inputs, 4, "", -1}};
                path.extents = {{'u', 20}};
        }
        return path;
    }

    std::mt19937_64 random_;
};

}  // namespace clebsch::testing
