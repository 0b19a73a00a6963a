#pragma once
// A small program for tests.
#include <string>

namespace clebsch::testing {

/// Two layers: gated messages of the edges, summed on nodes; `unused` and `dead` serve nothing; `g2` repeats `g`.
inline const std::string two_layers =
    "clebsch program 0\n"
    "basis e3nn-0.5\n"
    "index receiver: edge -> node sorted\n"
    "value x: 8x(1) mul_ir @ edge\n"
    "value unused: 1x1o mul_ir @ node\n"
    "value g: 8x(1) mul_ir @ edge\n"
    "value g2: 8x(1) mul_ir @ edge\n"
    "value dead: 8x(1) mul_ir @ edge\n"
    "value w: 8x(1) mul_ir @ shared\n"
    "value h: 8x(1) mul_ir @ edge\n"
    "value h2: 8x(1) mul_ir @ edge\n"
    "value z: 8x(1) mul_ir @ node\n"
    "value s: 8x(1) mul_ir @ edge\n"
    "inputs x, w, unused\n"
    "outputs z, s\n"
    "polynomial 0\n"
    "rows edge\n"
    "input a: 8x(1) mul_ir @ each\n"
    "input b: 8x(1) mul_ir @ shared\n"
    "output c: 8x(1) mul_ir @ each\n"
    "path u=8: c.0[u] += 0.5 * a.0[u] * b.0[u]\n"
    "end\n"
    "polynomial 1\n"
    "rows edge\n"
    "index receiver: edge -> node sorted\n"
    "input a: 8x(1) mul_ir @ each\n"
    "input b: 8x(1) mul_ir @ each\n"
    "output z: 8x(1) mul_ir @ receiver\n"
    "path u=8: z.0[u] += a.0[u] * b.0[u]\n"
    "end\n"
    "g = silu(x)\n"
    "g2 = silu(x)\n"
    "dead = power(-0.5)(g2)\n"
    "h = polynomial 0(g, w)\n"
    "h2 = polynomial 0(g2, w)\n"
    "z = polynomial 1(h, h2)\n"
    "s = sinc(2)(h)\n";

}  // namespace clebsch::testing
