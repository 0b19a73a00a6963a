// Whole models on a GPU: the golden values of the Nequix authors, and the processor's numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "gpu/can_run.hpp"
#include "graph/neighbours.hpp"
#include "io/json.hpp"
#include "model/potential.hpp"
#include "support/atoms.hpp"

using namespace clebsch;
using namespace clebsch::testing;

TEST_CASE("Nequix MP-1 on a GPU gives the authors' energies, forces and stress") {
    if (!can_run_on_gpu()) return;
    const nlohmann::json goldens = read_json(CLEBSCH_TEST_DATA "/nequix.json");
    for (const DType dtype : {DType::float64, DType::float32}) {
        Potential potential = Potential::load(data + "nequix-mp-1.nqx", {.dtype = dtype, .gpu = 0});
        for (const std::string file : {"aspirin.xyz", "water-216.xyz"}) {
            const Atoms atoms = read(file);
            const nlohmann::json& golden = goldens.at(file).at("float64");
            const std::vector<double> forces = flat(golden.at("forces"));
            const bool twice = dtype == DType::float64;
            // The first call runs the kernels one by one, the second one records them, the third one runs the record.
            for (int call = 0; call < 3; ++call) {
                const Energies energies = potential.evaluate(std::span(&atoms.structure, 1), atoms.numbers);
                const double energy = golden.at("energy"), count = static_cast<double>(atoms.numbers.size());
                CAPTURE(file);
                CAPTURE(call);
                CHECK(std::abs(energies.energy[0] - energy) < (twice ? 1e-9 * std::abs(energy) : 2e-6 * count));
                CHECK(deviation(energies.forces, forces) < (twice ? 1e-9 * largest(forces) : 1e-4));
                if (golden.at("stress").is_null()) continue;
                std::vector<double> stress = energies.virial;
                for (double& number : stress) number /= volume(atoms.structure);
                const std::vector<double> expected = flat(golden.at("stress"));
                CHECK(deviation(stress, expected) < (twice ? 1e-9 * largest(expected) : 1e-6));
            }
        }
    }
}

TEST_CASE("batches, structures without edges, one atom and changing sizes are the processor's") {
    if (!can_run_on_gpu()) return;
    Potential gpu = Potential::load(data + "nequix-mp-1.nqx", {.dtype = DType::float64, .gpu = 0});
    Potential cpu = Potential::load(data + "nequix-mp-1.nqx", {.dtype = DType::float64});
    const Atoms aspirin = read("aspirin.xyz");
    Structure alone;
    alone.positions = {0.1, 0.2, 0.3};
    const auto same = [&](const std::vector<Structure>& structures, const std::vector<int>& numbers) {
        const Energies a = gpu.evaluate(structures, numbers), b = cpu.evaluate(structures, numbers);
        CHECK(deviation(a.energy, b.energy) < 1e-9 * std::max(1.0, largest(b.energy)));
        CHECK(deviation(a.forces, b.forces) < 1e-9 * std::max(1.0, largest(b.forces)));
        CHECK(deviation(a.virial, b.virial) < 1e-9 * std::max(1.0, largest(b.virial)));
    };
    same({alone}, {8});
    std::vector<int> numbers = aspirin.numbers;
    numbers.push_back(8);
    numbers.insert(numbers.end(), aspirin.numbers.begin(), aspirin.numbers.end());
    same({aspirin.structure, alone, aspirin.structure}, numbers);
    same({}, {});
    for (int step = 0; step < 4; ++step) {
        Structure moved = aspirin.structure;
        for (std::size_t i = 0; i < moved.positions.size(); ++i) moved.positions[i] += 0.4 * step * std::sin(static_cast<double>(i));
        same({moved}, aspirin.numbers);
    }
}

TEST_CASE("options that a GPU makes no use of are refused") {
    const auto rejects = [](const PotentialOptions& options, const char* words) {
        CHECK_THROWS_WITH_AS(Potential::load(data + "nequix-mp-1.nqx", options), doctest::Contains(words), Error);
    };
    rejects({.instruction_set = InstructionSet::baseline, .gpu = 0}, "expected no instruction set for a GPU, got baseline");
    rejects({.threads = 2, .gpu = 0}, "expected no number of threads for a GPU, got 2");
    rejects({.keep_bytes = 0, .gpu = 0}, "expected no limit of kept bytes for a GPU, got 0");
}

TEST_CASE("a GPU that is not there is named") { CHECK_THROWS_AS(Potential::load(data + "nequix-mp-1.nqx", {.gpu = 1000}), Error); }
