#include "model/dynamics.hpp"

#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"
#include "io/elements.hpp"
#include "model/random.hpp"
#include "model/units.hpp"

namespace clebsch {

namespace {

/// Standard normal numbers of one purpose and step, one after another.
class Normals {
 public:
    Normals(std::uint64_t seed, RandomPurpose purpose, std::int64_t step)
        : seed_(seed), step_(static_cast<std::uint64_t>(step)), purpose_(purpose) {}
    double next() {
        if (count_ % 2 == 0) pair_ = normal_pair(seed_, purpose_, step_, static_cast<std::uint32_t>(count_ / 2));
        return pair_[count_++ % 2];
    }

 private:
    std::uint64_t seed_, step_, count_ = 0;
    RandomPurpose purpose_;
    std::array<double, 2> pair_{};
};

void check(const MovingAtoms& atoms, const DynamicsOptions& options) {
    check_options(options, "molecular dynamics: ");
    const std::size_t count = static_cast<std::size_t>(atoms.atoms());
    if (count == 0) fail("molecular dynamics: the structure has no atoms");
    if (atoms.structure.positions.size() != 3 * count || atoms.atomic_numbers.size() != count || atoms.masses.size() != count ||
        atoms.velocities.size() != 3 * count)
        fail("molecular dynamics: " + std::to_string(count) + " atoms with " + std::to_string(atoms.atomic_numbers.size()) +
             " atomic numbers, " + std::to_string(atoms.masses.size()) + " masses and " + std::to_string(atoms.velocities.size()) +
             " velocity components");
    for (std::size_t i = 0; i < count; ++i)
        if (!(atoms.masses[i] > 0.0 && std::isfinite(atoms.masses[i])))
            fail("molecular dynamics: the mass of atom " + std::to_string(i) + " is not positive");
    for (std::size_t i = 0; i < 3 * count; ++i)
        if (!std::isfinite(atoms.velocities[i]))
            fail("molecular dynamics: the velocity of atom " + std::to_string(i / 3) + " is not finite");
    if (atoms.step < 0) fail("molecular dynamics: step " + std::to_string(atoms.step));
    if (options.ensemble == Ensemble::rescaling && count < 2)
        fail("molecular dynamics: svr scales motion relative to the centre of mass; a single atom has none (langevin works)");
}

}  // namespace

std::string to_text(Ensemble ensemble) { return ensemble == Ensemble::nve ? "nve" : ensemble == Ensemble::langevin ? "langevin" : "svr"; }

Ensemble parse_ensemble(std::string_view text) {
    for (const Ensemble ensemble : {Ensemble::nve, Ensemble::langevin, Ensemble::rescaling})
        if (to_text(ensemble) == text) return ensemble;
    fail("ensemble: expected nve, langevin or svr, got '" + std::string(text) + "'");
}

void check_options(const DynamicsOptions& options, const std::string& before) {
    require_in(timestep_range, before + "timestep", options.timestep);
    require_in(temperature_range, before + "temperature", options.temperature);
    require_in(friction_range, before + "friction", options.friction);
    require_in(time_constant_range, before + "time-constant", options.time_constant);
    require_in(skin_range, before + "skin", options.skin);
    constexpr double strongest = 100;  // of a thermostat within one step
    if (options.ensemble == Ensemble::langevin && options.friction * options.timestep > strongest)
        fail(before + "friction: expected at most 100 per time step, here " + number_text(strongest / options.timestep) + " per fs, got " +
             number_text(options.friction));
    if (options.ensemble == Ensemble::rescaling && options.timestep / options.time_constant > strongest)
        fail(before + "time-constant: expected at least a hundredth of the time step, here " + number_text(options.timestep / strongest) +
             " fs, got " + number_text(options.time_constant));
}

MovingAtoms atoms_at_rest(Structure structure, std::vector<int> atomic_numbers) {
    MovingAtoms out;
    out.velocities.assign(structure.positions.size(), 0.0);
    out.structure = std::move(structure);
    out.atomic_numbers = std::move(atomic_numbers);
    for (const int number : out.atomic_numbers) out.masses.push_back(atomic_weight(number));
    return out;
}

std::vector<double> thermal_velocities(std::span<const double> masses, double temperature, std::uint64_t seed) {
    require_in(temperature_range, "molecular dynamics: temperature", temperature);
    Normals normals(seed, RandomPurpose::initial_velocities, 0);
    std::vector<double> velocities;
    velocities.reserve(3 * masses.size());
    std::array<double, 3> momentum{};
    double total = 0.0;
    for (const double mass : masses) {
        const double width = std::sqrt(boltzmann * temperature * acceleration_unit / mass);
        for (double& p : momentum) {
            velocities.push_back(width * normals.next());
            p += mass * velocities.back();
        }
        total += mass;
    }
    if (masses.size() > 1)
        for (std::size_t i = 0; i < velocities.size(); ++i) velocities[i] -= momentum[i % 3] / total;
    return velocities;
}

double kinetic_energy(std::span<const double> masses, std::span<const double> velocities) {
    double sum = 0.0;
    for (std::size_t i = 0; i < masses.size(); ++i) {
        const double* v = velocities.data() + 3 * i;
        sum += masses[i] * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    }
    return 0.5 * kinetic_unit * sum;
}

MolecularDynamics::MolecularDynamics(ForceField& field, MovingAtoms start, const DynamicsOptions& options)
    : field_(field), atoms_(std::move(start)), options_(options), neighbours_(field.cutoff(), options.skin) {
    check(atoms_, options_);
    compute_forces();
}

void MolecularDynamics::advance() {
    const double half = options_.timestep / 2;
    kick(half);
    if (options_.ensemble == Ensemble::langevin) {
        drift(half);
        rub();
        drift(half);
    } else {
        drift(options_.timestep);
    }
    ++atoms_.step;
    compute_forces();
    kick(half);
    if (options_.ensemble == Ensemble::rescaling) rescale();
}

void MolecularDynamics::kick(double time) {
    for (std::size_t i = 0; i < atoms_.masses.size(); ++i) {
        const double factor = time * acceleration_unit / atoms_.masses[i];
        for (std::size_t k = 3 * i; k < 3 * i + 3; ++k) atoms_.velocities[k] += factor * energies_.forces[k];
    }
}

void MolecularDynamics::drift(double time) {
    for (std::size_t k = 0; k < atoms_.velocities.size(); ++k) atoms_.structure.positions[k] += time * atoms_.velocities[k];
}

void MolecularDynamics::compute_forces() {
    const Graph& graph = neighbours_.update(atoms_.structure);
    field_.evaluate({&atoms_.structure, 1}, atoms_.atomic_numbers, graph, energies_);
    require_finite(energies_, "molecular dynamics, step " + std::to_string(atoms_.step));
}

/// Friction and noise for a whole time step, exactly: velocities of the Ornstein-Uhlenbeck process.
void MolecularDynamics::rub() {
    const double before = kinetic_energy();
    const double kept = portable_exp(-options_.friction * options_.timestep), noise = 1.0 - kept * kept;
    Normals normals(options_.seed, RandomPurpose::friction, atoms_.step);
    for (std::size_t i = 0; i < atoms_.masses.size(); ++i) {
        const double width = std::sqrt(noise * boltzmann * options_.temperature * acceleration_unit / atoms_.masses[i]);
        for (std::size_t k = 3 * i; k < 3 * i + 3; ++k) atoms_.velocities[k] = kept * atoms_.velocities[k] + width * normals.next();
    }
    atoms_.heat += kinetic_energy() - before;
}

/// Equation A7 of the paper: the kinetic energy moves as that of a system in a bath would, exactly for a whole time step; all velocities
/// take the same factor, so the centre of mass stays at rest.
void MolecularDynamics::rescale() {
    const double kinetic = kinetic_energy();
    if (!(kinetic > 0.0)) return;
    const std::int64_t degrees = degrees_of_freedom();
    const double kept = portable_exp(-options_.timestep / options_.time_constant);
    const double ratio = (1.0 - kept) * boltzmann * options_.temperature / (2 * kinetic);  // bath's energy per degree of freedom over K
    Normals normals(options_.seed, RandomPurpose::rescaling, atoms_.step);
    const double along = std::sqrt(kept) + std::sqrt(ratio) * normals.next();
    double squares = 0.0;
    for (std::int64_t i = 1; i < degrees; ++i) {
        const double normal = normals.next();
        squares += normal * normal;
    }
    const double factor = std::copysign(std::sqrt(along * along + ratio * squares), along);
    for (double& velocity : atoms_.velocities) velocity *= factor;
    atoms_.heat += kinetic_energy() - kinetic;
}

std::int64_t MolecularDynamics::degrees_of_freedom() const {
    const std::int64_t all = 3 * atoms_.atoms();
    return options_.ensemble == Ensemble::langevin || atoms_.atoms() == 1 ? all : all - 3;
}

double MolecularDynamics::temperature() const { return 2 * kinetic_energy() / (boltzmann * static_cast<double>(degrees_of_freedom())); }

double MolecularDynamics::pressure() const {
    const double space = volume(atoms_.structure);
    if (!(space > 0.0)) return 0.0;
    return (2 * kinetic_energy() - (energies_.virial[0] + energies_.virial[4] + energies_.virial[8])) / (3 * space);
}

}  // namespace clebsch
