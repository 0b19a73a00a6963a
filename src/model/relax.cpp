#include "model/relax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "base/number.hpp"

namespace clebsch {

namespace {

// Times in units of Angstrom sqrt(mass / eV), with a mass of 1. The last four are the publication's.
constexpr double first_timestep = 0.1, longest_timestep = 1.0, longest_step = 0.1, largest_strain = 0.01;
constexpr double faster = 1.1, slower = 0.5, first_mixing = 0.1, mixing_decay = 0.99;
constexpr int patience = 5;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

double longest(std::span<const double> vectors) {
    double square = 0.0;
    for (std::size_t i = 0; i + 2 < vectors.size(); i += 3)
        square = std::max(square, vectors[i] * vectors[i] + vectors[i + 1] * vectors[i + 1] + vectors[i + 2] * vectors[i + 2]);
    return std::sqrt(square);
}

}  // namespace

void check_options(const RelaxOptions& options, const std::string& before) {
    require_in(force_range, before + "fmax", options.force);
    require_in(stress_range, before + "smax", options.stress);
    require_in(skin_range, before + "skin", options.skin);
}

Relaxation::Relaxation(ForceField& field, Structure start, std::vector<int> atomic_numbers, const RelaxOptions& options)
    : field_(field),
      structure_(std::move(start)),
      atomic_numbers_(std::move(atomic_numbers)),
      options_(options),
      neighbours_(field.cutoff(), options.skin),
      timestep_(first_timestep),
      mixing_(first_mixing) {
    check_options(options_, "relaxation: ");
    if (structure_.atoms() == 0) fail("relaxation: the structure has no atoms");
    const double space = volume(structure_), atoms = static_cast<double>(structure_.atoms());
    if (options_.free_cell) {
        if (!(space > 0.0)) fail("relaxation: a free cell needs a structure that is periodic along a, b and c");
        // Curvatures: volume times elastic constants for a strain, a bond's stiffness (elastic constants times a bond's length) for an
        // atom.
        strain_length_ = std::sqrt(atoms) * std::cbrt(space / atoms);
    }
    velocity_.assign(structure_.positions.size() + (options_.free_cell ? 9 : 0), 0.0);
    compute_forces();
}

void Relaxation::advance() {
    const double power = dot(velocity_, force_);
    if (power > 0.0) {
        const double along = mixing_ * std::sqrt(dot(velocity_, velocity_) / dot(force_, force_));
        for (std::size_t i = 0; i < velocity_.size(); ++i) velocity_[i] = (1.0 - mixing_) * velocity_[i] + along * force_[i];
        if (++downhill_ > patience) {
            timestep_ = std::min(timestep_ * faster, longest_timestep);
            mixing_ *= mixing_decay;
        }
    } else if (steps_ > 0) {
        std::ranges::fill(velocity_, 0.0);
        downhill_ = 0;
        timestep_ *= slower;
        mixing_ = first_mixing;
    }
    for (std::size_t i = 0; i < velocity_.size(); ++i) velocity_[i] += timestep_ * force_[i];
    move(timestep_);
    ++steps_;
    compute_forces();
}

/// Displaces the atoms, then strains all positions and cell vectors; both cut to what a step may be.
void Relaxation::move(double time) {
    const std::size_t coordinates = structure_.positions.size();
    double scale = std::min(1.0, longest_step / (time * longest(std::span(velocity_).first(coordinates)) + 1e-300));
    std::array<double, 9> strain{};
    if (options_.free_cell) {
        double most = 0.0;
        for (std::size_t k = 0; k < 9; ++k) {
            strain[k] = time * velocity_[coordinates + k] / strain_length_;
            most = std::max(most, std::abs(strain[k]));
        }
        scale = std::min(scale, largest_strain / (most + 1e-300));
    }
    for (std::size_t i = 0; i < coordinates; ++i) structure_.positions[i] += scale * time * velocity_[i];
    if (!options_.free_cell) return;
    const auto strained = [&](double* v) {
        const std::array<double, 3> x{v[0], v[1], v[2]};
        for (std::size_t k = 0; k < 3; ++k) v[k] += scale * (x[0] * strain[k] + x[1] * strain[3 + k] + x[2] * strain[6 + k]);
    };
    for (std::size_t i = 0; i < coordinates; i += 3) strained(structure_.positions.data() + i);
    for (std::size_t k = 0; k < 9; k += 3) strained(structure_.cell.data() + k);
}

void Relaxation::compute_forces() {
    const Graph& graph = neighbours_.update(structure_);
    field_.evaluate({&structure_, 1}, atomic_numbers_, graph, energies_);
    require_finite(energies_, "relaxation, step " + std::to_string(steps_));
    force_.assign(energies_.forces.begin(), energies_.forces.end());
    if (!options_.free_cell) return;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 3; ++k)
            force_.push_back(-0.5 * (energies_.virial[3 * i + k] + energies_.virial[3 * k + i]) / strain_length_);
}

bool Relaxation::converged() const { return max_force() < options_.force && (!options_.free_cell || max_stress() < options_.stress); }

double Relaxation::max_force() const { return longest(energies_.forces); }

double Relaxation::max_stress() const {
    const double space = volume(structure_);
    if (!(space > 0.0)) return 0.0;
    double most = 0.0;
    for (const double component : energies_.virial) most = std::max(most, std::abs(component));
    return most / space;
}

}  // namespace clebsch
