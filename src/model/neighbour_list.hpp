#pragma once
// Neighbours of moving atoms: candidate pairs somewhat beyond the cutoff are kept for as long as nobody can have come closer unseen.
#include <cstdint>
#include <vector>

#include "graph/graph.hpp"
#include "graph/structure.hpp"

namespace clebsch {

/// A Verlet list of one structure. What it returns does not depend on what it was asked before: it is the graph that
/// build_graph(structure, cutoff) makes, bit for bit.
class NeighbourList {
 public:
    /// Lengths in Angstrom. `skin`: how far beyond the cutoff candidates are kept; 0 builds anew in every call.
    /// Throws Error for a cutoff that is not positive or a skin that is negative, or either that is not finite.
    NeighbourList(double cutoff, double skin);

    /// Valid until the next call. Candidates are searched when atoms may have moved (or the cell may have shrunk) by more than the skin
    /// allows, or when the number of atoms or the periodicity changed; otherwise nothing is allocated.
    /// Throws what build_graph throws; the list then starts anew.
    const Graph& update(const Structure& structure);

    std::int64_t updates() const { return updates_; }
    std::int64_t builds() const { return builds_; }  ///< updates that searched candidates

 private:
    bool covers(const Structure& structure) const;
    void build(const Structure& structure);
    void filter(const Structure& structure);

    double cutoff_, skin_;
    bool built_ = false;
    std::int64_t updates_ = 0, builds_ = 0;
    Structure reference_;             // where candidates were searched
    Graph candidates_;                // pairs within cutoff + skin there
    std::vector<std::int64_t> edge_;  // of every candidate: its edge in graph_, or -1
    Graph graph_;
};

}  // namespace clebsch
