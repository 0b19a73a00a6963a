#include <clebsch/clebsch.hpp>
#include <iostream>

int main() {
    const auto conv = clebsch::Operation::build("convolution", "in=8x0e+8x1o\nedge=0e+1o\nout=0e+1o");
    const clebsch::Plan plan(conv, CLEBSCH_FLOAT64);
    const std::vector<double> x(2 * 32, 1.0), y(3 * 4, 0.5), w(3 * 32, 1.0);
    const std::vector<std::int64_t> sender{0, 1, 0}, receiver{0, 1, 1};
    std::vector<double> out(2 * 64);
    plan.run({{"edge", 3}, {"node", 2}}, {{"x", x}, {"y", y}, {"weights", w}}, {{"sender", sender}, {"receiver", receiver}},
             {{"out", out}});
    std::cout << conv.vjp({"x", "weights"}).text() << out[0] << '\n';
}
