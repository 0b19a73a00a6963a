#pragma once
// Force fields whose forces and virial are known in closed form, to test what moves atoms.
#include "model/force_field.hpp"

namespace clebsch::testing {

/// Lennard-Jones pairs times (1 - (r / cutoff)^2)^3, which ends smoothly: two continuous derivatives.
class LennardJones : public ForceField {
 public:
    explicit LennardJones(double depth = 0.0104, double diameter = 3.4, double cutoff = 6.0)
        : depth_(depth), diameter_(diameter), cutoff_(cutoff) {}  // argon
    double cutoff() const override { return cutoff_; }
    void evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers, const Graph& graph,
                  Energies& result) override;

 private:
    double depth_, diameter_, cutoff_;
};

/// Every atom i on a spring to its place at (20 i, 0, 0), or (ring) to the next atom, without a rest length: k r^2 / 2. Harmonic in all
/// coordinates.
class Springs : public ForceField {
 public:
    Springs(double stiffness, bool ring) : stiffness_(stiffness), ring_(ring) {}
    static double place(std::size_t coordinate) { return coordinate % 3 == 0 ? 20.0 * static_cast<double>(coordinate / 3) : 0.0; }
    double cutoff() const override { return 1e-3; }
    void evaluate(std::span<const Structure> structures, std::span<const int> atomic_numbers, const Graph& graph,
                  Energies& result) override;

 private:
    double stiffness_;
    bool ring_;
};

}  // namespace clebsch::testing
