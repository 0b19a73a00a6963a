#include "graph/neighbours.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/number.hpp"
#include "graph/vesin.hpp"

namespace clebsch {

namespace {

using Vector = std::array<double, 3>;

Vector cross(const Vector& a, const Vector& b) { return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]}; }
double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
double length(const Vector& a) { return std::sqrt(dot(a, a)); }
Vector scaled(const Vector& a, double factor) { return {a[0] * factor, a[1] * factor, a[2] * factor}; }

/// Three independent vectors: the cell's along periodic directions, unit vectors orthogonal to those along open ones.
struct Box {
    std::array<Vector, 3> vectors;
    std::array<Vector, 3> reciprocal;  // fractional coordinate k of x is dot(reciprocal[k], x)
    std::array<double, 3> height;      // distance of the faces that vector k connects
};

Box complete_box(const Structure& structure, const std::string& name) {
    Box box;
    std::array<Vector, 3>& v = box.vectors;
    for (std::size_t k = 0; k < 3; ++k) {
        if (!structure.periodic[k]) continue;
        v[k] = {structure.cell[3 * k], structure.cell[3 * k + 1], structure.cell[3 * k + 2]};
        // Far below and above any cell, but products of three lengths still fit a double.
        if (!(length(v[k]) > 1e-50 && length(v[k]) < 1e50))
            fail(name + ": periodic cell vector " + std::string(1, "abc"[k]) + ": expected a length of 1e-50 to 1e50, got (" +
                 number_text(v[k][0]) + ", " + number_text(v[k][1]) + ", " + number_text(v[k][2]) + ")");
    }
    const auto periodic_count = std::count(structure.periodic.begin(), structure.periodic.end(), true);
    if (periodic_count == 0) {
        v = {Vector{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    } else if (periodic_count == 1) {
        const std::size_t k = structure.periodic[0] ? 0 : structure.periodic[1] ? 1 : 2;
        const Vector along = scaled(v[k], 1.0 / length(v[k]));
        std::size_t least = 0;  // the axis furthest from the periodic direction gives a well-conditioned normal
        for (std::size_t axis = 1; axis < 3; ++axis)
            if (std::abs(along[axis]) < std::abs(along[least])) least = axis;
        Vector axis{};
        axis[least] = 1.0;
        const Vector normal = cross(along, axis);
        v[(k + 1) % 3] = scaled(normal, 1.0 / length(normal));
        v[(k + 2) % 3] = cross(along, v[(k + 1) % 3]);
    } else if (periodic_count == 2) {
        const std::size_t k = !structure.periodic[0] ? 0 : !structure.periodic[1] ? 1 : 2;
        const Vector normal = cross(v[(k + 1) % 3], v[(k + 2) % 3]);
        if (!(length(normal) > 1e-10 * length(v[(k + 1) % 3]) * length(v[(k + 2) % 3])))
            fail(name + ": the two periodic cell vectors are parallel");
        v[k] = scaled(normal, 1.0 / length(normal));
    }
    const double volume = dot(v[0], cross(v[1], v[2]));
    if (!(std::abs(volume) > 1e-10 * length(v[0]) * length(v[1]) * length(v[2])))
        fail(name + ": the periodic cell vectors lie in one plane");
    for (std::size_t k = 0; k < 3; ++k) {
        box.reciprocal[k] = scaled(cross(v[(k + 1) % 3], v[(k + 2) % 3]), 1.0 / volume);
        box.height[k] = 1.0 / length(box.reciprocal[k]);
    }
    return box;
}

/// Where the atoms lie in the box, in units of its vectors, and the extent of the occupied part along each direction.
struct Occupancy {
    std::vector<Vector> fraction;                    // from 0 along every direction; periodic ones up to 1
    std::vector<std::array<std::int32_t, 3>> cells;  // whole cells taken off along periodic directions
    Vector extent;                                   // distance between the faces of the occupied part
};

Occupancy occupancy(const Structure& structure, const Box& box, double cutoff, const std::string& name) {
    Occupancy out;
    Vector low{}, high{};
    double condition = 1.0;  // how much the box's skew magnifies rounding
    for (std::size_t k = 0; k < 3; ++k) condition = std::max(condition, length(box.vectors[k]) / box.height[k]);
    for (std::int64_t atom = 0; atom < structure.atoms(); ++atom) {
        const double* at = structure.positions.data() + 3 * atom;
        const Vector x{at[0], at[1], at[2]};
        const auto reject = [&](const char* why) { fail(name + ": the position of atom " + std::to_string(atom) + why); };
        if (!std::isfinite(x[0]) || !std::isfinite(x[1]) || !std::isfinite(x[2])) reject(" is not finite");
        const double far = std::max({std::abs(x[0]), std::abs(x[1]), std::abs(x[2])});
        if (!(far * condition * 1e-15 <= 1e-6 * cutoff)) reject(" is so far from the origin that float64 does not resolve the cutoff");
        Vector s;
        std::array<std::int32_t, 3> cells{};
        for (std::size_t k = 0; k < 3; ++k) {
            s[k] = dot(box.reciprocal[k], x);
            if (structure.periodic[k]) {
                if (!(std::abs(s[k]) <= 1e8)) reject(" is more than 1e8 cells from the origin");
                cells[k] = static_cast<std::int32_t>(std::floor(s[k]));
                s[k] -= cells[k];
            }
            low[k] = atom == 0 ? s[k] : std::min(low[k], s[k]);
            high[k] = atom == 0 ? s[k] : std::max(high[k], s[k]);
        }
        out.fraction.push_back(s);
        out.cells.push_back(cells);
    }
    for (std::size_t k = 0; k < 3; ++k) {
        if (structure.periodic[k]) {
            out.extent[k] = box.height[k];
            continue;
        }
        for (Vector& s : out.fraction) s[k] -= low[k];
        out.extent[k] = (high[k] - low[k]) * box.height[k];
    }
    return out;
}

/// Edges, roughly: the pairs that a cell list of bins not smaller than the cutoff looks at, which are its work, times the part of the
/// room it looks through that lies within the cutoff. That part is exact in a uniform system.
double estimate_edges(const Structure& structure, const Box& box, const Occupancy& atoms, double cutoff) {
    constexpr double sphere = 4.18879;                           // its volume, in cubes of the cutoff
    constexpr double binned_width = 3.0, least_width = 1.61199;  // of the room, in cutoffs; least: a cube of the sphere's volume
    std::array<std::int64_t, 3> bins;
    double images = 1.0, room = 1.0;
    for (std::size_t k = 0; k < 3; ++k) {
        bins[k] = static_cast<std::int64_t>(std::clamp(std::floor(atoms.extent[k] / cutoff), 1.0, 1e6));
        double width = bins[k] == 1 ? atoms.extent[k] / cutoff : binned_width;
        if (structure.periodic[k] && bins[k] == 1) {
            const double repeated = 2.0 * std::ceil(cutoff / box.height[k]) + 1.0;
            images *= repeated;
            width *= repeated;
        }
        room *= std::clamp(width, least_width, binned_width);
    }
    const auto key = [&](const std::array<std::int64_t, 3>& bin) { return (bin[0] * 1'000'001 + bin[1]) * 1'000'001 + bin[2]; };
    std::vector<std::pair<std::int64_t, std::array<std::int64_t, 3>>> occupied;
    for (const Vector& s : atoms.fraction) {
        std::array<std::int64_t, 3> bin;
        for (std::size_t k = 0; k < 3; ++k) {
            const double part = structure.periodic[k] ? s[k] : s[k] * box.height[k] / std::max(atoms.extent[k], cutoff);
            bin[k] = std::clamp(static_cast<std::int64_t>(part * static_cast<double>(bins[k])), std::int64_t{0}, bins[k] - 1);
        }
        occupied.emplace_back(key(bin), bin);
    }
    std::sort(occupied.begin(), occupied.end());
    struct Bin {
        std::int64_t key;
        std::array<std::int64_t, 3> bin;
        double count;
    };
    std::vector<Bin> filled;
    for (const auto& [number, bin] : occupied) {
        if (filled.empty() || filled.back().key != number) filled.push_back({number, bin, 0.0});
        filled.back().count += 1.0;
    }
    double pairs = 0.0;
    for (const Bin& here : filled) {
        double around = 0.0;
        for (int step = 0; step < 27; ++step) {
            std::array<std::int64_t, 3> bin = here.bin;
            bool inside = true;
            const std::array<int, 3> move{step % 3 - 1, step / 3 % 3 - 1, step / 9 - 1};
            for (std::size_t k = 0; k < 3; ++k) {
                if (move[k] != 0 && bins[k] == 1) inside = false;
                bin[k] += move[k];
                if (structure.periodic[k]) bin[k] = (bin[k] + bins[k]) % bins[k];
                if (bin[k] < 0 || bin[k] >= bins[k]) inside = false;
            }
            if (!inside) continue;
            const std::int64_t wanted = key(bin);
            const auto found =
                std::lower_bound(filled.begin(), filled.end(), wanted, [](const Bin& a, std::int64_t b) { return a.key < b; });
            if (found != filled.end() && found->key == wanted) around += found->count;
        }
        pairs += here.count * around;
    }
    return pairs * images * std::min(1.0, sphere / room);
}

/// The cutoff to search with: slightly larger, so that rounding loses no pair (those too long are dropped afterwards), and for
/// long or thin systems large enough for vesin 0.6's grid: above 100,000 cells it shrinks the numbers of cells in proportion, and divides
/// by zero where that leaves a direction with none.
double search_cutoff(const Occupancy& atoms, double cutoff) {
    double search = cutoff * (1.0 + 1e-5);
    for (;; search *= 1.05) {
        double cells = 1.0, least = 1e300;
        for (std::size_t k = 0; k < 3; ++k) {
            const double along = std::max(1.0, std::floor(atoms.extent[k] / search));
            cells *= along + 2.0;  // what vesin counts may differ by rounding and by its margins
            least = std::min(least, along);
        }
        if (cells < 9e4 || (cells < 2e9 && least * std::cbrt(1e5 / cells) >= 2.0)) return search;
    }
}

/// All pairs closer than `search` and perhaps more, from vesin. It is always given a periodic box with the atoms inside: far atoms overflow
/// its shifts, and its mixed boundaries hang for some boxes. Open directions get enough empty space that no image is within reach.
VesinPairs periodic_pairs(const Structure& structure, const Box& box, const Occupancy& atoms, double search) {
    std::array<double, 9> rows;
    for (std::size_t k = 0; k < 3; ++k) {
        const double stretch = structure.periodic[k] ? 1.0 : atoms.extent[k] + 2.0 * search;  // open vectors have length 1
        for (std::size_t axis = 0; axis < 3; ++axis) rows[3 * k + axis] = stretch * box.vectors[k][axis];
    }
    std::vector<double> positions;
    positions.reserve(structure.positions.size());
    for (const Vector& s : atoms.fraction)
        for (std::size_t axis = 0; axis < 3; ++axis)
            positions.push_back(s[0] * box.vectors[0][axis] + s[1] * box.vectors[1][axis] + s[2] * box.vectors[2][axis]);
    VesinPairs pairs = vesin_pairs(positions, rows, {true, true, true}, search);
    // x = wrapped + cells . box, so the shift between the given positions is the wrapped one's plus the receiver's cells minus the
    // sender's.
    for (std::size_t i = 0; i < pairs.points.size(); ++i) {
        const auto& receiver = atoms.cells.at(static_cast<std::size_t>(pairs.points[i][0]));
        const auto& sender = atoms.cells.at(static_cast<std::size_t>(pairs.points[i][1]));
        for (std::size_t k = 0; k < 3; ++k) pairs.shifts[i][k] += receiver[k] - sender[k];
    }
    return pairs;
}

struct Edge {
    std::int64_t sender;
    std::array<std::int32_t, 3> shift;
    Vector vector;
};

/// Room for as many more numbers as one structure has at most. A batch of many still grows in few steps.
template <class T>
void make_room(std::vector<T>& numbers, std::size_t more) {
    if (numbers.capacity() - numbers.size() < more) numbers.reserve(std::max(numbers.size() + more, 2 * numbers.capacity()));
}

/// Appends the edges of one structure, whose first node is `first`.
void add_structure(const Structure& structure, const std::string& name, const NeighbourOptions& options, Graph& graph) {
    const std::int64_t first = graph.nodes, atoms = structure.atoms();
    if (atoms == 0) {
        ++graph.structures;
        return;
    }
    const Box box = complete_box(structure, name);
    const Occupancy occupied = occupancy(structure, box, options.cutoff, name);
    const double search = search_cutoff(occupied, options.cutoff);
    const double expected = estimate_edges(structure, box, occupied, search);
    const double room = static_cast<double>(options.edge_limit - graph.edges());
    const auto refuse = [&](const std::string& count) {
        throw Error(ErrorKind::unsupported, name + ": " + count + " within the cutoff of " + number_text(options.cutoff) + " (" +
                                                std::to_string(atoms) + " atoms): above the limit of " +
                                                std::to_string(options.edge_limit) + " edges");
    };
    constexpr double few_edges = 2e5;  // are counted instead
    if (!(expected <= room + few_edges))
        refuse("about " + number_text(std::round(expected)) + " edges or images of a very flat or skewed cell");
    const VesinPairs pairs = periodic_pairs(structure, box, occupied, search);

    std::vector<std::int64_t> receivers;
    receivers.reserve(pairs.points.size());
    for (const auto& pair : pairs.points) receivers.push_back(pair[0]);
    const Grouping by_receiver = group_by(receivers, atoms, "vesin: first point of pair ");
    make_room(graph.sender, pairs.points.size());
    make_room(graph.receiver, pairs.points.size());
    make_room(graph.vectors, 3 * pairs.points.size());
    make_room(graph.shifts, 3 * pairs.points.size());
    std::vector<Edge> edges;  // of one receiver
    for (std::int64_t receiver = 0; receiver < atoms; ++receiver) {
        edges.clear();
        const auto r = static_cast<std::size_t>(receiver);
        for (std::int64_t i = by_receiver.offsets[r]; i < by_receiver.offsets[r + 1]; ++i) {
            const auto pair = static_cast<std::size_t>(by_receiver.order[static_cast<std::size_t>(i)]);
            Edge edge{pairs.points[pair][1], pairs.shifts[pair], {}};
            if (edge.sender < 0 || edge.sender >= atoms) fail("vesin: second point of a pair is " + std::to_string(edge.sender));
            edge.vector = edge_vector(structure, edge.sender, receiver, edge.shift);
            if (edge_length(edge.vector) < options.cutoff) edges.push_back(edge);
        }
        std::sort(edges.begin(), edges.end(),
                  [](const Edge& a, const Edge& b) { return a.sender != b.sender ? a.sender < b.sender : a.shift < b.shift; });
        if (graph.edges() + static_cast<std::int64_t>(edges.size()) > options.edge_limit) refuse("more edges");
        for (const Edge& edge : edges) {
            graph.sender.push_back(first + edge.sender);
            graph.receiver.push_back(first + receiver);
            graph.vectors.insert(graph.vectors.end(), edge.vector.begin(), edge.vector.end());
            graph.shifts.insert(graph.shifts.end(), edge.shift.begin(), edge.shift.end());
        }
        graph.offsets.push_back(graph.edges());
    }
    graph.structure.insert(graph.structure.end(), static_cast<std::size_t>(atoms), graph.structures);
    graph.nodes += atoms;
    ++graph.structures;
}

}  // namespace

Graph build_graph(std::span<const Structure> structures, const NeighbourOptions& options) {
    if (!(options.cutoff > 1e-50 && options.cutoff < 1e50)) {
        char number[32];
        std::snprintf(number, sizeof number, "%g", options.cutoff);
        fail(std::string("neighbour list: expected a positive, finite cutoff (1e-50 to 1e50), got ") + number);
    }
    if (options.edge_limit < 0) fail("neighbour list: the edge limit is negative");
    Graph graph;
    graph.offsets.push_back(0);
    for (std::size_t i = 0; i < structures.size(); ++i) {
        const std::string name = "structure " + std::to_string(i);
        if (structures[i].positions.size() % 3 != 0)
            fail(name + ": expected three numbers an atom, got " + std::to_string(structures[i].positions.size()) + " in all");
        add_structure(structures[i], name, options, graph);
    }
    Grouping by_sender = group_by(graph.sender, graph.nodes, "sender");
    graph.by_sender = std::move(by_sender.order);
    graph.sender_offsets = std::move(by_sender.offsets);
    return graph;
}

}  // namespace clebsch
