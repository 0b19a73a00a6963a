#include "model/potential_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "algebra/rotation.hpp"

namespace clebsch {
namespace {

double deviation(std::span<const double> a, std::span<const double> b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::isfinite(a[i] - b[i]) ? std::max(most, std::abs(a[i] - b[i])) : INFINITY;
    return most;
}

double largest(std::span<const double> values) {
    double most = 0;
    for (const double value : values) most = std::max(most, std::abs(value));
    return most;
}

/// x -> x m for positions and cell.
Structure transformed(const Structure& structure, const Matrix3& m) {
    Structure result = structure;
    const auto apply = [&](double* x) {
        const std::array<double, 3> old = {x[0], x[1], x[2]};
        for (std::size_t b = 0; b < 3; ++b) x[b] = old[0] * m[b] + old[1] * m[3 + b] + old[2] * m[6 + b];
    };
    for (std::size_t i = 0; i < result.positions.size(); i += 3) apply(result.positions.data() + i);
    for (std::size_t i = 0; i < 9; i += 3) apply(result.cell.data() + i);
    return result;
}

class Checks {
 public:
    Checks(Potential& exact, Potential* single, const Structure& structure, std::span<const int> numbers,
           const PotentialCheckOptions& options)
        : exact_(exact),
          single_(single),
          structure_(structure),
          numbers_(numbers.begin(), numbers.end()),
          options_(options),
          random_(options.seed),
          here_(evaluate(exact, structure, numbers_)),
          volume_(volume(structure)) {}

    std::vector<PotentialCheck> run() {
        if (numbers_.empty()) return {};
        for (int n = 0; n < 3; ++n) forces();
        for (int n = 0; n < 2; ++n) strain();
        rotation();
        permutation();
        translation();
        if (single_ != nullptr) float32();
        return std::move(checks_);
    }

 private:
    Energies evaluate(Potential& potential, const Structure& structure, std::span<const int> numbers) {
        if (options_.progress) options_.progress(++evaluations_);
        return potential.evaluate(std::span(&structure, 1), numbers);
    }
    double energy(const Structure& structure) { return evaluate(exact_, structure, numbers_).energy[0]; }
    double normal() { return std::normal_distribution<double>()(random_); }

    void add(const std::string& what, double error, double bound, const std::string& unit) {
        const auto known = std::ranges::find(checks_, what, &PotentialCheck::what);
        if (known == checks_.end()) checks_.push_back({what, error, bound, unit});
        else known->error = std::max(known->error, error);
    }

    /// Central difference of fourth order of a function of one number.
    template <class F>
    static double slope(const F& f, double step) {
        return (8 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12 * step);
    }

    /// Along a random direction of length 1 in the space of all coordinates.
    void forces() {
        std::vector<double> direction(structure_.positions.size());
        double norm = 0;
        for (double& x : direction) {
            x = normal();
            norm += x * x;
        }
        double expected = 0;
        for (std::size_t i = 0; i < direction.size(); ++i) expected -= here_.forces[i] * (direction[i] /= std::sqrt(norm));
        const double found = slope(
            [&](double by) {
                Structure moved = structure_;
                for (std::size_t i = 0; i < direction.size(); ++i) moved.positions[i] += by * direction[i];
                return energy(moved);
            },
            3e-4);
        add("forces are the energy's slope (random directions)", std::abs(found - expected), options_.force_bound, "eV/A");
    }

    /// Along a random symmetric strain of norm 1.
    void strain() {
        Matrix3 strain{};
        double norm = 0;
        for (std::size_t a = 0; a < 3; ++a)
            for (std::size_t b = 0; b <= a; ++b) strain[3 * a + b] = strain[3 * b + a] = normal();
        for (const double x : strain) norm += x * x;
        double expected = 0;
        for (std::size_t i = 0; i < 9; ++i) expected += here_.virial[i] * (strain[i] /= std::sqrt(norm));
        const double found = slope(
            [&](double by) {
                Matrix3 m = {1, 0, 0, 0, 1, 0, 0, 0, 1};
                for (std::size_t i = 0; i < 9; ++i) m[i] += by * strain[i];
                return energy(transformed(structure_, m));
            },
            1e-4);
        if (volume_ > 0)
            add("stress is the energy's slope (random strains)", std::abs(found - expected) / volume_, options_.stress_bound, "eV/A^3");
        else add("virial is the energy's slope (random strains)", std::abs(found - expected), options_.virial_bound, "eV");
    }

    /// A random rotation of atoms and cell, with inversion unless the options say otherwise.
    void rotation() {
        const Matrix3 turn = rotation_matrix(Angles{3 * normal(), std::abs(normal()), 3 * normal()});
        Matrix3 m{};
        for (std::size_t i = 0; i < 9; ++i) m[i] = options_.inversion ? -turn[i] : turn[i];
        const Energies there = evaluate(exact_, transformed(structure_, m), numbers_);
        std::vector<double> expected(here_.forces.size(), 0.0);
        for (std::size_t i = 0; i < expected.size(); i += 3)
            for (std::size_t a = 0; a < 3; ++a)
                for (std::size_t b = 0; b < 3; ++b) expected[i + b] += here_.forces[i + a] * m[3 * a + b];
        compare(options_.inversion ? "rotation and inversion" : "rotation", there, expected);
    }

    void permutation() {
        std::vector<std::size_t> order(numbers_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::shuffle(order, random_);
        Structure mixed = structure_;
        std::vector<int> numbers;
        std::vector<double> expected(here_.forces.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            numbers.push_back(numbers_[order[i]]);
            for (std::size_t k = 0; k < 3; ++k) {
                mixed.positions[3 * i + k] = structure_.positions[3 * order[i] + k];
                expected[3 * i + k] = here_.forces[3 * order[i] + k];
            }
        }
        compare("permutation of atoms", evaluate(exact_, mixed, numbers), expected);
    }

    /// All atoms by a random vector, and every other one by a lattice vector.
    void translation() {
        Structure moved = structure_;
        const std::array<double, 3> by = {normal(), normal(), normal()};
        for (std::size_t i = 0; i < moved.positions.size(); ++i) {
            moved.positions[i] += by[i % 3];
            for (std::size_t axis = 0; axis < 3; ++axis)
                if (structure_.periodic[axis] && i / 3 % 2 == 1) moved.positions[i] += structure_.cell[3 * axis + i % 3];
        }
        compare("translation, also by lattice vectors", evaluate(exact_, moved, numbers_), here_.forces);
    }

    void compare(const std::string& what, const Energies& there, const std::vector<double>& forces) {
        const double atoms = static_cast<double>(numbers_.size()), size = std::max(1.0, largest(here_.forces));
        add(what + ": energy", std::abs(there.energy[0] - here_.energy[0]) / atoms, options_.symmetry_bound, "eV/atom");
        add(what + ": forces", deviation(there.forces, forces) / size, options_.symmetry_bound, size > 1 ? "of the largest" : "eV/A");
    }

    void float32() {
        const Energies there = evaluate(*single_, structure_, numbers_);
        add("float32: energy", std::abs(there.energy[0] - here_.energy[0]) / static_cast<double>(numbers_.size()),
            options_.float32_energy_bound, "eV/atom");
        add("float32: forces", deviation(there.forces, here_.forces), options_.float32_force_bound, "eV/A");
        if (volume_ > 0) add("float32: stress", deviation(there.virial, here_.virial) / volume_, options_.float32_stress_bound, "eV/A^3");
    }

    Potential& exact_;
    Potential* single_;
    const Structure& structure_;
    std::vector<int> numbers_;
    const PotentialCheckOptions& options_;
    std::mt19937_64 random_;
    int evaluations_ = 0;
    Energies here_;
    double volume_;
    std::vector<PotentialCheck> checks_;
};

}  // namespace

std::vector<PotentialCheck> check_potential(Potential& exact, Potential* single, const Structure& structure,
                                            std::span<const int> atomic_numbers, const PotentialCheckOptions& options) {
    return Checks(exact, single, structure, atomic_numbers, options).run();
}

}  // namespace clebsch
