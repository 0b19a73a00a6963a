// Succeeds if the installed header and library belong together and compute 2 x 3 = 6.
#include <clebsch/clebsch.hpp>
#include <cstdio>

int main() {
    const clebsch::Operation product(
        "clebsch polynomial 0\nbasis e3nn-0.5\nrows row\ninput x: 1x(1) mul_ir @ each\ninput y: 1x(1) mul_ir @ each\n"
        "output z: 1x(1) mul_ir @ each\npath u=1: z.0[u] += x.0[u] * y.0[u]\n");
    const std::vector<float> x{2}, y{3};
    std::vector<float> z{0};
    clebsch::Plan(product).run({{"row", 1}}, {{"x", x}, {"y", y}}, {}, {{"z", z}});
    std::printf("clebsch %s: 2 x 3 = %g\n", clebsch::version().c_str(), z[0]);
    return z[0] == 6 ? 0 : 1;
}
