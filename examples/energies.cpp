// A published potential on a structure of one's own: energy, forces, stress. Only the installed header is used; neighbour lists need the
// vesin library (pip install vesin). Arguments: the checkpoint (default: the one in examples/data).
#include <clebsch/clebsch.hpp>
#include <cmath>
#include <cstdio>

int main(int argc, char** argv) {
    // Two atoms of silicon in the primitive cell of diamond, one of them moved.
    const double half = 5.43 / 2;
    const std::vector<double> cell{0, half, half, half, 0, half, half, half, 0}, positions{0, 0, 0, half / 2 + 0.1, half / 2, half / 2};
    const std::vector<int> atomic_numbers{14, 14};
    const clebsch::Structures silicon{.positions = positions, .cells = cell};

    const clebsch::Potential potential(argc > 1 ? argv[1] : "examples/data/nequix-mp-1.nqx", {.dtype = CLEBSCH_FLOAT64});
    const clebsch::Energies energies = potential.evaluate(silicon, atomic_numbers);
    std::printf("energy %.4f eV\n", energies.energy[0]);
    for (std::size_t atom = 0; atom < 2; ++atom)
        std::printf("force on atom %zu: (% .4f, % .4f, % .4f) eV/A\n", atom, energies.forces[3 * atom], energies.forces[3 * atom + 1],
                    energies.forces[3 * atom + 2]);
    const double volume = 2 * half * half * half;
    std::printf("stress xx %.5f eV/A^3\n", energies.virial[0] / volume);

    // The model's edges: where they start and end, and how long they are.
    const clebsch::Graph graph(silicon, potential.cutoff());
    double shortest = potential.cutoff();
    for (std::int64_t e = 0; e < graph.edges(); ++e) {
        const double* edge = &graph.vectors()[static_cast<std::size_t>(3 * e)];
        shortest = std::fmin(shortest, std::hypot(edge[0], edge[1], edge[2]));
    }
    std::printf("%lld edges within %.1f A, the shortest %.3f A\n", static_cast<long long>(graph.edges()), potential.cutoff(), shortest);

    // Forces add up to zero, and the moved atom is pulled back.
    return std::fabs(energies.forces[0] + energies.forces[3]) < 1e-10 && energies.forces[3] < -0.1 ? 0 : 1;
}
