#include "model/neighbour_list.hpp"

#include <array>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "base/number.hpp"
#include "graph/neighbours.hpp"

namespace clebsch {

namespace {

using Matrix = std::array<double, 9>;  // rows follow one another; vectors are rows, so x becomes x M

Matrix product(const Matrix& a, const Matrix& b) {
    Matrix out{};
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j)
            for (std::size_t k = 0; k < 3; ++k) out[3 * i + j] += a[3 * i + k] * b[3 * k + j];
    return out;
}

Matrix inverse(const Matrix& m) {
    Matrix out;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
            const std::size_t r = (j + 1) % 3, s = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            out[3 * i + j] = m[3 * r + c] * m[3 * s + d] - m[3 * r + d] * m[3 * s + c];
        }
    const double determinant = m[0] * out[0] + m[1] * out[3] + m[2] * out[6];
    for (double& value : out) value /= determinant;
    return out;
}

}  // namespace

NeighbourList::NeighbourList(double cutoff, double skin) : cutoff_(cutoff), skin_(skin) {
    if (!(cutoff > 0.0 && std::isfinite(cutoff))) fail("neighbour list: expected a positive, finite cutoff, got " + number_text(cutoff));
    if (!(skin >= 0.0 && std::isfinite(skin))) fail("neighbour list: expected a skin of at least 0, got " + number_text(skin));
}

const Graph& NeighbourList::update(const Structure& structure) {
    ++updates_;
    if (!built_ || !covers(structure)) build(structure);
    filter(structure);
    return graph_;
}

/// Let the cell have become cell0 A, and let y = x A^-1 be the atoms pulled back into the cell of the search. A pair that was no candidate
/// had a distance of at least cutoff + skin there; its distance y has shrunk by at most twice the largest |y - x0|, and A can shrink that
/// by no more than its smallest singular value, which is at least 1 / (1 + |A^-1 - 1|) in the Frobenius norm.
bool NeighbourList::covers(const Structure& structure) const {
    if (structure.positions.size() != reference_.positions.size() || structure.periodic != reference_.periodic) return false;
    const auto& periodic = structure.periodic;
    const bool moved_cell = structure.cell != reference_.cell && (periodic[0] || periodic[1] || periodic[2]);
    Matrix back{1, 0, 0, 0, 1, 0, 0, 0, 1};
    double room = skin_;  // for twice the largest displacement
    if (moved_cell) {
        if (!(periodic[0] && periodic[1] && periodic[2])) return false;
        back = product(inverse(structure.cell), reference_.cell);
        double square = 0.0;
        for (std::size_t i = 0; i < 9; ++i) {
            const double change = back[i] - (i % 4 == 0 ? 1.0 : 0.0);
            square += change * change;
        }
        room -= cutoff_ * std::sqrt(square);
    }
    if (!(room > 0.0)) return false;
    const double most = room * room / 4;
    for (std::size_t i = 0; i < structure.positions.size(); i += 3) {
        const double* x = structure.positions.data() + i;
        const double* x0 = reference_.positions.data() + i;
        std::array<double, 3> y{x[0], x[1], x[2]};
        if (moved_cell)
            for (std::size_t k = 0; k < 3; ++k) y[k] = x[0] * back[k] + x[1] * back[3 + k] + x[2] * back[6 + k];
        const std::array<double, 3> d{y[0] - x0[0], y[1] - x0[1], y[2] - x0[2]};
        if (!(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] < most)) return false;  // also where a position is not a number
    }
    return true;
}

void NeighbourList::build(const Structure& structure) {
    built_ = false;
    ++builds_;
    // The last factor covers what rounding does to distances of far atoms, for which build_graph accepts 1e-6 of the cutoff.
    candidates_ = build_graph(structure, (cutoff_ + skin_) * (1.0 + 1e-5));
    reference_ = structure;
    const auto edges = candidates_.sender.size();
    edge_.resize(edges);
    graph_.nodes = candidates_.nodes;
    graph_.structures = candidates_.structures;
    graph_.structure = candidates_.structure;
    graph_.offsets.resize(candidates_.offsets.size());
    graph_.sender_offsets.resize(candidates_.offsets.size());
    // No call until the next search needs more than this.
    graph_.sender.reserve(edges);
    graph_.receiver.reserve(edges);
    graph_.by_sender.reserve(edges);
    graph_.vectors.reserve(3 * edges);
    graph_.shifts.reserve(3 * edges);
    built_ = true;
}

void NeighbourList::filter(const Structure& structure) {
    const auto candidates = candidates_.sender.size(), nodes = static_cast<std::size_t>(candidates_.nodes);
    graph_.sender.resize(candidates);
    graph_.receiver.resize(candidates);
    graph_.vectors.resize(3 * candidates);
    graph_.shifts.resize(3 * candidates);
    graph_.by_sender.resize(candidates);
    std::size_t kept = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
        graph_.offsets[node] = static_cast<std::int64_t>(kept);
        const auto end = static_cast<std::size_t>(candidates_.offsets[node + 1]);
        for (auto c = static_cast<std::size_t>(candidates_.offsets[node]); c < end; ++c) {
            const std::int32_t* shift = candidates_.shifts.data() + 3 * c;
            const std::array<double, 3> vector =
                edge_vector(structure, candidates_.sender[c], static_cast<std::int64_t>(node), {shift[0], shift[1], shift[2]});
            edge_[c] = -1;
            if (!(edge_length(vector) < cutoff_)) continue;
            edge_[c] = static_cast<std::int64_t>(kept);
            graph_.sender[kept] = candidates_.sender[c];
            graph_.receiver[kept] = static_cast<std::int64_t>(node);
            for (std::size_t k = 0; k < 3; ++k) {
                graph_.vectors[3 * kept + k] = vector[k];
                graph_.shifts[3 * kept + k] = shift[k];
            }
            ++kept;
        }
    }
    graph_.offsets[nodes] = static_cast<std::int64_t>(kept);
    std::size_t position = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
        graph_.sender_offsets[node] = static_cast<std::int64_t>(position);
        const auto end = static_cast<std::size_t>(candidates_.sender_offsets[node + 1]);
        for (auto c = static_cast<std::size_t>(candidates_.sender_offsets[node]); c < end; ++c) {
            const std::int64_t edge = edge_[static_cast<std::size_t>(candidates_.by_sender[c])];
            if (edge >= 0) graph_.by_sender[position++] = edge;
        }
    }
    graph_.sender_offsets[nodes] = static_cast<std::int64_t>(position);
    graph_.sender.resize(kept);
    graph_.receiver.resize(kept);
    graph_.vectors.resize(3 * kept);
    graph_.shifts.resize(3 * kept);
    graph_.by_sender.resize(kept);
}

}  // namespace clebsch
